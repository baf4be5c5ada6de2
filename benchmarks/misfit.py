"""False alarms and power of the tests of a two-tower model, on logs whose truth is known.

    python -m benchmarks.misfit [--draws 60] [--settings NAME ...] [--processes 2]
    python -m benchmarks.misfit --page  # write the tables of docs/diagnosis.md anew

The first writes `benchmarks/results/misfit.csv`, a row per setting, temperature and test, and
prints which settings meet the thresholds below. They were committed before the study was run. Pilot
runs on other seeds chose the size of the log, since larger ones find everything.

The first run (seeds from 0, 60 draws) met the threshold of the right linear tower (.021), and
missed that of the right deep one (.163 instead of .05): some fits had ended in local optima, which
differ from the truth by 1 % of the variance, and the test of residual and score saw it. Since then
a deep tower has several starts, and a score that it expresses but for half a percent has no test.
Thresholds are as they were. All settings but the right linear one were drawn anew, with seeds from
10,000 (`--first 10000 --draws 40 --wrong 8`).

Settings are those of Hager et al. (2025, Sections 7 and 8), on features that are drawn: 200 queries
of 10 documents with 8 features each, 25 sessions a query, users of the additive model with bias
-ln k. The policy sorts by relevance, and shuffles a share of the sessions, the temperature. At
temperature 0 no document changes its place.

* right: a linear tower on linear relevance, and a deep one on that of a network of three units.
* linear on non-linear: a linear tower on the network's relevance.
* omitted features: the tower sees six of the eight features that the policy sorts by.
* expert policy: relevance is a grade that features explain by 60 %, and the policy sorts by it.
* slight: 2 % of the variance of relevance is not of the tower's kind, and known to the policy.
* clipped: linear relevance, clipped at its 5th and 95th percentile as published.

Beside it stands the statistic of Fris and Hager (2026), as their results describe it: the bias of a
position is fixed at its estimate plus or minus `SHIFT`, and the rest is fitted again. The rise of
the mean negative log-likelihood times the position's impressions counts as proof that the position
is identified, if it is above a quantile of chi-square with one degree of freedom. Here both shifts
of positions 2, 5 and 10 must pass, and fits are optima, without the noise of training. Relevance
can make up for a shift of all positions by a constant, which nothing identifies. So it is computed
as described ('rival'), and with position 1 held at its estimate ('rival, relative'). It asks
another question than the tests: whether clicks settle the bias, not whether they do so rightly.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import chi2

from scripts.filling import fill_page, markdown
from twotowers.claims.statistics import frequency_interval
from twotowers.fitting.feature_counts import FeatureCounts
from twotowers.fitting.feature_towers import fit_tower
from twotowers.fitting.tower_likelihood import likelihood
from twotowers.identifiability.misfit import ALARM, misfit
from twotowers.randomness import stream
from twotowers.root import ROOT

FALSE_ALARMS = 0.05
"""At most this share of the draws of a right tower may alarm, over all temperatures."""
CERTAINTY = 0.999
"""No single temperature's share of false alarms may be above it by Wilson's interval of this level.

60 draws give a share of .05 with an error of .03.
"""
POWER = {
    "any": {0: 0.9, 0.333: 0.9, 0.666: 0.9, 1: 0.9},
    "hausman": {0.333: 0.9, 0.666: 0.9, 1: 0.8},
    "residual and score": {0: 0.9, 0.333: 0.9, 0.666: 0.8},
}
"""At least this share of the draws of a wrong tower alarms, by temperature.

Of single tests by their own p-value at `ALARM`; of any by the corrected one.
"""

POSITIONS, QUERIES, DOCUMENTS, SESSIONS, WIDTH = 10, 200, 10, 25, 8
TEMPERATURES = (0, 0.333, 0.666, 1)
SHIFT = 1.5
SHIFTED = (1, 4, 9)
RIVAL = ("rival", "rival, relative")
RIVALS = 1
"""Draws that the rival's statistic sees."""
PAGE = ROOT / "docs" / "diagnosis.md"
RESULTS = Path(__file__).parent / "results" / "misfit.csv"


