"""From sessions on disk to an answer: DuckDB's group-by, curves of examination, and the page."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb

from benchmarks.counting import LENGTH, group_by
from benchmarks.measure import CACHE, ONE_THREAD, child, seconds
from twotowers.analysis.identification import identify
from twotowers.analysis.propensities import CONDITIONAL, SEQUENTIAL, propensities
from twotowers.diagnosis.diagnose import diagnose
from twotowers.logs.click_log import read_log

SIZES = {"full": {"pages": [10**5, 10**6, 10**7]}, "quick": {"pages": [2000]}}
PAGES_OF_A_QUERY = 10
"""On average."""
CELLS = "query, document, position"


def sequential(path: str) -> None:
    """The sequential curve, the conditional one, and the test that chooses between them."""
    curve = propensities(read_log(path, ordered=True), estimator=SEQUENTIAL)
    assert curve.feedback is not None
    curve.feedback.test  # noqa: B018 (which is computed)


PROGRAMS: dict[str, Callable[[str], object]] = {
    "duckdb": lambda path: duckdb.sql(f"{group_by(path, CELLS)} ORDER BY {CELLS}").fetchnumpy(),
    "identify": lambda path: str(identify(path)),
    CONDITIONAL: lambda path: propensities(read_log(path, ordered=True), estimator=CONDITIONAL),
    SEQUENTIAL: sequential,
    "diagnosis": lambda path: diagnose(path).save(Path(path).with_name("page.html")),
}


def run(*, pages: Sequence[int]) -> Iterator[dict]:
    folder = CACHE / "curves"
    folder.mkdir(parents=True, exist_ok=True)
    for number in pages:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            path = str(Path(scratch) / "sessions.parquet")
            sizes = {"pages": number, "queries": number // PAGES_OF_A_QUERY}
            child("benchmarks.counting:generate", path=path, **sizes)
            for name in PROGRAMS:
                measured = child(f"{__name__}:timed", environment=ONE_THREAD, path=path, name=name)
                yield {"program": name, "impressions": number * LENGTH, **measured}


def timed(*, path: str, name: str) -> dict:
    """Seconds of file -> answer, by the clock and of processors."""
    return {"seconds": seconds(lambda: PROGRAMS[name](path)), "processor": time.process_time()}
