"""A table in memory, in the place of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Frame:
    """A table in memory, of distinct names, in the place of a file: "the frame" in messages."""

    table: pa.Table

    def __str__(self) -> str:
        return "the frame"


Source = str | Path | Frame
"""What a reader of logs reads: a path, perhaps a pattern of paths, or a frame."""
