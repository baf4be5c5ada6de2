"""Ten click models: seconds from a file of sessions to fitted parameters, and beside two peers.

The log is the stand-in for WSCD-2012 (`twotowers.logs.standin_wscd`). EM stops at TOLERANCE, which
is timed, and then goes on to CONVERGED, which is not: both conditional perplexities of held-out
pages are stated. CLAX runs in the environment of `benchmarks.pbm`. PyClick (markovi/PyClick on
GitHub; the package of PyPI is another project) is read from PYCLICK, if it is there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from benchmarks.counting import THREADS
from benchmarks.measure import CACHE, child, peak, seconds
from twotowers.fitting.pages import (
    Pages,
    PagesEstimate,
    Statistics,
    distinct_pages,
    fit_counts,
    fit_pages,
)
from twotowers.logs.observed_pages import observed_pages, position_counts
from twotowers.logs.sessions import write_sessions
from twotowers.logs.simulation import Sessions
from twotowers.logs.standins import generate_pages
from twotowers.methods.page_fits import imagined, page_losses, unknown_of
from twotowers.methods.task import Split
from twotowers.models.independent import as_pages
from twotowers.models.names import MODELS
from twotowers.models.page import PageModel
from twotowers.models.protocol import PER_DOCUMENT
from twotowers.running.fit import page_perplexities
from twotowers.running.registry import build_model

SIZES = {
    "full": {
        "sessions": [10_000_000, 1_000_000, 100_000], "held_out": 500_000,
        "clax": 1_000_000, "pyclick": 20_000,
    },
    "quick": {"sessions": [2_000], "held_out": 500, "clax": 0, "pyclick": 0},
}  # fmt: skip
LENGTH = 10
PRIOR = imagined(2, 1 / 9)
"""One imagined click in nine trials, as in the baseline of the thesis."""
TOLERANCE, CONVERGED = 3e-4, 1e-5
"""EM stops when a cycle improves its objective by less than this share: first the timed fit, then
the fit that goes on from there."""
MEMORY = "6GB"
"""The memory that DuckDB may use."""
PUBLISHED = {
    "pbm": 121, "ubm": 148, "dbn": 270, "sdbn": 266, "ccm": 112, "dcm": 152, "cm": 136,
    "dctr": 135, "rctr": 56, "gctr": 53,
}  # fmt: skip
"""Seconds of CLAX on an NVIDIA A6000 at 10 M sessions of WSCD-2012."""
PYCLICK = CACHE / "pyclick"
ROUNDS = {"PBM": 3, "UBM": 3, "CCM": 1, "DBN": 1}
"""How many of the 50 rounds of PyClick's EM are timed. The first round copies the fewest
parameters, so later rounds are no faster."""
PYCLICK_ROUNDS = 50
CLAX_TRAINING = {"batch": 8192, "learning_rate": 0.01, "epochs": 100, "limit": 15.0}
"""The authors' own settings for WSCD-2012. `limit` is ours: training ends after the epoch in
which so many seconds have passed."""

GROUP_BY = """
CREATE TABLE pairs AS SELECT query, document, count(*) AS shown, count_if(click) AS clicks
FROM (SELECT query, unnest(documents) AS document, unnest(clicks) AS click
      FROM read_parquet('{path}'))
