"""Click models that are counted from a file, at 10^8 sessions.

The log is the longest of `benchmarks.clickmodels`, ten times over. So its pairs and cells are those
of one tenth, as when the same queries are asked for ten times as long. DuckDB counts within the
memory that it is given (`benchmarks.clickmodels.MEMORY`), and uses the disk for the rest. Models of
whole pages are left out: they keep distinct pages, and copies would add none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile

from benchmarks.clickmodels import log_of, needs_pages, progress, time_fits
from benchmarks.measure import child
from twotowers.files.tables import opened
from twotowers.fits.models import model_of
from twotowers.logs.sessions import write_sessions
from twotowers.models.names import MODELS

SIZES = {
    "full": {"sessions": 10_000_000, "held_out": 500_000, "times": 10},
    "quick": {"sessions": 2_000, "held_out": 500, "times": 3},
}


def run(*, sessions: int, held_out: int, times: int) -> Iterator[dict]:
    """Yield a row for the plain scan of the log, and one for each fit."""
    log, number = repeated(log_of(sessions, held_out), sessions, times), sessions * times
    scan = child("benchmarks.counting:time_scan", path=f"{log}/train.parquet")
    yield {"what": "plain scan", "sessions": number, **scan}
    counted = [name for name in MODELS if not needs_pages(model_of(name)[1])]
    yield from time_fits(log, number, counted, converge=False)


def repeated(log: str, sessions: int, times: int) -> str:
    """A folder with the pages of a log so many times, and its held-out pages. It is made once."""
    folder = Path(log).with_name(f"{sessions}x{times}")
    if not (folder / "test.parquet").exists():
        folder.mkdir(parents=True, exist_ok=True)
        progress(f"writing a log of {times} times {sessions:,} sessions")
        with opened(f"{log}/train.parquet") as file:
            pages = (batch for _ in range(times) for batch in file.iter_batches())
            write_sessions(folder / "train.parquet", pages)
        copyfile(f"{log}/test.parquet", folder / "test.parquet")
    return str(folder)
