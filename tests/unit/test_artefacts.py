"""Files are written whole or not at all."""

import errno
import os
import stat
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twotowers.errors import InputError
from twotowers.files import artefacts
from twotowers.files.artefacts import atomic

FULL = Path("/dev/full")
"""A device on which every write fails, as on a full disk."""


def test_written_on_success_in_new_folders(tmp_path):
    path = tmp_path / "new" / "folder" / "a.csv"
    with atomic(path) as temporary:
        assert temporary.suffix == path.suffix
        assert temporary.parent == path.parent
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_nothing_left_behind_on_failure(tmp_path, error):
    path = tmp_path / "a.csv"
    with pytest.raises(error), atomic(path) as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []


def no_room(monkeypatch):
    """Put every temporary file of `atomic` on a full device."""
    monkeypatch.setattr(artefacts.Path, "touch", lambda self, *_, **__: self.symlink_to(FULL))


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full (Linux)")
@pytest.mark.parametrize("kind", ["text", "parquet"])
def test_a_full_disk(tmp_path, monkeypatch, kind):
    path = tmp_path / f"a.{kind}"
    path.write_text("old")
    no_room(monkeypatch)

    def write():
        with atomic(path) as temporary:
            if kind == "text":
                temporary.write_text("too much")
            else:
                pq.write_table(pa.table({"a": np.random.default_rng(0).random(10**5)}), temporary)

    with pytest.raises(InputError, match="no space left on the disk") as caught:
        write()
    assert str(path) in str(caught.value)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        ("touch", errno.ENOSPC, "no space left on the disk"),
        ("mkdir", errno.EDQUOT, "no space left on the disk"),
    ],
)
def test_not_even_an_empty_file(tmp_path, monkeypatch, call, code, message):
    def refused(*args, **options):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(artefacts.Path, call, refused)
    with pytest.raises(InputError, match=message) as caught, atomic(tmp_path / "a"):
        pytest.fail("the block must not run")
    assert str(tmp_path) in str(caught.value)


def test_other_errors_of_the_system_are_not_renamed(tmp_path):
    with pytest.raises(PermissionError), atomic(tmp_path / "a"):
        raise PermissionError(errno.EACCES, "no")


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic(tmp_path / "a") as temporary:
            temporary.write_text("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_concurrent_writers_leave_one_whole_file(tmp_path):
    path, barrier = tmp_path / "a.txt", threading.Barrier(4)

    def write(letter):
        barrier.wait()
        for _ in range(20):
            with atomic(path) as temporary, temporary.open("w") as file:
                for _ in range(50):
                    file.write(letter * 100)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = path.read_text()
    assert len(content) == 5000
    assert len(set(content)) == 1
    assert list(tmp_path.iterdir()) == [path]
