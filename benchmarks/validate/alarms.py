"""What `tt.diagnose` says of logs whose truth is known; and its time and memory.

Logs are those of `benchmarks.validate.coverage`. These limits of `alarms` were committed before any
of it was run, and chosen without other seeds:

* `STOPS`: the share of logs of users who do not stop, product or additive, of whom the page says
  that they do.
* `NOTICED`: the share of logs of cascade users that it notices.
* `WRONG_FORM`: the share of logs of product users of whom it says that odds describe them better.
* `SILENT`: the share of logs of additive users at which the third recommendation is green although
  the product curve's interval excludes a true ratio of odds. Both forms agree on rare clicks.

A first run, of 9 draws, had errors of the difference of both curves as if they were independent. It
missed `SILENT` (.33 of sparse logs of additive users). Since then queries' steps in both curves are
subtracted, and the seeds are others.

`times` measures the programs.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import child
from benchmarks.pages import yes
from benchmarks.validate.coverage import SETTINGS, draw_pages
from benchmarks.validate.study import RESULTS, Study
from scripts.filling import markdown
from twotowers.analysis.identification import identify
from twotowers.analysis.propensities import propensities
from twotowers.claims.statistics import select
from twotowers.diagnosis import rules
from twotowers.diagnosis.diagnose import diagnose
from twotowers.diagnosis.evidence import gather
from twotowers.logs.click_log import read_log
from twotowers.root import ROOT

STOPS, NOTICED, WRONG_FORM, SILENT = 0.03, 0.95, 0.05, 0.2
FIRST = 100
"""Seed; those below were seen."""
PAGE = ROOT / "docs" / "diagnosis.md"
REAL = {"mq2008": "MQ2008", "mslr_sample": "sample of MSLR-WEB30K"}
JUDGED = (
    "sparse",
    "sparse, following",
    "sparse, known, high rate",
    "sparse, additive",
    "sparse, additive, known",
    "sparse, cascade",
    "dense, cascade",
)


def one_draw(name: str, seed: int) -> list[dict]:
    """What is recommended of one log."""
    query, order, clicks, _, truth = draw_pages(SETTINGS[name], seed)
    pages = pa.table({"query": query, "documents": list(order), "clicks": list(clicks)})
    evidence = gather(read_log(pages), ["position"], models=())
    curve = evidence.curve
    with np.errstate(invalid="ignore"):
        missed = evidence.reliable & ((truth < curve.low) | (truth > curve.high))
    assert evidence.above is not None
    row = {
        "setting": name,
        "users": SETTINGS[name].users,
        "seed": seed,
        "stops": rules.clicks_above(evidence) == "fewer",
        "ratio": evidence.above.ratio,
        "form": rules.form_of(evidence),
        "differ": int(evidence.differ.sum()),
        "able": rules.first(rules.ABLE, evidence).colour,
        "advice": rules.first(rules.ADVICE, evidence).colour,
        "missed": int(missed.sum()),
    }
    return [row]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per setting, with the limits that apply."""
    rows = rows.assign(
        odds=rows["form"] == "odds",
        undecided=rows["form"] == "open",
        silent=(rows["advice"] == "green") & (rows["missed"] > 0),
    )
    named = rows.groupby("setting", sort=False)
    means = named[["stops", "ratio", "odds", "undecided", "silent"]].mean()
    means["draws"], means["users"] = named.size(), named["users"].first()
    cascade, additive = means["users"] == "cascade", means["users"] == "additive"
    means["meets"] = np.where(cascade, means["stops"] >= NOTICED, means["stops"] <= STOPS)
    means.loc[additive, "meets"] &= means["silent"] <= SILENT
    means.loc[means["users"] == "product", "meets"] &= means["odds"] <= WRONG_FORM
    return means.reset_index()


def page_of_draws() -> str:
    """A row per setting."""
    rows = [
        [
            row["setting"],
            row["users"],
            *(f"{row[name]:.2f}" for name in ("stops", "odds", "undecided", "silent")),
            f"{row['ratio']:.2f}",
            yes(bool(row["meets"])),
        ]
        for row in STUDIES["alarms"].table().to_dict("records")
    ]
    heads = ["logs", "users", "says that they stop", "odds are better", "form is undecided"]
    heads += ["green, and wrong", "odds ratio", "meets the limits"]
    return markdown(heads, rows)


