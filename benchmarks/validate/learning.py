"""What `diagnose` makes of logs of rankers that learn from clicks, and of users who differ.

`python -m benchmarks.validate lights` diagnoses logs of ten cases of `feedback`, and compares both
curves with the truth: by how many of its errors the farthest position without doubt is off.
Threshold, committed before the first run: where the curve that the page gives is off by more than
4 errors at a position without doubt, neither the second nor the third answer is green.
"""

from pathlib import Path

import numpy as np
import pandas as pd

import twotowers as tt
from benchmarks.validate.feedback import CASES, PAGE, PLACES, simulate
from benchmarks.validate.study import Study
from twotowers.fitting.curves import Curve

LIGHTS = (
    *("random ranker", "random ranker, sparse", "click rates .1", "click rates 1"),
    *("click rates 1, sparse", "bandit", "retrained daily 1", "two layouts, click rates 1"),
    *("users differ, click rates 1", "few users differ"),
)
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
    chosen = tt.propensities(rows, bias=bias)
    sound, able, advice = (each.colour for each in diagnosis.recommendations)
    conditional = chosen.curve if chosen.conditional is None else chosen.conditional
    row = {"case": case, "seed": seed, "sound": sound, "able": able, "advice": advice}
    row |= {"curve": chosen.estimator, "off": off(chosen.curve, truth)}
    row |= {"conditional": off(conditional, truth)}
    return [row | {"doubtful": (chosen.curve.reason != "").mean()}]


STUDIES = {"lights": Study("feedback_lights", "case", LIGHTS, lights, draws=2)}


def wrong(table: pd.DataFrame) -> pd.Series:
    """[rows] whether the second or the third light is green although the curve is wrong."""
    return (table["off"] > WRONG) & ((table["able"] == "green") | (table["advice"] == "green"))


def tables() -> dict[Path, dict[str, str]]:
    table = STUDIES["lights"].table()
    counted = [len(table), (table["off"] > WRONG).sum(), (table["conditional"] > WRONG).sum()]
    words = "Of {} logs {} have such a curve, {} such a conditional one".format(*counted)
    return {PAGE: {"lights": f"{words}; green on a wrong curve: {wrong(table).sum()}."}}
