"""Find the files of a data set, download those that may be, and verify what was found."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import pooch
import requests

from twotowers.datasets.sources import Source
from twotowers.errors import InputError
from twotowers.files.artefacts import atomic, sha256

RETRIES = 3

# Of archives. Text of numbers packs 5 to 20 times; zeros pack 1000 times.
MOST_TIMES = 100
MOST_MEMBERS = 10_000
LONGEST_READ = 1 << 20
LONGEST_NAME = 200
DEEPEST = 20
# What Python's readers make of damage. A header's numbers and texts are a ValueError.
DAMAGED = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError)


def locate(source: Source, folder: str | Path) -> dict[str, Path]:
    """The files of the train, validation and test split, verified.

    Args:
        source: The data set.
        folder: The folder that holds `source.splits`, or the one that holds the files
            themselves (for MSLR: the folder of Fold1, or Fold1).

    Returns:
        Path of each split's file.

    Raises:
        InputError: a split has no file, or a file does not have its known SHA-256.
    """
    folder = Path(folder)
    paths = _find(source, folder)
    for split, path in paths.items():
        if not path.is_file():
            raise InputError(
                f"the {split} split of {source.title} is missing from {folder}. {source.how}",
                path=path,
                expected=_layout(source, folder),
            )
    for split, path in paths.items():
        _verify(path, source.files_sha256[split])
    return paths


def fetch(source: Source, folder: str | Path) -> Path:
    """Download the archive of a public source and unpack it.

    The archive gets its name only when it is complete and has its checksum; the same
    holds for each file unpacked from it. An archive that is already there is not
    downloaded again.

    Args:
        source: The data set.
        folder: Where to put the archive and its files; created where absent.

    Returns:
        The folder.

    Raises:
        InputError: the source is not public (the message says how to get it, where to
            put it, and its checksums); the download fails or has another checksum after
            RETRIES more attempts; the archive is not a gzipped tar or is damaged, unpacks to
            more than MOST_TIMES its size, or holds a link, a device, a file twice, or a path
            that leads out of the folder.
    """
    folder = Path(folder)
    if source.access != "public":
        raise InputError(_instructions(source, folder), field=f"data source {source.name!r}")
    archive = PurePosixPath(urlsplit(source.url).path).name
    downloads = pooch.create(
        path=folder,
        base_url="",
        registry={archive: f"sha256:{source.sha256}"},
        urls={archive: source.url},
        retry_if_failed=RETRIES,
    )
    try:
        downloads.fetch(archive, downloader=pooch.HTTPDownloader(progressbar=True))
    except (requests.RequestException, ValueError) as error:
        raise InputError(
            f"{source.url} could not be downloaded: {error}",
            field=f"data source {source.name!r}",
            expected=f"an archive of SHA-256 {source.sha256}",
        ) from error
    _unpack(folder / archive, folder)
    return folder


def obtain(source: Source, folder: str | Path) -> dict[str, Path]:
    """The files of the three splits as `locate` gives them, fetched first where one is missing.

    Raises:
        InputError: as `locate` and `fetch`.
    """
    missing = [path for path in _find(source, Path(folder)).values() if not path.is_file()]
    if missing and source.access != "local":
        fetch(source, folder)
    return locate(source, folder)


def manifest(paths: dict[str, Path]) -> dict[str, dict[str, str | int]]:
    """What was found: path, SHA-256 and size in bytes of the file of each split."""
    return {
        split: {"path": str(path), "sha256": sha256(path), "bytes": path.stat().st_size}
        for split, path in paths.items()
    }


def _find(source: Source, folder: Path) -> dict[str, Path]:
    """Where the splits are: as declared, or all of them directly in the folder."""
    declared = {split: folder / path for split, path in source.splits.items()}
    flat = {split: folder / path.name for split, path in declared.items()}
    distinct = len(set(flat.values())) == len(flat)
    return flat if distinct and all(map(Path.is_file, flat.values())) else declared


def _verify(path: Path, expected: str | None) -> None:
    if expected is not None and (actual := sha256(path)) != expected:
        raise InputError(
            f"the file is damaged or another version: its SHA-256 is {actual}",
            path=path,
            expected=expected,
        )


def _layout(source: Source, folder: Path) -> str:
    return ", ".join(str(folder / path) for path in source.splits.values())


def _instructions(source: Source, folder: Path) -> str:
    sums = {"the archive": source.sha256, **source.files_sha256}
    known = [f"{what} {checksum}" for what, checksum in sums.items() if checksum]
    return (
        f"{source.title} cannot be downloaded by a program ({source.access}). {source.how} "
        f"From: {source.url or 'nowhere'}. Put the files here: {_layout(source, folder)}. "
        f"SHA-256: {'; '.join(known) or 'not known'}"
    )


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a gzipped tar whose members are all plain files or folders below `folder`."""
    try:
        with _Gzip(archive) as content, tarfile.open(fileobj=content, mode="r:") as tar:
            for member in _checked(tar, archive):
                with atomic(folder / member.name) as temporary, temporary.open("wb") as target:
                    shutil.copyfileobj(tar.extractfile(member), target)
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(
            f"cannot be unpacked: {error}", path=archive, expected="a gzipped tar archive"
        ) from error


class _Gzip(gzip.GzipFile):
    """A gzip file of which no more is read at once than the header of a tar's member needs.

    A header says itself how long it is: some gigabytes of zeros pack into a few megabytes.
    """

    def read(self, size=-1):
        if not 0 <= size <= LONGEST_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return super().read(size)


def _checked(tar: tarfile.TarFile, archive: Path) -> list[tarfile.TarInfo]:
    """The files in a tar, if all that it holds may be unpacked.

    Each member is judged before what follows it is looked for, which means to unpack it.
    """
    most = MOST_TIMES * archive.stat().st_size + LONGEST_READ
    files: dict[PurePosixPath, tarfile.TarInfo] = {}
    total = 0
    for number, member in enumerate(tar):
        path = PurePosixPath(member.name)
        total += max(member.size, 0)
        if total > most or number >= MOST_MEMBERS:
            raise InputError(
                f"unpacks to more than {most:,} bytes or {MOST_MEMBERS:,} members; "
                "nothing was unpacked",
                path=archive,
            )
        if not _is_safe(member, path) or path in files or path.name == archive.name:
            raise _unsafe(member, archive)
        if member.isreg():
            files[path] = member
    for path in files:
        for folder in path.parents:
            if folder in files:
                raise _unsafe(files[folder], archive)
    return list(files.values())


def _is_safe(member: tarfile.TarInfo, path: PurePosixPath) -> bool:
    """Whether a member is a folder, or a file with a name, at a path that every disk can hold."""
    return (
        (member.isdir() or (member.isreg() and member.size >= 0 and path.name != ""))
        and member.name.isprintable()
        and not path.is_absolute()
        and ".." not in path.parts
        and len(path.parts) <= DEEPEST
        and all(len(part.encode()) <= LONGEST_NAME for part in path.parts)
    )


def _unsafe(member: tarfile.TarInfo, archive: Path) -> InputError:
    return InputError(
        f"the member {member.name[:LONGEST_NAME]!r} is not safe to unpack; nothing was unpacked",
        path=archive,
        expected="plain files and folders below the archive's own, each once",
    )
