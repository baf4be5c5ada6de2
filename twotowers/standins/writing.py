"""What `logs` and `wscd` share: pages of ten, checked sizes, and how cells are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.errors import check_range
from twotowers.files.artefacts import atomic
from twotowers.randomness import stream

MOST_SESSIONS = 200_000_000
LENGTH = 10


def drawing(name: str, sessions: int, seed: int) -> tuple[np.random.Generator, int]:
    """The source of randomness of a stand-in, and its checked number of sessions."""
    check_range(sessions, field="sessions", low=1, high=MOST_SESSIONS, whole=True)
    check_range(seed, field="seed", low=0, high=2**63 - 1, whole=True)
    return stream(f"{name} stand-in", seed), sessions


def write_log(path: str | Path, log: pa.Table) -> None:
    """Write cells."""
    with atomic(path) as temporary:
        pq.write_table(log, temporary)
