"""Find the files of a data set, download public ones, and verify them."""

import hashlib
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import pooch
import requests

from twotowers.datasets.sources import Source
from twotowers.errors import InputError
from twotowers.files.artefacts import files_of, sha256

RETRIES = 3


def locate(source: Source, folder: str | Path) -> dict[str, Path]:
    """The files of the train, validation and test split, verified.

    They lie below `folder`, or it is the folder of the files themselves (for MSLR: the parent of
    Fold1, or Fold1).
    """
    folder = Path(folder)
    paths = _find(source, folder)
    for split, path in paths.items():
        if not _is_there(path):
            raise InputError(
                f"the {split} split of {source.title} is missing from {folder}. {source.how}",
                path=path,
                expected=_layout(source, folder),
            )
    for split, path in paths.items():
        known = source.files_sha256[split]
        if known is not None and (actual := _sha256(path)) != known:
            message = f"the file is damaged or another version: its SHA-256 is {actual}"
            raise InputError(message, path=path, expected=known)
    return paths


def fetch(source: Source, folder: str | Path) -> Path:
    """Download the archive of a public source and unpack it, in a folder that is created if absent.

    The archive gets its name only when it is complete and has its checksum, which a public source
    has. An archive that exists is not downloaded again.
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
        downloads.fetch(
            archive,
            downloader=pooch.HTTPDownloader(progressbar=True),
            processor=pooch.Untar(extract_dir="."),
        )
    except (requests.RequestException, ValueError) as error:
        raise InputError(
            f"{source.url} could not be downloaded: {error}",
            field=f"data source {source.name!r}",
            expected=f"an archive of SHA-256 {source.sha256}",
        ) from error
    return folder


def obtain(source: Source, folder: str | Path) -> dict[str, Path]:
    """The files as `locate` gives them. If one is missing, the archive is fetched first."""
    missing = [path for path in _find(source, Path(folder)).values() if not _is_there(path)]
    if missing and source.access != "local":
        fetch(source, folder)
    return locate(source, folder)


def manifest(paths: dict[str, Path]) -> dict[str, dict[str, str | int]]:
    """The path of each split, and the SHA-256 and the size in bytes of its file.

    If a path is a pattern that several files match, the size is that of all. The SHA-256 is that of
    a text with a line "<SHA-256> <name>" for each file, in the order of their names.
    """
    return {
        split: {
            "path": str(path),
            "sha256": _sha256(path),
            "bytes": sum(each.stat().st_size for each in files_of(path)),
        }
        for split, path in paths.items()
    }


def _sha256(path: Path) -> str:
    files = files_of(path)
    if files == [path]:
        return sha256(path)
    lines = "".join(f"{sha256(each)} {each.name}\n" for each in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def _is_there(path: Path) -> bool:
    """Whether there is the file, or a file that fits the pattern."""
    return path.is_file() or any(each.is_file() for each in path.parent.glob(path.name))


def _find(source: Source, folder: Path) -> dict[str, Path]:
    """The paths of the splits: as declared, or, if all are there, directly in the folder."""
    declared = {split: folder / path for split, path in source.splits.items()}
    flat = {split: folder / path.name for split, path in declared.items()}
    distinct = len(set(flat.values())) == len(flat)
    return flat if distinct and all(map(_is_there, flat.values())) else declared


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
