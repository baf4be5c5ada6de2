"""Files between the stages: written whole or not at all, and known by their checksums."""

from __future__ import annotations

import errno
import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twotowers.errors import InputError


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename it to `path` only on success.

    Nothing is left behind when the block fails, so a half-written file is never taken
    for a whole one.

    Raises:
        InputError: the disk has no room left.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(exist_ok=False)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise InputError(
                "no space left on the disk; nothing was written. Free some room and rerun",
                path=path,
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def sha256(path: str | Path) -> str:
    """SHA-256 of a file of any size, in lower-case hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
