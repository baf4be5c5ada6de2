"""EM of click models beside PyClick's, in one run on one log.

PyClick (markovi/PyClick on GitHub; the package of PyPI is another project) is read from PYCLICK.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.clickmodels import log_of, progress, time_fits
from benchmarks.measure import CACHE, child, seconds

SIZES = {"full": {"sessions": 20_000}, "quick": {"sessions": 2_000}}
PYCLICK = CACHE / "pyclick"
TIMED = {"PBM": 3, "UBM": 3, "CCM": 1, "DBN": 1}
"""How many of the 50 rounds of PyClick's EM are timed. The first round copies the fewest
parameters, so later rounds are no faster."""
ROUNDS = 50


def run(*, sessions: int) -> Iterator[dict]:
    """Yield one row for each of our fits, and PyClick's seconds with it if PyClick is there."""
    log = log_of(sessions, sessions // 10)
    for name, timed in TIMED.items():
        (ours,) = time_fits(log, sessions, [name.lower()], converge=False)
        if not PYCLICK.exists():
            progress(f"there is no PyClick in {PYCLICK}")
            yield ours
            continue
        progress(f"{timed} rounds of {name} by PyClick")
        peer = child("benchmarks.beside_pyclick:time_rounds", log=log, name=name)
        yield ours | {"what": "beside PyClick", "peer": peer["seconds"], "rounds": timed}


def time_rounds(*, log: str, name: str) -> dict:
    """How many seconds one round of PyClick's EM takes."""
    sessions = sessions_of(PYCLICK, pq.read_table(f"{log}/train.parquet").to_pylist())
    model = getattr(__import__(f"pyclick.click_models.{name}", fromlist=[name]), name)()
    model._inference.iter_num = TIMED[name]
    return {"seconds": seconds(lambda: model.train(sessions)) / TIMED[name]}


def sessions_of(pyclick: Path | str, pages: Iterable[dict]) -> list:
    """Pages as PyClick's sessions, from a checkout of it."""
    sys.path.insert(0, str(pyclick))
    from pyclick.search_session.SearchResult import SearchResult
    from pyclick.search_session.SearchSession import SearchSession

    sessions = []
    for page in pages:
        session = SearchSession(page["query"])
        results = zip(page["documents"], map(int, page["clicks"]), strict=True)
        session.web_results = [SearchResult(*each) for each in results]
        sessions.append(session)
    return sessions


def compared(rows: list[dict]) -> list[dict]:
    """PyClick's rows, to which the seconds of all of its rounds are added."""
    return [
        row | {"all": ROUNDS * row["peer"], "faster": ROUNDS * row["peer"] / row["seconds"]}
        for row in rows
        if row["what"] == "beside PyClick"
    ]
