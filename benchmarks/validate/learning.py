"""What else meets a ranker that learns from clicks: `diagnose`, harvesting, EM, and forecasts.

`python -m benchmarks.validate lights` diagnoses logs of ten cases of `feedback`, and compares both
curves with the truth: by how many of its errors the farthest position without doubt is off.
Threshold, committed before the first run: where the curve that the page gives is off by more than
4 errors at a position without doubt, neither the second nor the third answer is green.

`python -m benchmarks.validate elsewhere` has no threshold. Over draws, it has the mean difference
of the log-ratios of examination from the truth by each estimator; the attraction of a
position-based model, fitted by EM with the default prior, relative to the truth (the mean over
impressions); and how many times as long as its first half the whole log is, by the forecast of the
half. It is 2.

`python -m benchmarks.validate moves` asks the test of feedback of a real log, and of stand-ins,
whose rankings follow no click. The pages of the real log have no times; they are taken in the order
of the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import twotowers as tt
from benchmarks.pages import yes
from benchmarks.validate.feedback import CASES, PAGE, PLACES, attractions, simulate
from benchmarks.validate.study import Study
from scripts.filling import markdown
from twotowers.analysis.propensities import SEQUENTIAL, WITHOUT_GRAPH
from twotowers.fitting.curves import Curve
from twotowers.root import ROOT
from twotowers.standins import wscd
from twotowers.standins.logs import generate_pages

LIGHTS = (
    *("random ranker", "random ranker, sparse", "click rates .1", "click rates 1"),
    *("click rates 1, sparse", "bandit", "retrained daily 1", "two layouts, click rates 1"),
    *("users differ, click rates 1", "few users differ"),
)
ELSEWHERE = "random ranker", "click rates 1", "click rates 1, sparse", "bandit", "retrained daily 1"
REAL = "yandex sample"
YANDEX = ROOT.parent / "shared" / "data" / "yandex_20_queries" / "trainSample"
STANDINS = {"yandex": generate_pages, "wscd": wscd.generate_pages}
"""Those that have pages; `tiangong` is counted."""
WRONG = 4
"""Errors by which a curve is off that is called wrong."""


def drawn(case: str, seed: int) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """A row per shown document, in the order of time; the true curve; and the bias columns."""
    settings = CASES[case]
    log, truth = simulate(np.random.default_rng([17, seed]), **settings)
    page = np.arange(len(log["pair"])) // PLACES
    rows = {
        "session": page,
        "query": log["query"],
        "document": log["pair"],
        "position": log["factor"] % PLACES + 1,
        "layout": log["factor"] // PLACES,
        "clicks": log["click"],
        "time": 1_700_000_000 + 7 * page,
        "user": log["user"],
    }
    unknown = [
        name for name, known in (("layout", "layouts"), ("user", "users")) if known not in settings
    ]
    bias = ["position", *(["layout"] if "layouts" in settings else [])]
    return pd.DataFrame(rows).drop(columns=unknown), truth, bias


def off(curve: Curve, truth: np.ndarray) -> float:
    """How many standard errors the worst position without a doubt lies off the truth.

    It is NaN if all positions have a doubt.
    """
    places = curve.names["position"].to_numpy() - 1
    layout = curve.names["layout"].to_numpy() if "layout" in curve.names else 0
    sure = (curve.reason == "") & (np.arange(len(places)) != curve.reference)
    distance = np.log(curve.estimate / truth[layout * PLACES + places])[sure] / curve.error[sure]
    return float(np.abs(distance).max()) if sure.any() else np.nan


def lights(case: str, seed: int) -> list[dict]:
    """One row: the colours of the answers, and how far both curves are off."""
    rows, truth, bias = drawn(case, seed)
    diagnosis = tt.diagnose(rows, bias=bias)
    found = tt.propensities(rows, bias=bias)
    sound, able, advice = (each.colour for each in diagnosis.recommendations)
    conditional = found.curve if found.conditional is None else found.conditional
    return [
        {
            "case": case,
            "seed": seed,
            "sound": sound,
            "able": able,
            "advice": advice,
            "curve": found.estimator,
            "off": off(found.curve, truth),
            "conditional": off(conditional, truth),
            "doubtful": (found.curve.reason != "").mean(),
        }
    ]


def elsewhere(case: str, seed: int) -> list[dict]:
    """A row per quantity."""
    rows, truth, _ = drawn(case, seed)
    settings = {name: CASES[case][name] for name in ("queries",) if name in CASES[case]}
    true = attractions(np.random.default_rng([17, seed]), **settings).ravel()
    automatic = tt.propensities(rows)
    found = {
        name: np.log(tt.propensities(rows, estimator=name).curve.estimate / truth)[1:].mean()
        for name in ("conditional", SEQUENTIAL, *WITHOUT_GRAPH)
    }
    fit = tt.fit(rows, "pbm")
    examined = fit.parameters("examination")["estimate"].to_numpy()
    found["pbm"] = np.log(examined / examined[0] / truth)[1:].mean()
    pairs = fit.relevance()
    shown, document = (pairs[name].to_numpy() for name in ("impressions", "document"))
    # The fit's attraction is scaled by its examination of the first position.
    estimate = pairs["estimate"].to_numpy() * examined[0]
    found["attraction"] = (shown * estimate).sum() / (shown * true[document]).sum() - 1
    half = tt.propensities(rows[: len(rows) // 2 // PLACES * PLACES])
    times = [half.needed(error)["times"][k] for k, error in enumerate(automatic.curve.error) if k]
    found["forecast"] = float(np.median(times))
    return [{"case": case, "quantity": name, "value": value} for name, value in found.items()]


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per case and quantity."""
    group = rows.groupby(["case", "quantity"], sort=False)["value"]
    table = group.agg(["mean", "sem", "size"]).reset_index()
    return table.rename(columns={"sem": "error", "size": "draws"})


