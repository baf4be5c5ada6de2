"""Claims 14 and 17: propositions and Example 2 against simulation (Sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from twotowers.results.claims import Judgement, NotTestable, decide, number, seed_means, short
from twotowers.results.statistics import select

# Claim 14: standard errors that simulation may be off by, and how large they may be; what of a
# bound the largest error may lack where it should reach it.
DEVIATIONS, PRECISE, REACHED = 4, 0.1, 0.001
# Claim 17: the lanes |X|, |T| and |D| of example2, and differences between probabilities.
SIZES = ["feature_vectors", "bias_factors", "rows"]
FALLS, AGREES = 0.1, 0.1


def variance_holds(results: pd.DataFrame) -> Judgement:
    """Claim 14: Proposition 1, in every case simulated.

    The standard error of the mean follows from that of the variance, which for a normal
    variable is the variance times the root of 2 over the number of draws.
    """
    mean, variance, expected, error = (
        seed_means(
            results, {"case": None, "clicks": None},
            setting="propositions", method="proposition 1", metric=metric,
        )
        for metric in ("mean", "variance", "expected_variance", "standard_error")
    )  # fmt: skip
    off = ((variance - expected).abs() / error).max()
    shifted = (mean.abs() / (error / np.sqrt(2 * variance))).max()
    falls = variance.unstack("clicks").sort_index(axis="columns").diff(axis="columns").iloc[:, 1:]
    return decide(
        f"variance off by {number(off, 1)} standard errors at most (which are "
        f"{number((error / variance).max())} of it or less), mean by {number(shifted, 1)}, in "
        f"{len(variance)} cases",
        {
            "variance as stated within 4 standard errors": off <= DEVIATIONS,
            "mean 0 within 4 standard errors": shifted <= DEVIATIONS,
            "standard errors at most a tenth of the variance": (error / variance).max() <= PRECISE,
            "variance falls with clicks": (falls < 0).all(axis=None),
        },
    )


def bound_holds(results: pd.DataFrame, proposition: str, *, tight: bool) -> Judgement:
    """Claim 14: Propositions 2 and 4 on random data sets.

    Between two components Proposition 2's bound is the error itself (its proof says so), and a
    simulation that did not reach it would not test it.
    """
    checked, violated, tightest = (
        seed_means(
            results, {"method": (proposition,)}, setting="propositions", metric=metric
        ).item()
        for metric in ("checked", "violated", "tightest")
    )
    conditions = {"no error above its bound": violated == 0}
    if tight:
        conditions["the bound is reached, to .001"] = tightest > 1 - REACHED
    return decide(
        f"{violated:.0f} of {checked:.0f} above; largest error {number(tightest)} of its bound",
        conditions,
    )


def probability_decays(results: pd.DataFrame) -> Judgement:
    """Claim 17: Remark 2, by simulation alone, between the ends of every series.

    A series has the same |X| and |D|, or the same |X| and |T|.
    """
    table = _example2(results)
    by_factors, by_rows = (
        _ends(table, [name for name in SIZES if name != along], along)
        for along in ("bias_factors", "rows")
    )
    return decide(
        f"from the smallest to the largest |T|: {number(by_factors['change'].mean())} on average "
        f"of {len(by_factors)} series; from the smallest to the largest |D|: "
        f"{number(by_rows['change'].mean())} of {len(by_rows)}; estimate off by up to "
        f"{number(_off(table).max())}",
        {
            "falls with |T| by more than .1 on average": by_factors["change"].mean() < -FALLS,
            "and rises in no series": (by_factors["change"] <= by_factors["error"]).all(),
            "grows with |D| by more than .1 on average": by_rows["change"].mean() > FALLS,
            "and falls in no series": (by_rows["change"] >= -by_rows["error"]).all(),
        },
    )


def estimate_agrees(results: pd.DataFrame) -> Judgement:
    """Claim 17: Example 2's formula where |T| is largest, as its proof asks.

    Lemma A.1 counts a bias factor that is never drawn as disconnected, while Section 2 supposes
    that there is none: of these two readings the one nearer to the estimate is taken. The
    estimate may lie below 0, which as a probability is 0.
    """
    table = _example2(results)
    off, finite = _off(table), _off(table, "estimate_finite")
    largest = table["bias_factors"].max()
    at = off[table["bias_factors"] == largest]
    worst = table.loc[at.idxmax()]
    return decide(
        f"|T| = {short(largest)}: off by up to {number(at.max())} (|X| = "
        f"{short(worst['feature_vectors'])}, |D| = {short(worst['rows'])}: "
        f"{number(worst['estimate'])}, simulated {number(worst['simulated'])}, of the factors "
        f"drawn {number(worst['simulated_seen'])}); any |T|: up to {number(off.max())}, "
        f"before the limits of the proof {number(finite.max())}",
        {f"off by at most .1 at |T| = {short(largest)}": at.max() <= AGREES},
    )


def _example2(results: pd.DataFrame) -> pd.DataFrame:
    """One row per size, which is named by the columns `SIZES`, and a column per metric."""
    metrics = ["simulated", "simulated_seen", "standard_error", "estimate", "estimate_finite"]
    rows = select(results, setting="example2", metric=metrics)
    if set(rows["metric"]) != set(metrics):
        raise NotTestable("no results for setting example2")
    return rows.pivot_table(index=SIZES, columns="metric", values="value").reset_index()


def _ends(table: pd.DataFrame, same: Sequence[str], along: str) -> pd.DataFrame:
    """Change of the simulated probability over each series, and two standard errors of it."""
    ends = []
    for _, series in table.sort_values(along).groupby(list(same)):
        if len(series) > 1:
            first, last = series.iloc[0], series.iloc[-1]
            error = 2 * np.hypot(first["standard_error"], last["standard_error"])
            ends.append((last["simulated"] - first["simulated"], error))
    if not ends:
        raise NotTestable(f"no two sizes of example2 differ in {along} only")
    return pd.DataFrame(ends, columns=["change", "error"])


def _off(table: pd.DataFrame, estimate: str = "estimate") -> pd.Series:
    """Distance of an estimate, cut to [0, 1], from the nearer of the two simulated readings."""
    readings = table[["simulated", "simulated_seen"]]
    return readings.sub(table[estimate].clip(0, 1), axis="index").abs().min(axis="columns")
