"""Bias, coverage and length of every estimate of examination, on logs whose truth is known.

`python -m benchmarks.validate coverage` writes a row per setting, estimator and bias factor. Its
thresholds were committed before the grid was run. Pilot runs on other seeds and other settings
chose the default (the jackknife over queries with Student's t) and the numbers of swaps and queries
that are enough (`twotowers.fitting.curves`).

The thresholds count intervals without doubt, draw by draw. Whether a draw is beyond doubt depends
on its clicks, and so on its estimate: close to 20 swaps, those that are counted estimate too much.
So the page also has the coverage of all intervals, which was added after the first failure was
seen.

Settings differ in one thing at a time from a sparse log of position-based users, whose relevance
does not depend on rank and whose pages show many swaps:

* sparse: 8,000 pages of 3,000 queries; dense: 30,000 pages of 100 queries; few queries: one query
  has half of the traffic.
* relevance: independent of rank; following it (the ranking sorts attraction with noise); known to
  the policy (it sorts attraction).
* users: product (examination times attraction), additive (log-odds), cascade (they read on with
  .9, and with .5 after a click, so examination depends on what is shown above). For cascades the
  truth is the mean examination of a position; the estimates are not about that alone, so this
  setting is shown and not judged.
* swaps: many (each page shuffles its ranking a little) or few (one page in 50 swaps two
  documents, others are all alike).
* two factors: position and device, a value per combination, which is no product of two effects.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.pages import table, yes
from benchmarks.validate.study import Study
from twotowers.claims.statistics import frequency_interval
from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.harvesting import harvest
from twotowers.fitting.pair_counts import PairCounts
from twotowers.randomness import stream
from twotowers.root import ROOT

COVERAGE = (0.92, 0.98)
"""The default's coverage, per setting over all bias factors: intervals without a reason to doubt.

Enough is 20 effective swaps of 4 effective queries, see `twotowers.fitting.curves`.
"""
CERTAINTY = 0.999
"""For single factors: Wilson's interval of that level has to meet COVERAGE.

200 draws give a coverage of .95 with an error of .015, so some of a hundred factors lie outside.
"""
SILENT = 0.08
"""At most this share of a setting's intervals may exclude the truth without a reason."""

PAGE = ROOT / "docs" / "propensities.md"
EXAMINATION = np.array([1, 0.87, 0.46, 0.30, 0.21, 0.12, 0.10, 0.09, 0.06, 0.09])
ON_PHONES = EXAMINATION ** np.linspace(1.1, 1.6, 10) * 0.8


@dataclass(frozen=True)
class Setting:
    """A world to draw logs from.

    Attributes:
        pages, queries, documents: their numbers; documents per query, of which ten are shown.
        skew: of the traffic of queries, a power law.
        rate: mean attraction.
        relevance: 'independent', 'following' or 'known'.
        users: 'product', 'additive' or 'cascade'.
        swaps: 'many' or 'few'.
        devices: 1 or 2.
        judged: the estimator whose coverage the thresholds are about; none for cascades.
    """

    pages: int = 8_000
    queries: int = 3_000
    documents: int = 12
    skew: float = 0.7
    rate: float = 0.15
    relevance: str = "independent"
    users: str = "product"
    swaps: str = "many"
    devices: int = 1
    judged: str | None = "conditional"


SPARSE = Setting()
DENSE = replace(SPARSE, pages=30_000, queries=100)
SETTINGS = {
    "sparse": SPARSE,
    "sparse, following": replace(SPARSE, relevance="following"),
    "sparse, known": replace(SPARSE, relevance="known"),
    "sparse, known, high rate": replace(SPARSE, relevance="known", rate=0.4),
    "sparse, few swaps": replace(SPARSE, relevance="following", swaps="few"),
    "sparse, additive": replace(SPARSE, users="additive", judged="additive"),
    "sparse, additive, known": replace(
        SPARSE, users="additive", relevance="known", rate=0.4, judged="additive"
    ),
    "sparse, cascade": replace(SPARSE, users="cascade", relevance="following", judged=None),
    "sparse, two factors": replace(SPARSE, relevance="following", devices=2),
    "sparse, few queries": replace(SPARSE, relevance="following", skew=1.8),
    "dense": replace(DENSE),
    "dense, following": replace(DENSE, relevance="following"),
    "dense, known, high rate": replace(DENSE, relevance="known", rate=0.4),
    "dense, few swaps": replace(DENSE, relevance="following", swaps="few"),
    "dense, cascade": replace(DENSE, users="cascade", relevance="following", judged=None),
}