def moves(case: str, seed: int) -> list[dict]:
    """One row: what the test says of a log; none if the real log is not on this machine."""
    if case == REAL and not YANDEX.is_file():
        return []
    pages = [] if case == REAL else STANDINS[case](sessions=40_000, seed=seed)
    log = YANDEX if case == REAL else pa.Table.from_batches(pages)
    found = tt.propensities(log)
    test = found.feedback.test
    row = {"log": case, "pages": found.log.pages, "curve": found.estimator, "p": test.p}
    return [row | {name: getattr(test, name) for name in ("value", "low", "high")}]


STUDIES = {
    "moves": Study("feedback_moves", "log", (REAL, *STANDINS), moves, first=1),
    "lights": Study("feedback_lights", "case", LIGHTS, lights, draws=2),
    "elsewhere": Study("feedback_elsewhere", "case", ELSEWHERE, elsewhere, means, draws=10),
}


def wrong(table: pd.DataFrame) -> pd.Series:
    """[rows] whether the second or the third light is green although the curve is wrong."""
    return (table["off"] > WRONG) & ((table["able"] == "green") | (table["advice"] == "green"))


def tables() -> dict[Path, dict[str, str]]:
    """The tables of docs/propensities.md."""
    table = STUDIES["lights"].table()
    words, errors = ["case", "sound", "able", "advice", "curve"], ["off", "conditional"]
    numbers = table[errors].map("{:.1f}".format).replace("nan", "–")
    cells = zip(table[words].to_numpy(), numbers.to_numpy(), wrong(table), strict=True)
    rows = [[*text, *number, yes(bad)] for text, number, bad in cells]
    heads = [*words, "off by, errors", "conditional off by"]
    found = {"lights": markdown([*heads, "green on a wrong curve"], rows)}
    table = STUDIES["elsewhere"].table()
    names = list(dict.fromkeys(table["quantity"]))
    titles = {"pbm": "pbm by EM", "attraction": "its attraction", "forecast": "forecast of 2"}
    rows = []
    for case, group in table.groupby("case", sort=False):
        own = group.set_index("quantity")
        cells = [f"{own.loc[name, 'mean']:.3f} ({own.loc[name, 'error']:.3f})" for name in names]
        rows.append([case, *cells])
    heads = ["case", *(titles.get(name, name.replace("_", " ")) for name in names)]
    found["elsewhere"] = markdown(heads, rows)
    table = STUDIES["moves"].table()
    rows = [
        [row.log, f"{row.pages:,}", f"{row.value:.3f} ({row.low:.3f} to {row.high:.3f})",
         f"{row.p:.2f}", row.curve]
        for row in table.itertuples()
    ]  # fmt: skip
    heads = ["log", "pages", "positions that a click moves up", "p", "curve"]
    return {PAGE: found | {"moves": markdown(heads, rows)}}