@dataclass(frozen=True)
class Setting:
    """A law of relevance, and what a tower knows of it.

    Attributes:
        tower: 'linear' or 'deep'.
        relevance: 'linear' or 'deep', of all features.
        seen: features that the tower sees, of `WIDTH`.
        hidden: share of the variance of relevance that no feature explains. The policy knows it.
        curved: share of the variance that a network adds.
        steps: whether relevance is one of five grades.
        clipped: whether relevance is clipped at its 5th and 95th percentile.
        kind: 'right', 'wrong' or 'shown', which no threshold is about.
        temperature: share of shuffled sessions.
    """

    tower: str
    relevance: str
    seen: int = WIDTH
    hidden: float = 0.0
    curved: float = 0.0
    steps: bool = False
    clipped: bool = False
    kind: str = "wrong"
    temperature: float = 0.0


SETTINGS = {
    "right, linear": Setting("linear", "linear", kind="right"),
    "right, deep": Setting("deep", "deep", kind="right"),
    "linear on non-linear": Setting("linear", "deep"),
    "omitted features": Setting("deep", "deep", seen=6),
    "expert policy": Setting("deep", "deep", hidden=0.4, steps=True),
    "slightly non-linear": Setting("linear", "linear", curved=0.02, kind="shown"),
    "slightly omitted": Setting("deep", "deep", hidden=0.02, kind="shown"),
    "clipped": Setting("linear", "linear", clipped=True, kind="shown"),
}


def draw(setting: Setting, seed: int) -> dict:
    """A log as `misfit` takes it."""
    rng = stream("benchmark of misfit", seed, *map(str, vars(setting).values()))
    rows = QUERIES * DOCUMENTS
    shared = np.repeat(rng.normal(size=(QUERIES, WIDTH)), DOCUMENTS, 0)
    x = np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=(rows, WIDTH))
    found = standard(x @ rng.normal(size=WIDTH) if setting.relevance == "linear" else net(x, rng))
    left = 1 - setting.hidden - setting.curved
    found = np.sqrt(left) * found + np.sqrt(setting.hidden) * rng.normal(size=rows)
    found += np.sqrt(setting.curved) * standard(net(x, rng))
    if setting.steps:
        found = np.digitize(found, [-0.5, 0.3, 1, 1.7]) - 1.2
    if setting.clipped:
        found = np.clip(found, *np.percentile(found, [5, 95]))
    logged = simulate(
        1.2 * found.reshape(QUERIES, DOCUMENTS),
        temperature=setting.temperature,
        sessions=SESSIONS,
        rng=rng,
    )
    pair = logged["pair"]
    return logged | {"features": x[pair, : setting.seen], "score": found[pair]}


def net(x: np.ndarray, rng) -> np.ndarray:
    """[rows] a network of three hidden units."""
    first = 2 * rng.normal(size=(x.shape[1], 3)) / np.sqrt(x.shape[1])
    return np.tanh(x @ first + rng.normal(size=3)) @ rng.choice([-1.0, 1.0], 3)


def standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


def simulate(gamma: np.ndarray, *, temperature: float, sessions: int, rng) -> dict:
    """Clicks of additive users with bias -ln k, on lists of one length.

    Args:
        gamma: [queries, documents] logits of relevance, which the policy sorts by.
        temperature: share of sessions in random order.
        sessions: of each query.
        rng: draws ties, orders and clicks.
    """
    queries, documents = gamma.shape
    ties = rng.random(gamma.shape)
    order = np.lexsort((ties, -gamma), axis=-1)
    shown = np.zeros((queries, documents, documents), int)
    shuffled = rng.binomial(sessions, temperature, queries)
    every = np.arange(queries)[:, None]
    shown[every, order, np.arange(documents)] = (sessions - shuffled)[:, None]
    query = np.repeat(np.arange(queries), shuffled)[:, None]
    orders = np.argsort(rng.random((len(query), documents)), 1)
    np.add.at(shown, (query, orders, np.arange(documents)), 1)
    query, document, factor = np.nonzero(shown[:, :, :POSITIONS])
    impressions = shown[query, document, factor]
    chance = expit(gamma[query, document] - np.log(factor + 1))
    return {
        "query": query,
        "pair": query * documents + document,
        "factor": factor,
        "impressions": impressions,
        "clicks": rng.binomial(impressions, chance),
    }