GROUP BY query, document
"""


def run(*, sessions: list[int], held_out: int, clax: int, pyclick: int) -> Iterator[dict]:
    """Yield one row for each measurement: each fit of ours, each scan, and each model of a peer."""
    here = "benchmarks.clickmodels"
    for number in sessions:
        log = str(_log(number, held_out))
        size = {"sessions": number}
        for name in ("Arrow", "DuckDB"):
            found = child("benchmarks.counting:time_scan", name=name, path=f"{log}/train.parquet")
            yield {"what": f"plain scan, {name}", **size, **found}
        yield {"what": "group-by, DuckDB", **size, **child(f"{here}:time_group_by", log=log)}
        read = child(f"{here}:time_read", log=log)
        for name in MODELS:
            converge = number == max(sessions)
            found = child(f"{here}:time_fit", log=log, name=name, converge=converge)
            yield {"what": "fit", "model": name, **size, **with_reading(found, read)}
        if clax == number:
            yield from _beside_clax(log, number)
    if pyclick and PYCLICK.exists():
        log = str(_log(pyclick, pyclick // 10))
        read = child(f"{here}:time_read", log=log)
        for name in ROUNDS:
            ours = child(f"{here}:time_fit", log=log, name=name.lower(), converge=False)
            ours = with_reading(ours, read)
            peer = child(f"{here}:time_pyclick", log=log, name=name)
            yield {"what": "beside PyClick", "model": name.lower(), "sessions": pyclick, **ours,
                   "peer": peer["seconds"], "rounds": ROUNDS[name]}  # fmt: skip


def _beside_clax(log: str, sessions: int) -> Iterator[dict]:
    from benchmarks.pbm import clax_python

    arrays = f"{log}/arrays.npz"
    child("benchmarks.clickmodels:write_arrays", log=log, path=arrays)
    for name in MODELS:
        peer = child(
            "benchmarks.clax.clickmodels:fit_log", python=clax_python(), path=arrays, name=name,
            **CLAX_TRAINING,
        )  # fmt: skip
        yield {"what": "beside CLAX", "model": name, "sessions": sessions, **peer}


def _log(sessions: int, held_out: int) -> Path:
    """A folder with train.parquet and test.parquet, made once."""
    folder = CACHE / "clickmodels" / str(sessions)
    if not (folder / "test.parquet").exists():
        folder.mkdir(parents=True, exist_ok=True)
        held_out = min(held_out, sessions // 4)
        child("benchmarks.clickmodels:generate", folder=str(folder), train=sessions, test=held_out)
    return folder


def generate(*, folder: str, train: int, test: int) -> dict:
    """Write two files of a stand-in's pages: the first pages to train on, the next ones to test."""
    pages = (
        batch.slice(start, 1000)
        for batch in generate_pages("wscd", sessions=train + test, seed=0)
        for start in range(0, len(batch), 1000)
    )
    for name, size in (("train", train), ("test", test)):
        write_sessions(f"{folder}/{name}.parquet", islice(pages, -(-size // 1000)))
    return {}


def time_group_by(*, log: str) -> dict:
    """Seconds of DuckDB's own count of impressions and clicks of pairs."""
    import duckdb

    with duckdb.connect(config={"memory_limit": MEMORY, "threads": THREADS}) as connection:
        query = GROUP_BY.format(path=f"{log}/train.parquet")
        return {"seconds": seconds(lambda: connection.execute(query))}


def time_read(*, log: str) -> dict:
    """Seconds from the file to distinct pages, which are kept for the fits of all models."""
    start = time.perf_counter()
    pages = observed_pages(f"{log}/train.parquet", {"train": 1.0}, positions=LENGTH, seed=0)
    read = time.perf_counter() - start
    train, size = pages.sessions["train"], len(pages.query)
    distinct = distinct_pages(pages.pair[train.query], train.clicks, train.where, pairs=size)
    found = {"read": read, "reduced": time.perf_counter() - start - read}
    np.savez(f"{log}/pages.npz", **vars(distinct), documents=pages.document)
    return found | {"pairs": size, "distinct": len(distinct.number)}


def time_fit(*, log: str, name: str, converge: bool) -> dict:
    """Seconds from distinct pages to parameters, and the perplexity of held-out pages.

    Models without a parameter per pair (GCTR, RCTR) are counted from the file instead.
    """
    model, path = as_pages(build_model(MODELS[name])), f"{log}/train.parquet"
    documents, found = np.empty(0, int), {}
    if PER_DOCUMENT in model.parts.values():
        with np.load(f"{log}/pages.npz") as file:
            arrays = dict(file)
        documents = arrays.pop("documents")
        distinct = Pages(**arrays | {"pairs": int(arrays["pairs"])})
        start = time.perf_counter()
        statistics = Statistics.of_pages(model, distinct)
    else:
        start = time.perf_counter()
        shown, clicked = position_counts(path, positions=LENGTH)
        found["read"] = time.perf_counter() - start
        start = time.perf_counter()
        where = np.zeros(LENGTH, int), np.arange(LENGTH)
        statistics = Statistics.of_cells(model, *where, shown, clicked, pairs=1, positions=LENGTH)
    found |= {"rows": len(statistics.number), "statistics": time.perf_counter() - start}
    counted, start = hasattr(model, "counts"), time.perf_counter()
    estimate = (
        fit_counts(statistics, prior=PRIOR)
        if counted
        else fit_pages(statistics, prior=PRIOR, tolerance=TOLERANCE)
    )
    found |= {"estimation": time.perf_counter() - start, "fit_gb": peak()}
    test = f"{log}/test.parquet"
    found |= {"cycles": len(estimate.history) - 1, **perplexity(model, estimate, documents, test)}
    if converge and not counted:
        known = estimate.parameters
        after = fit_pages(statistics, start=known, prior=PRIOR, tolerance=CONVERGED)
        final = perplexity(model, after, documents, test)["conditional"]
        found |= {"converged": final, "further": len(after.history) - 1}
    return found


def with_reading(fit: dict, read: dict) -> dict:
    """A fit's row, to which the seconds and memory of reading its log are added."""
    if "read" in fit:
        read = {"read": fit["read"], "reduced": 0.0, "peak_gb": 0.0}
    spent = read["read"], read["reduced"], fit["statistics"], fit["estimation"]
    most = max(read["peak_gb"], fit["fit_gb"])
    return {**fit, **read, "seconds": sum(spent), "fit_gb": most}


def perplexity(model: PageModel, estimate: PagesEstimate, documents: np.ndarray, path: str) -> dict:
    """Both perplexities of held-out pages.

    Each document of this log belongs to one query, so the document alone names the pair.
    """
    shown, clicks = shown_and_clicked(path)
    pair = pd.Index(documents).get_indexer(shown.ravel()).reshape(shown.shape)
    pair = np.where(pair < 0, len(documents), pair)
    unknown = unknown_of(estimate, PRIOR)
    known = {
        part: np.append(values, unknown[part]) if kind == PER_DOCUMENT else values
        for part, values in estimate.parameters.items()
        for kind in [model.parts[part]]
    }
    where, place = np.ones(pair.shape, bool), np.broadcast_to(np.arange(LENGTH), pair.shape)
    pages = Sessions(np.arange(len(pair)), place, clicks, where)
    losses = page_losses(model, known, 0)(Split(pair, where, None, None, sessions=[pages]))
    rows = {metric: value for metric, at, value in page_perplexities(*losses, where) if at is None}
    return {
        "perplexity": float(rows["mean_perplexity"]),
        "conditional": float(rows["mean_conditional_perplexity"]),
    }


def shown_and_clicked(path: str) -> tuple[np.ndarray, np.ndarray]:
    """The documents and the clicks of a file of pages, [pages, LENGTH] each."""
    table = pq.read_table(path, columns=["documents", "clicks"])
    flat = (table[name].combine_chunks().flatten() for name in table.column_names)
    shown, clicks = (each.to_numpy(zero_copy_only=False).reshape(-1, LENGTH) for each in flat)
    return shown, clicks


def write_arrays(*, log: str, path: str) -> dict:
    """Both files as arrays of pair numbers from 1 and clicks, as CLAX takes them."""
    arrays, documents = {}, []
    for split in ("train", "test"):
        shown, arrays[f"{split}.clicks"] = shown_and_clicked(f"{log}/{split}.parquet")
        documents.append(shown)
    number = pd.factorize(np.concatenate(documents).ravel())[0].astype(np.int32) + 1
    train, test = np.split(number.reshape(-1, LENGTH), [len(documents[0])])
    np.savez(path, **arrays, **{"train.pair": train, "test.pair": test})
    return {"pairs": int(number.max())}


def time_pyclick(*, log: str, name: str) -> dict:
    """Seconds of a round of PyClick's EM."""
    sys.path.insert(0, str(PYCLICK))
    from pyclick.search_session.SearchResult import SearchResult
    from pyclick.search_session.SearchSession import SearchSession

    sessions = []
    for page in pq.read_table(f"{log}/train.parquet").to_pylist():
        session = SearchSession(page["query"])
        results = zip(page["documents"], map(int, page["clicks"]), strict=True)
        session.web_results = [SearchResult(*each) for each in results]
        sessions.append(session)
    model = getattr(__import__(f"pyclick.click_models.{name}", fromlist=[name]), name)()
    model._inference.iter_num = ROUNDS[name]
    return {"seconds": seconds(lambda: model.train(sessions)) / ROUNDS[name]}


def fits_at(rows: list[dict], sessions: int) -> dict[str, dict]:
    """Model -> its fit of so many sessions."""
    return {
        row["model"]: row for row in rows if row["what"] == "fit" and row["sessions"] == sessions
    }


def longest(rows: list[dict]) -> list[dict]:
    """The fits of the longest log, beside CLAX's published seconds and the plainest work."""
    sessions = max(row["sessions"] for row in rows)
    plain = {row["what"]: row["seconds"] for row in rows if row["sessions"] == sessions}
    scan = min((plain[what] for what in plain if what.startswith("plain scan")), default=None)
    beside = {"gctr": scan, "rctr": scan, "dctr": plain.get("group-by, DuckDB")}
    beside["cm"] = beside["dctr"]
    found = []
    for name, row in fits_at(rows, sessions).items():
        own, published = beside.get(name), PUBLISHED[name]
        row = row | {"published": published, "faster": published / row["seconds"]}
        row["statistics"] += row["reduced"]
        if own:
            row |= {"plain": own, "times": row["seconds"] / own}
        if "converged" in row:
            row["off"] = row["conditional"] - row["converged"]
        found.append(row)
    return found


def beside_clax(rows: list[dict]) -> list[dict]:
    """The rows that compare with CLAX, to which our seconds on the same pages are added.

    Neither side's seconds contain reading the file.
    """
    found = []
    for row in rows:
        if row["what"] == "beside CLAX":
            ours = fits_at(rows, row["sessions"])[row["model"]]
            own = ours["seconds"] - ours["read"]
            reached = ours["conditional"] <= row["conditional"]
            found.append(
                row
                | {"own": own, "own_conditional": ours["conditional"], "reached": reached}
                | {"faster": row["seconds"] / own, "read": ours["read"]}
            )
    return found


def beside_pyclick(rows: list[dict]) -> list[dict]:
    """The rows that compare with PyClick, to which the seconds of all of its rounds are added."""
    found = [row for row in rows if row["what"] == "beside PyClick"]
    return [
        row | {"all": PYCLICK_ROUNDS * row["peer"]}
        | {"faster": PYCLICK_ROUNDS * row["peer"] / row["seconds"]}
        for row in found
    ]  # fmt: skip


def by_sessions(rows: list[dict]) -> list[dict]:
    """One row per model, with its seconds and memory at each number of sessions."""
    sizes = sorted({row["sessions"] for row in rows if row["what"] == "fit"})
    found = []
    for name in dict.fromkeys(row["model"] for row in rows if row["what"] == "fit"):
        row = {"model": name}
        for size in sizes:
            own = fits_at(rows, size).get(name, {})
            row |= {f"{key} {size}": own.get(key) for key in ("seconds", "fit_gb")}
        found.append(row)
    return found
