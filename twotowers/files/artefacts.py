"""Files between stages: written whole or not at all, with checksums; or a frame in their place."""

from __future__ import annotations

import errno
import hashlib
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twotowers.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full disk, a used-up quota and a limit on the size of files."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A table in memory, of distinct names, in the place of a file: "the frame" in messages."""

    table: pa.Table

    def __str__(self) -> str:
        return "the frame"


Source = str | Path | Frame
"""What a reader of logs reads: a path, perhaps a pattern of paths, or a frame."""


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename it to `path` only on success.

    If the block fails, nothing is left behind. So a file that exists is whole. A file that is
    replaced keeps its permissions; what is no file, such as a pipe or a device, is refused.
    """
    path = Path(path)
    temporary = _temporary(path)
    try:
        with disk_space(path):
            mode = _permissions(path)
            # Nobody else may read what is written, until it is whole.
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch(0o666 if mode is None else mode | stat.S_IWUSR, exist_ok=False)
            yield temporary
            temporary.replace(path)
            if mode not in (None, stat.S_IMODE(path.stat().st_mode)):
                path.chmod(mode)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def disk_space(path: str | Path, expected: str = "") -> Iterator[None]:
    """Raise InputError if the disk of a path is full."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise InputError(
                "no space left on the disk; nothing was written. Free some space and rerun",
                path=path,
                expected=expected,
            ) from error
        raise


def check_target(path: str | Path, log: Any, *endings: str) -> None:
    """Raise InputError if a file cannot be written there, or would replace a file of `log`.

    `log` is a log or its `Source`; None if it is not known. The folder exists, so that a mistyped
    one is not made. Commands call it before work that may take hours. The path has one of
    `endings`, or any without.
    """
    path = Path(path)
    temporary = _temporary(path)
    if not path.parent.exists():
        raise InputError("there is no such folder", path=path.parent, expected="an existing folder")
    try:
        _permissions(path)
        files = [] if log is None else files_of(getattr(log, "source", log))
        files = [each for each in files if isinstance(each, Path) and each.exists()]
        if path.exists() and any(each.samefile(path) for each in files):
            raise InputError("is the log itself", path=path, expected="another file to write")
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", path=path, expected="a file in a folder"
        ) from error
    if endings and path.suffix not in endings:
        raise InputError(
            "has another ending", path=path, field="out", expected=f"a file {' or '.join(endings)}"
        )


def files_of(path: Source) -> list[Path | Frame]:
    """The files that a path means: itself; or, of a pattern such as `part-*.parquet`, all that fit.

    They are in the order of their names. A frame means itself. `**` stands for folders within each
    other. Files of 0 bytes, as programs leave them for parts without rows, are left out.
    """
    if isinstance(path, Frame):
        return [path]
    path = Path(path)
    if path.is_file() or not set("*?[") & set(str(path)):
        return [path]
    literal = path.parent.is_dir()  # So that its name may have brackets.
    fits = path.parent.glob(path.name) if literal else map(Path, glob(str(path), recursive=True))
    files = sorted(each for each in fits if each.is_file())
    files = [each for each in files if each.stat().st_size] or files
    if not files:
        raise InputError("no file fits", path=path, expected="a file, or a pattern of files")
    return [*files]


def sha256(path: str | Path) -> str:
    """SHA-256 of a file of any size, in lower-case hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _temporary(path: Path) -> Path:
    return path.parent / f".{path.name}.{secrets.token_hex(4)}{path.suffix}"


def _permissions(path: Path) -> int | None:
    """Those of a file that is to be replaced; None if there is none."""
    if not path.exists():
        return None
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is a pipe or a device"
        raise InputError(what, path=path, expected="a file to write")
    return stat.S_IMODE(path.stat().st_mode)