def one_draw(job: tuple[str, float, int, int]) -> list[dict]:
    """A row per test; 'any' for all, and 'rival'."""
    name, temperature, number, seed = job
    setting = replace(SETTINGS[name], temperature=temperature)
    given = draw(setting, seed)
    found = misfit(**given, tower=setting.tower, folds=2, seed=seed, with_overlap=False)
    truth = -np.log(np.arange(1, POSITIONS + 1))
    error = np.abs(found.tower.bias - found.tower.bias[0] - truth).max()
    common = {"setting": name, "temperature": temperature, "seed": seed, "error": error}
    tests = found.tests.set_index("test")["p"].items()
    rows = [common | {"test": test, "p": p, "alarm": p <= ALARM} for test, p in tests]
    rows.append(common | {"test": "any", "p": found.tests["adjusted"].min(), "alarm": found.alarm})
    if number < RIVALS:
        log = FeatureCounts.of_arrays(**given)
        for test, relative in zip(RIVAL, (False, True), strict=True):
            share = rival(log, setting.tower, seed, relative=relative)
            rows.append(common | {"test": test, "p": np.nan, "alarm": share})
    return rows


def rival(log: FeatureCounts, tower: str, seed: int, *, relative: bool) -> float:
    """The share of the shifted positions that count as identified.

    Args:
        log: counts and features.
        tower: 'linear' or 'deep'.
        seed: of its start.
        relative: whether position 1 is held at its estimate.
    """
    counts = log.counts

    def fit(given):
        rng = np.random.default_rng(seed)
        found = fit_tower(log, tower, given=given, rng=rng, errors=False)
        logit = found.bias[counts.factor] + found.relevance[counts.pair]
        sums = likelihood("additive", counts.impressions, counts.clicks, logit).sum()
        return found.bias, -sums / counts.impressions.sum()

    bias, base = fit(None)
    passed = []
    for position in SHIFTED:
        given = np.full(POSITIONS, np.nan)
        given[0] = bias[0] if relative else np.nan
        rise = []
        for shift in (-SHIFT, SHIFT):
            given[position] = bias[position] + shift
            rise.append((fit(given)[1] - base) * counts.shown[position])
        passed.append(min(rise) > chi2.ppf(0.95, 1))
    return float(np.mean(passed))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per setting, temperature and test: how often there is a test, and how often it alarms.

    For the rival, `share` is that of positions called identified.
    """
    rows = rows.assign(tested=rows["p"].notna() | rows["test"].isin(["any", *RIVAL]))
    rows["alarm"] = rows["alarm"].astype(float) * rows["tested"]
    by = rows.groupby(["setting", "temperature", "test"], sort=False)
    found = by.agg(
        draws=("seed", "size"),
        tested=("tested", "sum"),
        alarms=("alarm", "sum"),
        error=("error", "median"),
    ).reset_index()
    found["share"] = found["alarms"] / found["tested"].where(found["tested"] > 0)
    return found


def judged(found: pd.DataFrame) -> list[dict]:
    """Each threshold, what was measured, and whether it is met."""
    rows = []
    for name, setting in SETTINGS.items():
        own = found[found["setting"] == name]
        whole = own[own["test"] == "any"]
        if setting.kind == "right" and len(whole):
            alarms, draws = whole["alarms"].sum(), whole["draws"].sum()
            low, _ = frequency_interval(whole["alarms"], whole["draws"], level=CERTAINTY)
            meets = alarms / draws <= FALSE_ALARMS and (low <= FALSE_ALARMS).all()
            rows.append({"what": f"{name}: any", "measured": alarms / draws, "meets": meets})
        if setting.kind == "wrong":
            for test, least in POWER.items():
                for temperature, bound in least.items():
                    row = own[(own["test"] == test) & (own["temperature"] == temperature)]
                    if len(row):
                        share = row["alarms"].sum() / row["draws"].sum()
                        what = f"{name}: {test} at {temperature:g}"
                        rows.append({"what": what, "measured": share, "meets": share >= bound})
    return rows


COLUMNS = {
    "any": "any",
    "hausman": "Hausman",
    "residual and score": "residual and score",
    "calibration": "calibration",
    "linear against deep": "linear against deep",
    "rival": "rival",
    "rival, relative": "rival, relative",
}


def write_page() -> None:
    """Put the tables of the results into docs/diagnosis.md."""
    found = pd.read_csv(RESULTS)
    fill_page(PAGE, {"misfit": _shares(found), "misfit-real": _real(), "misfit-met": _met(found)})


def _shares(found: pd.DataFrame) -> str:
    """A row per setting: the range of each number over temperatures."""
    rows = []
    for name, setting in found.groupby("setting", sort=False):
        errors, shares = [], {test: [] for test in COLUMNS}
        for _, own in setting.groupby("temperature"):
            tested = own["draws"].where(own["tested"] > 0)
            # The rival has few draws; a test that some draws lack has no alarm there.
            tested = tested.where(~own["test"].isin(RIVAL), own["tested"])
            share = (own["alarms"] / tested).set_axis(own["test"])
            errors.append(own["error"].iloc[0])
            for test in COLUMNS:
                shares[test].append(share.get(test, np.nan))
        tower, draws = SETTINGS[name].tower, str(int(setting["draws"].max()))
        rows.append([name, tower, draws, _range(errors), *map(_range, shares.values())])
    return markdown(["setting", "tower", "draws", "largest error", *COLUMNS.values()], rows)


def _range(values: list[float]) -> str:
    """The least and the largest of numbers; a dash if there is none."""
    known = sorted({f"{value:.2f}" for value in values if not np.isnan(value)})
    return "–" if not known else known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"


def _met(found: pd.DataFrame) -> str:
    """How many thresholds are met, and those that are not."""
    verdicts = pd.DataFrame(judged(found))
    missed = verdicts[~verdicts["meets"]]
    words = f"{verdicts['meets'].sum()} of {len(verdicts)} thresholds are met."
    right = verdicts[verdicts["what"].str.startswith("right")]
    alarms = (f"{row.what.split(':')[0]} {row.measured:.3f}" for row in right.itertuples())
    words += f" False alarms over all temperatures: {', '.join(alarms)}."
    if len(missed):
        words += " Missed: "
        words += ", ".join(f"{row.what} ({row.measured:.2f})" for row in missed.itertuples()) + "."
    return words


def _real() -> str:
    """A row per data set and law of relevance, with a column per test: alarms, p, found."""
    table = pd.read_csv(RESULTS.with_stem(RESULTS.stem + "_real"))
    rows: dict[tuple, list] = {}
    for keys, own in table.groupby(["data", "queries", "law"], sort=False):
        rows.setdefault(tuple(own["test"]), []).append(
            [*map(str, keys), *(_told(each) for each in own.itertuples())]
        )
    heads = ["data", "queries", "relevance"]
    parts = [markdown([*heads, *tests], found) for tests, found in rows.items()]
    return "\n\n".join(parts)


def _told(row) -> str:
    """Alarms of a test, or its p, and what it found; a dash if it could not be run."""
    if np.isnan(row.p) and np.isnan(row.value):
        return "–"
    told = []
    if not np.isnan(row.tests):
        told.append(f"{row.alarms:.0f} of {row.tests:.0f}")
    elif not np.isnan(row.p):
        told.append(f"p {'< 1e-6' if row.p < 1e-6 else f'= {row.p:.2g}'}")
    return "; ".join(told if np.isnan(row.value) else [*told, f"{row.value:.3g}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--wrong", type=int, default=15, help="draws of all but right settings")
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="write docs/diagnosis.md anew")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    tables = []
    if RESULTS.exists():
        # Settings that are not run now keep their rows.
        before = pd.read_csv(RESULTS)
        tables.append(before[~before["setting"].isin(options.settings)])
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for name in options.settings:
            start = time.perf_counter()
            draws = options.draws if SETTINGS[name].kind == "right" else options.wrong
            jobs = [
                (name, each, number, options.first + number)
                for each in TEMPERATURES
                for number in range(draws)
            ]
            rows = [row for part in pool.imap(one_draw, jobs) for row in part]
            tables.append(summary(pd.DataFrame(rows)))
            pd.concat(tables).to_csv(RESULTS, index=False, float_format="%.5g")
            shown = tables[-1].pivot_table(index="test", columns="temperature", values="share")
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
            print(shown.round(3).to_string(), flush=True)
    verdicts = pd.DataFrame(judged(pd.concat(tables)))
    print(verdicts.round(3).to_string(index=False))
    print(f"{verdicts['meets'].sum()} of {len(verdicts)} thresholds are met")


if __name__ == "__main__":
    main()
