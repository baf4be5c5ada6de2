"""Downloads from a local server: whole, damaged, gone; and files found on disk."""

import dataclasses
import gc
import hashlib
import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from twotowers.datasets.download import RETRIES, fetch, locate, manifest, obtain
from twotowers.datasets.sources import source
from twotowers.errors import InputError
from twotowers.experiment.config import DataSet
from twotowers.experiment.fields import read
from twotowers.splits import SPLITS

FILES = {f"sample/{name}.txt": f"1 qid:1 1:{n}\n".encode() for n, name in enumerate("abc")}


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


class Server(ThreadingHTTPServer):
    """Serves `content`, or nothing if `dead`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.requests, self.dead = b"", 0, False
        self.url = f"http://127.0.0.1:{self.server_port}/data/sample.tar.gz"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests += 1
        self.send_response(404 if server.dead else 200)
        self.send_header("Content-Length", str(len(server.content)))
        self.end_headers()
        self.wfile.write(server.content)

    def log_message(self, *_):
        """Silent: the default writes every request to stderr."""


@pytest.fixture
def server(monkeypatch):
    # Between attempts pooch sleeps for seconds.
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def public(server, content: bytes, checksum: str | None = None):
    """A public source whose archive is served."""
    server.content = content
    return dataclasses.replace(
        source("istella_s"),
        url=server.url,
        sha256=checksum or sha(content),
        splits=dict(zip(SPLITS, FILES, strict=True)),
        files_sha256=dict(zip(SPLITS, map(sha, FILES.values()), strict=True)),
    )


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_an_archive_is_downloaded_once_and_its_files_are_located(server, tmp_path):
    data, folder = public(server, tar(FILES)), tmp_path / "new" / "folder"
    for _ in range(2):
        assert fetch(data, folder) == folder
        paths = locate(data, folder)
        assert list(paths) == list(SPLITS)
        assert [path.read_bytes() for path in paths.values()] == list(FILES.values())
        paths["train"].unlink()
    assert server.requests == 1


# Pooch leaves open the connections on which it was told 404.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("dead", [False, True], ids=["damaged archive", "dead link"])
def test_what_cannot_be_fetched_is_named_and_leaves_nothing(server, tmp_path, dead):
    data = public(server, tar(FILES), checksum=sha(b"the real archive"))
    server.dead = dead
    with pytest.raises(InputError, match="404" if dead else sha(server.content)) as caught:
        fetch(data, tmp_path)
    assert sha(b"the real archive") in str(caught.value)
    assert server.url in str(caught.value)
    assert files_below(tmp_path) == []
    assert server.requests == 1 + RETRIES
    del caught
    gc.collect()


@pytest.mark.parametrize("name", ["mslr_web30k", "yahoo_set1"])
def test_sources_that_a_person_must_get_say_how(tmp_path, name):
    data = source(name)
    with pytest.raises(InputError) as caught:
        fetch(data, tmp_path)
    for part in (data.url, data.how, data.sha256, str(tmp_path / data.splits["train"])):
        assert part in str(caught.value)


def local(tmp_path, **splits):
    """A declared source, and its files."""
    for path in splits.values():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"1 qid:1 1:1\n")
    declared = {"name": "mine", "width": 1, "label_max": 4, "splits": splits}
    return read(DataSet, {"source": declared}).of


@pytest.mark.parametrize("given_folder", ["", "Fold1"])
def test_the_folder_or_its_fold(tmp_path, given_folder):
    data = local(
        tmp_path, train="Fold1/train.txt", validation="Fold1/vali.txt", test="Fold1/test.txt"
    )
    assert locate(data, tmp_path / given_folder)["test"] == tmp_path / "Fold1" / "test.txt"


def test_splits_of_the_same_file_name_are_not_mixed_up(tmp_path):
    data = local(tmp_path, train="train/data.txt", validation="vali/data.txt", test="test/data.txt")
    (tmp_path / "data.txt").touch()
    assert locate(data, tmp_path)["validation"] == tmp_path / "vali" / "data.txt"


def test_missing_split_is_named_with_its_folder(tmp_path):
    data = local(tmp_path, train="train.txt", validation="vali.txt", test="test.txt")
    (tmp_path / "vali.txt").unlink()
    for find in (locate, obtain):
        with pytest.raises(InputError, match="the validation split") as caught:
            find(data, tmp_path)
        assert str(tmp_path) in str(caught.value)


def test_wrong_file_gives_both_checksums(server, tmp_path):
    data = public(server, tar(FILES))
    fetch(data, tmp_path)
    (tmp_path / "sample" / "b.txt").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"b\.txt") as caught:
        locate(data, tmp_path)
    assert sha(b"damaged") in str(caught.value)
    assert sha(FILES["sample/b.txt"]) in str(caught.value)


def test_manifest(tmp_path):
    data = local(tmp_path, train="train.txt", validation="vali.txt", test="test.txt")
    entry = manifest(locate(data, tmp_path))["train"]
    content = (tmp_path / "train.txt").read_bytes()
    assert entry == {
        "path": str(tmp_path / "train.txt"),
        "sha256": sha(content),
        "bytes": len(content),
    }
