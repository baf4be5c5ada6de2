"""Files between the stages: written whole or not at all, read by column name."""

from __future__ import annotations

import errno
import os
import tempfile
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
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private; an artefact is as readable as any other file.
        temporary.chmod(0o666 & ~_umask())
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