def page_of_times() -> str:
    """A row per size and program."""
    rows = [
        [
            f"{row['rows']:,}",
            row["program"],
            *(f"{row[name]:.3g}" for name in ("seconds", "cpu", "peak_gb")),
        ]
        for row in select(STUDIES["times"].table(), rows=[10**6, 10**8]).to_dict("records")
    ]
    return markdown(["rows", "program", "seconds", "seconds on cores", "GB"], rows)


def write_log(*, path: str, rows: int) -> dict:
    """A log of rows of ten documents a page: queries follow a power law."""
    rng = np.random.default_rng(0)
    number, queries, before, writer = rows // 10, max(rows // 2_000, 100), 0, None
    popular = np.cumsum(1 / np.arange(1, queries + 1) ** 0.7)
    while before < number:
        size = min(100_000, number - before)
        query = np.searchsorted(popular, rng.random(size) * popular[-1])
        order = np.argsort(np.arange(12) + rng.normal(0, 1, (size, 12)), 1)[:, :10]
        pull = ((query[:, None] * 7919 + order * 104729) % 1000 / 1000) ** 4
        clicks = rng.random((size, 10)) < pull / np.arange(1, 11)
        table = pa.table(
            {
                "session": np.repeat(np.arange(before, before + size), 10),
                "query": np.repeat(query, 10),
                "document": order.ravel(),
                "position": np.tile(np.arange(1, 11), size),
                "clicks": clicks.ravel().astype(np.int8),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        before += size
    writer.close()
    return {"rows": number * 10}


def count_by_duckdb(path: str) -> None:
    """DuckDB's group-by of a log into cells."""
    statement = (
        "SELECT query, document, position, count(*) AS impressions, sum(clicks) AS clicks "
        f"FROM read_parquet('{path}') GROUP BY ALL ORDER BY ALL"
    )
    duckdb.sql(statement).fetchnumpy()


PROGRAMS = {
    "duckdb": count_by_duckdb,
    "identify": lambda path: print(identify(path)),
    "propensities": lambda path: propensities(path).frame(),
    "diagnosis": lambda path: diagnose(path).save(Path(path).with_name("page.html")),
}
"""What is timed, each from the file of a log on."""


def time_program(*, name: str, path: str) -> dict:
    """Run a program; return the seconds that passed, and those that cores worked."""
    start = time.perf_counter()
    PROGRAMS[name](path)
    return {"seconds": time.perf_counter() - start, "cpu": time.process_time()}


def draw_times(rows: str, seed: int) -> list[dict]:
    """A row per program. Seconds on cores hardly depend on what else runs."""
    names = ("rows", "program", "seconds", "cpu", "peak_gb")
    with tempfile.TemporaryDirectory() as folder:
        path, table = str(Path(folder) / "log.parquet"), []
        child(f"{__name__}:write_log", path=path, rows=int(rows))
        for name in PROGRAMS:
            measured = child(f"{__name__}:time_program", name=name, path=path)
            measured |= {"rows": int(rows), "program": name}
            table.append({name: measured[name] for name in names})
    return table


STUDIES = {
    "alarms": Study("diagnosis", "setting", JUDGED, one_draw, summary, draws=20, first=FIRST),
    "times": Study("diagnosis_times", "rows", ("1000000", "10000000", "100000000"), draw_times),
}


def page_of_misfits() -> str:
    """A row per model and law of Hausman's test, from the results of studies that are gone."""
    simulated, real = (pd.read_csv(RESULTS / f"{name}.csv") for name in ("misfit", "misfit_real"))
    rows = []
    for name, own in simulated[simulated["tested"] > 0].groupby("setting", sort=False):
        error = f"{own['error'].min():.2f} to {own['error'].max():.2f}"
        rows.append([name, own["draws"].max(), ", ".join(map(str, own["alarms"])), error])
    for data, own in real.groupby("data"):
        words = f"{REAL[data]}: {', '.join(own['law'])}"
        rows.append([words, own["tests"].max(), ", ".join(map(str, own["alarms"])), "–"])
    return markdown(["model; or data: relevance", "draws", "alarms", "error"], rows)


def tables() -> dict[Path, dict[str, str]]:
    """The tables of docs/diagnosis.md."""
    texts = page_of_draws(), page_of_misfits(), page_of_times()
    return {PAGE: dict(zip(("diagnosis", "misfit", "times"), texts, strict=True))}