def draw(setting: Setting, seed: int) -> tuple[PairCounts, np.ndarray]:
    """Counts of one log, and the true ratios: of odds for additive users."""
    query, order, clicks, device, truth = draw_pages(setting, seed)
    factor = np.arange(10) * setting.devices + device[:, None]
    position = np.repeat(np.arange(1, 11), setting.devices)
    device = np.tile(np.arange(setting.devices), 10)
    names = pd.DataFrame({"position": position, "device": device})
    pair = (query[:, None] * setting.documents + order).ravel()
    rows = pair, factor.ravel(), np.ones(order.size), clicks.ravel()
    return PairCounts.of_arrays(*rows, query=np.repeat(query, 10), names=names, every=True), truth


def draw_pages(setting: Setting, seed: int) -> tuple[np.ndarray, ...]:
    """Of one log, [pages] query, [pages, 10] documents of the query and clicks, [pages] device;
    and the true ratios."""
    rng = stream("benchmark of propensities", seed, *map(str, vars(setting).values()))
    traffic = 1 / np.arange(1, setting.queries + 1) ** setting.skew
    query = rng.choice(setting.queries, setting.pages, p=traffic / traffic.sum())
    attraction = rng.beta(1, 1 / setting.rate - 1, (setting.queries, setting.documents))
    if setting.relevance != "independent":
        noise = {"following": 0.1, "known": 0.0}[setting.relevance]
        sorted_by = attraction + rng.normal(0, 1, attraction.shape) * noise
        attraction = np.take_along_axis(attraction, np.argsort(-sorted_by, 1), 1)
    order = _orders(setting, rng)
    device = rng.integers(setting.devices, size=setting.pages)
    curve = np.stack([EXAMINATION, ON_PHONES])[: setting.devices]
    clicks, examined = _clicks(setting.users, attraction[query[:, None], order], curve[device], rng)
    truth = curve.T.ravel() if examined is None else examined
    return query, order, clicks, device, truth / truth[0]


def _orders(setting: Setting, rng) -> np.ndarray:
    """[pages, 10] which of a query's documents is at each position."""
    places = np.arange(setting.documents)
    if setting.swaps == "many":
        shuffled = places + rng.normal(0, 1, (setting.pages, setting.documents))
        return np.argsort(shuffled, 1)[:, :10]
    order = np.tile(places[:10], (setting.pages, 1))
    swapped = np.flatnonzero(rng.random(setting.pages) < 1 / 50)
    left, right = rng.integers(10, size=(2, len(swapped)))
    order[swapped, left], order[swapped, right] = right, left
    return order


def _clicks(users: str, attraction, examination, rng) -> tuple[np.ndarray, np.ndarray | None]:
    """[pages, 10] clicks; and for cascades [10] the mean examination."""
    uniform = rng.random(attraction.shape)
    if users == "product":
        return uniform < attraction * examination, None
    if users == "additive":
        odds = attraction / (1 - attraction) * examination
        return uniform < odds / (1 + odds), None
    reading, clicks, examined = np.ones(len(attraction), bool), [], []
    for place in range(10):
        examined.append(reading.mean())
        clicks.append(reading & (uniform[:, place] < attraction[:, place]))
        reading &= rng.random(len(reading)) < np.where(clicks[-1], 0.5, 0.9)
    return np.stack(clicks, 1), np.array(examined)


ESTIMATORS: dict[str, Callable[[PairCounts], object]] = {
    "conditional": fit_conditional,
    "additive": lambda counts: fit_conditional(counts, form="additive"),
    "all pairs": harvest,
    "adjacent chain": lambda counts: harvest(counts, "adjacent_chain"),
    "pivot one": lambda counts: harvest(counts, "pivot_one"),
    "click rates": lambda counts: harvest(counts, "naive"),
}


