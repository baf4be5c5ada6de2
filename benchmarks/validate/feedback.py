"""Curves of examination where rankers learn from clicks, or users differ: coverage.

Each case of `python -m benchmarks.validate feedback` simulates logs of position-based users. Fitted
are the conditional curve, the sequential one, and the one that the test of feedback chooses. The
table has, over draws and positions, the share of intervals without doubt that hold the truth, the
share of doubtful ones, the bias and the standard deviation of log-ratios, the length of intervals,
and how often the test rejects at 5 %.

Thresholds, committed before the first run: of the curve that is chosen, where it is not called
doubtful, .92 to .98 of the intervals hold the truth in every case; the test rejects in .03 to .08
of the logs without feedback.

`python -m benchmarks.validate users` compares errors by query with those by query and user, for so
many users whose activity follows Zipf's law. Threshold, committed before the first run: .92 to .98
of the intervals by query and user that are not doubtful hold the truth.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.pages import table, yes
from benchmarks.validate.study import Study, held
from twotowers.analysis.feedback import LEVEL, moves_after_clicks
from twotowers.claims.statistics import select
from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.curves import Curve, active_users, cluster_by_user
from twotowers.fitting.pair_counts import PairCounts
from twotowers.fitting.sequential import Displays, fit_sequential
from twotowers.root import ROOT

COVERAGE, SIZE = (0.92, 0.98), (0.03, 0.08)
CASES = {
    "random ranker": {},
    "drifting ranker": {"ranker": "drift"},
    "ranker that walks": {"ranker": "walk"},
    "random ranker, sparse": {"queries": 3000, "rounds": 5},
    "click rates .1": {"feedback": 0.1},
    "click rates .25": {"feedback": 0.25},
    "click rates .5": {"feedback": 0.5},
    "click rates 1": {"feedback": 1.0},
    "click rates 1, sparse": {"feedback": 1.0, "queries": 3000, "rounds": 5},
    "click rates 1, few queries": {"feedback": 1.0, "queries": 30, "rounds": 200},
    "click rates 1, twelve documents": {"feedback": 1.0, "documents": 12},
    "bandit": {"ranker": "bandit", "feedback": 1.0},
    "bandit, twelve documents": {"ranker": "bandit", "feedback": 1.0, "documents": 12},
    "retrained daily .25": {"ranker": "daily", "feedback": 0.25},
    "retrained daily 1": {"ranker": "daily", "feedback": 1.0},
    "two layouts": {"layouts": 2},
    "two layouts, click rates 1": {"feedback": 1.0, "layouts": 2},
    "users alike": {"users": 50},
    "users differ": {"users": 50, "spread": 0.4},
    "users differ, 1000 of them": {"users": 1000, "spread": 0.4},
    "users differ, click rates 1": {"users": 1000, "spread": 0.4, "feedback": 1.0},
    "few users differ": {"users": 20, "spread": 0.4, "activity": 1.3},
}
USERS = {
    f"{users} users, activity {activity:g}": {
        "users": users, "activity": activity, "spread": 0.4, "rounds": 30
    }
    for users, activity in ((20, 0.0), (50, 0.0), (50, 1.0), (200, 1.0), (200, 1.3), (1000, 1.3))
}  # fmt: skip
SHOWN = (
    *("random ranker", "random ranker, sparse", "click rates .25", "click rates 1"),
    *("click rates 1, sparse", "bandit", "retrained daily 1", "users differ", "few users differ"),
)
"""Cases that the page has rows for."""
CURVES = ("conditional", "sequential", "chosen")
PLACES = 6
PAGE = ROOT / "docs" / "propensities.md"


def attractions(rng: np.random.Generator, queries: int = 200, documents: int = 6) -> np.ndarray:
    """[queries, documents] chance that an examined document is clicked."""
    return 0.03 + 0.9 * rng.beta(1.2, 4, size=(queries, documents))


def simulate(
    rng: np.random.Generator, *, queries: int = 200, rounds: int = 60, documents: int = 6,
    ranker: str = "rates", feedback: float = 0.0, layouts: int = 1, users: int = 0,
    spread: float = 0.0, activity: float = 1.0,
) -> tuple[dict[str, np.ndarray], np.ndarray]:  # fmt: skip
    """The displays of a log in the order of time, and the true examination of each bias factor.

    In each round every query is asked once. Examination is rank^-1, in a second layout rank^-1/2; a
    user's exponent differs from that by `spread`, and the truth is the mean over all users of whom
    those of the log are a sample.
    """
    rank = np.arange(1, PLACES + 1)
    attraction = attractions(rng, queries, documents)
    score = 0.5 * rng.normal(size=(queries, documents))
    shown, clicked, known = (np.zeros((queries, documents)) for _ in range(3))
    share = np.arange(1, max(users, 1) + 1.0) ** -activity
    share /= share.sum()
    habit = spread * rng.normal(size=len(share))
    exponent = np.array([1.0, 0.5])[:layouts]
    rows: list[np.ndarray] = []
    for number in range(rounds):
        if ranker == "walk":
            score = score + 0.2 * rng.normal(size=score.shape)
        if ranker != "daily" or number % 10 == 0:
            known = (clicked + 1) / (shown + 5)
        noisy = score + 6 * feedback * known + rng.gumbel(size=score.shape)
        if ranker == "drift":
            noisy += 0.03 * number * np.sin(np.arange(documents))
        if ranker == "bandit":
            noisy = rng.beta(clicked + 1, shown - clicked + 4)
        order = np.argsort(-noisy, 1)[:, :PLACES]
        layout, user = rng.integers(layouts, size=queries), rng.choice(len(share), queries, p=share)
        chance = rank ** -(exponent[layout] + habit[user])[:, None]
        chance = np.minimum(chance * np.take_along_axis(attraction, order, 1), 1)
        click = rng.random(chance.shape) < chance
        for total, more in ((shown, 1), (clicked, click)):
            np.put_along_axis(total, order, np.take_along_axis(total, order, 1) + more, 1)
        query = np.arange(queries)[:, None]
        factor = layout[:, None] * PLACES + rank - 1
        columns = (query, query * documents + order, factor, click, user[:, None])
        rows.append(np.stack([np.broadcast_to(each, order.shape).ravel() for each in columns]))
    names = ("query", "pair", "factor", "click", "user")
    # rank ** -habit has this mean if habits are normal.
    truth = rank ** -exponent[:, None] * np.exp((spread * np.log(rank)) ** 2 / 2)
    return dict(zip(names, np.concatenate(rows, 1), strict=True)), truth.ravel()


def curves(log: dict[str, np.ndarray], layouts: int, *, users: bool):
    """The conditional and the sequential curve, and the test of feedback.

    Args:
        users: whether errors are clustered by user, too.
    """
    places = np.arange(layouts * PLACES)
    names = pd.DataFrame({"position": places % PLACES + 1, "layout": places // PLACES})
    user = log["user"] if users else None
    query, pair, factor, click = (log[each] for each in ("query", "pair", "factor", "click"))
    displays = Displays.of_rows(pair, factor, click, query=query, user=user, names=names)
    conditional = conditional_of(log, names)
    if users:
        conditional = two_way(conditional, log)
    return conditional, fit_sequential([displays]), moves_after_clicks([displays])


def conditional_of(log: dict[str, np.ndarray], names: pd.DataFrame) -> Curve:
    """The conditional curve, with errors by query."""
    pair, factor, click = (log[each] for each in ("pair", "factor", "click"))
    one = np.ones(len(pair))
    counts = PairCounts.of_arrays(pair, factor, one, click, query=log["query"], names=names)
    return fit_conditional(counts)


def two_way(curve: Curve, log: dict[str, np.ndarray]) -> Curve:
    """The conditional curve with errors by query and user."""
    rows = pd.DataFrame({**log, "clicks": log["click"], "impressions": 1})
    by = ["pair", "factor", "query", "user"]
    return cluster_by_user(curve, rows.groupby(by, as_index=False)[["impressions", "clicks"]].sum())


def one_draw(case: str, seed: int) -> list[dict]:
    settings = CASES[case]
    log, truth = simulate(np.random.default_rng([11, seed]), **settings)
    layouts, users = settings.get("layouts", 1), "users" in settings
    conditional, sequential, test = curves(log, layouts, users=users)
    chosen = sequential if test.p < LEVEL else conditional
    return [
        {"case": case, "curve": name, "rejects": test.p < 0.05, **judged(curve, truth)}
        for name, curve in zip(CURVES, (conditional, sequential, chosen), strict=True)
    ]


def judged(curve: Curve, truth: np.ndarray) -> dict:
    """How a curve relates to the truth: intervals without doubt that hold it, bias and length."""
    other = np.arange(len(truth)) != curve.reference
    bias, length = np.log(curve.estimate / truth), np.log(curve.high / curve.low)
    return held(curve, truth) | {"bias": bias[other].mean(), "length": length[other].mean()}


def user_draw(case: str, seed: int) -> list[dict]:
    """A row with errors by query, and one with errors by query and user."""
    log, truth = simulate(np.random.default_rng([13, seed]), **USERS[case])
    curve = conditional_of(log, pd.DataFrame({"position": np.arange(1, PLACES + 1)}))
    active, both = active_users(log["user"]), two_way(curve, log)
    return [
        {"case": case, "curve": name, "active": active, **judged(each, truth)}
        for name, each in (("by query", curve), ("by query and user", both))
    ]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    group = rows.groupby(["case", "curve"], sort=False)
    sums = group[["inside", "sure", "factors"]].sum()
    means = group[[*({"rejects", "active"} & {*rows}), "bias", "length"]].mean()
    means.insert(0, "coverage", sums["inside"] / sums["sure"])
    means.insert(1, "doubtful", 1 - sums["sure"] / sums["factors"])
    return means.assign(deviation=group["bias"].std(), draws=group.size()).reset_index()


STUDIES = {
    "feedback": Study("feedback", "case", CASES, one_draw, summary, draws=200),
    "users": Study("feedback_users", "case", USERS, user_draw, summary, draws=100),
}


def tables() -> dict[Path, dict[str, str]]:
    cases = select(STUDIES["feedback"].table(), case=SHOWN)
    return {
        PAGE: {
            "feedback": table(
                wide(cases, "chosen"),
                "case | coverage, conditional = coverage conditional : .3f | "
                "sequential = coverage sequential : .3f | chosen = coverage chosen : .3f | "
                "bias, conditional = bias conditional : .3f | sequential = bias sequential : .3f | "
                "doubtful : .2f | the test rejects = rejects : .3f | meets the threshold = verdict",
            ),
            "users": table(
                wide(STUDIES["users"].table(), "by query and user"),
                "case | effective users = active : .1f | coverage by query : .3f | "
                "by query and user = coverage by query and user : .3f | doubtful : .2f | "
                "meets the threshold = verdict",
            ),
        }
    }


def wide(rows: pd.DataFrame, judged: str) -> list[dict]:
    """A row per case: of the curve that is judged all, of each one coverage and bias; verdict."""
    found = []
    for _, group in rows.groupby("case", sort=False):
        own = group.set_index("curve")
        row = own.loc[judged].to_dict() | {"case": group["case"].iloc[0]}
        row |= {f"{name} {curve}": own.loc[curve, name] for name in ("coverage", "bias")
                for curve in own.index}  # fmt: skip
        meets = COVERAGE[0] <= row["coverage"] <= COVERAGE[1]
        verdict = "all doubtful" if row["doubtful"] == 1 else yes(bool(meets))
        found.append(row | {"verdict": verdict})
    return found
