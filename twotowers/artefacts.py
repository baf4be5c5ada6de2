"""Files between the stages: written whole or not at all, and refused when damaged."""

from __future__ import annotations

import errno
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twotowers.errors import InputError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a full disk, a used-up quota and a limit on the size of files are called."""
NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}(\..*)?")


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename it to `path` only on success.

    Nothing is left behind when the block fails, so a half-written file is never taken
    for a whole one.

    Raises:
        InputError: the disk has no room left, or the folder cannot be written to.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
    try:
        _create(temporary)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise InputError(
                "no space left on the disk; nothing was written. Free some room and rerun",
                path=path,
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _create(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
    except OSError as error:
        if error.errno in NO_RIGHT:
            raise InputError(
                f"cannot be written: {error.strerror}",
                path=path.parent,
                expected="a folder that you may write to",
            ) from error
        raise


def remove_temporary_files(folder: str | Path) -> None:
    """Remove what writers that were killed have left below `folder`; no writer may be alive."""
    for path in Path(folder).rglob(".*"):
        if _TEMPORARY.fullmatch(path.name):
            path.unlink()


@contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """Read a parquet file of an earlier stage in this block.

    Raises:
        InputError: it is no whole parquet file.
    """
    # Not all that write files read parquet.
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        # Its subclasses are about files that are missing or forbidden.
        if isinstance(error, OSError) and type(error) is not OSError:
            raise
        raise InputError(
            f"the file is damaged ({error}). Delete it and rerun: it is made again", path=path
        ) from error