def one_draw(name: str, seed: int) -> list[dict]:
    """A row per estimator and bias factor, without the reference."""
    counts, truth = draw(SETTINGS[name], seed)
    rows = []
    for estimator, estimate in ESTIMATORS.items():
        # It is slow, and sees one draw in twenty, unless it is judged.
        if estimator == "additive" != SETTINGS[name].judged and seed % 20:
            continue
        own = {"setting": name, "estimator": estimator, "seed": seed, "truth": truth}
        frame = estimate(counts).frame().assign(**own)
        rows += frame.iloc[1:].to_dict("records")
    return rows


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per setting, estimator and factor: bias, spread, coverage and length."""
    known = rows.low.notna() & (rows.low > 0)
    rows = rows.assign(
        known=known,
        off=np.log(rows.estimate / rows.truth).where(known),
        inside=((rows.low <= rows.truth) & (rows.truth <= rows.high)),
        length=np.log(rows.high / rows.low).where(known),
    )
    rows["sure"] = rows.known & (rows.reason == "")
    rows["covered"] = (rows.inside & rows.sure).astype(float)
    rows["covered_all"] = (rows.inside & rows.known).astype(float)
    by = rows.groupby(["setting", "estimator", "position", "device"], sort=False)
    found = by.agg(
        truth=("truth", "mean"),
        draws=("known", "size"),
        known=("known", "sum"),
        sure=("sure", "sum"),
        covered=("covered", "sum"),
        covered_all=("covered_all", "sum"),
        bias=("off", "mean"),
        spread=("off", "std"),
        error=("error", "median"),
        length=("length", "median"),
        swaps=("swaps", "median"),
        queries=("queries", "median"),
    )
    return found.reset_index()


def judged(found: pd.DataFrame) -> pd.DataFrame:
    """A row per setting and estimator: coverage over its factors, and what misses thresholds."""
    rows = []
    for (setting, estimator), group in found.groupby(["setting", "estimator"], sort=False):
        sure, covered = group["sure"].sum(), group["covered"].sum()
        some = group[group["sure"] >= 20]
        low, high = frequency_interval(some["covered"], some["sure"], level=CERTAINTY)
        outside = (high < COVERAGE[0]) | (low > COVERAGE[1])
        silent = (sure - covered) / group["draws"].sum()
        coverage = covered / sure if sure else np.nan
        # Where nothing is identified well enough, there is nothing to cover, and doubt is due.
        meets = not sure or (COVERAGE[0] <= coverage <= COVERAGE[1] and not outside.any())
        rows.append(
            {
                "setting": setting,
                "estimator": estimator,
                "judged": SETTINGS[setting].judged == estimator,
                "bias": group["bias"].abs().max(),
                "coverage": coverage,
                "with doubt": group["covered_all"].sum() / max(group["known"].sum(), 1),
                "sure": sure / group["draws"].sum(),
                "length": group["length"].median(),
                "meets": meets and silent <= SILENT,
            }
        )
    return pd.DataFrame(rows)


STUDIES = {"coverage": Study("propensities", "setting", SETTINGS, one_draw, summary, draws=200)}


def tables() -> dict[Path, dict[str, str]]:
    rows = judged(STUDIES["coverage"].table())
    return {
        PAGE: {
            "coverage": table(
                of_settings(rows),
                "setting | form | coverage : .3f | all = with doubt : .3f | "
                "without doubt = sure : .3f | largest bias = bias : .3f | "
                "meets the thresholds = verdict",
            ),
            "estimators": table(
                of_estimators(rows),
                "estimator | coverage, product users = product | "
                "coverage, additive users = additive | largest bias = bias : .2f | length",
            ),
        }
    }


def of_settings(rows: pd.DataFrame) -> list[dict]:
    """A row per setting, of the conditional estimate; its odds form where users are additive."""
    forms = rows["setting"].map(lambda name: SETTINGS[name].judged or "conditional")
    own = rows[rows["estimator"] == forms]
    verdicts = own["meets"].map(yes).where(own["judged"], "not judged")
    form = own["estimator"].map({"conditional": "product", "additive": "odds"})
    return own.assign(form=form, verdict=verdicts).to_dict("records")


def of_estimators(rows: pd.DataFrame) -> list[dict]:
    """A row per estimator: all of its intervals, over the settings of product and additive users.

    Settings of few swaps and of few queries hold hardly any sure interval, and are left out.
    """

    def span(values: pd.Series, digits: int) -> str:
        return f"{values.min():.{digits}f} to {values.max():.{digits}f}"

    rows = rows[~rows["setting"].str.contains("few|cascade")]
    found = []
    for estimator, group in rows.groupby("estimator", sort=False):
        additive = group["setting"].str.contains("additive")
        product, other = group[~additive], group[additive]
        name = "odds" if estimator == "additive" else estimator
        row = {"estimator": name, "bias": product["bias"].max()}
        row |= {"product": span(product["with doubt"], 3), "additive": span(other["with doubt"], 3)}
        found.append(row | {"length": span(product["length"], 2)})
    return found
