"""What the clicks of each pair say of examination by themselves, beside a position-based fit.

A fit with a parameter per pair needs a prior where pairs are seen a few times, and its examination
follows it. The conditional estimate (`twotowers.fitting.conditional`) needs none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import stdtrit

from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.curves import Curve
from twotowers.fitting.pair_counts import PairCounts
from twotowers.fitting.statistics import Statistics

COLUMNS = ("conditional", "conditional_error", "conditional_low", "conditional_high")
"""Of the conditional estimate: relative to the first position, error of the logarithm, interval."""
LEVEL = 0.05
"""Chance of a warning for all positions together, if both estimates are right."""
FEW = 20
"""The most positions that are printed."""


def conditional_of(statistics: Statistics, pairs: pa.Table) -> Curve:
    """The conditional estimate from the counts that a position-based model is fitted to."""
    pair, position = (statistics.index[part][:, 0] for part in ("attraction", "examination"))
    clicks = statistics.number * statistics.clicks[:, 0]
    query = pd.factorize(pairs["query"].to_numpy())[0]
    counts = PairCounts.of_arrays(
        pair,
        position,
        statistics.number,
        clicks,
        query=query[pair],
        factors=statistics.sizes["examination"],
    )
    return fit_conditional(counts)


def columns_of(curve: Curve) -> dict[str, np.ndarray]:
    """The columns of a saved fit."""
    values = curve.estimate, curve.error, curve.low, curve.high
    return dict(zip(COLUMNS, values, strict=True))


def differing(table: pd.DataFrame, queries: np.ndarray) -> np.ndarray:
    """[positions] whether ratios to the first position differ by more than their errors.

    Both errors are of logarithms and add up as if independent. Student's quantile is that of
    `LEVEL`, divided by the number of positions.

    Args:
        table: position, estimate and error of the fit, and `COLUMNS`, from the first position on.
        queries: [positions] effective number of queries behind the conditional estimate.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(table["estimate"] / table["estimate"].iloc[0])
        apart = np.abs(ratio - np.log(table["conditional"])).to_numpy()
        own = (table["error"] / table["estimate"]).fillna(0).to_numpy()
    spread = np.hypot(own, table["conditional_error"].to_numpy())
    compared = np.isfinite(apart) & (spread > 0)
    tail = 1 - LEVEL / 2 / max(compared.sum(), 1)
    return compared & (apart > stdtrit(np.maximum(np.nan_to_num(queries, nan=1), 1), tail) * spread)


def lines(table: pd.DataFrame, curve: Curve) -> Iterator[str]:
    """What is printed: both estimates, relative to the first position, and a warning."""
    yield "examination relative to the first position, by the fit and conditional on pairs' clicks:"
    for row in table.iloc[1:FEW].itertuples():
        ratio, told = row.estimate / table["estimate"].iloc[0], "pairs do not tell"
        if np.isfinite(row.conditional):
            told = (
                f"{row.conditional:.3f} ({row.conditional_low:.3f} to {row.conditional_high:.3g})"
            )
        yield f"  {row.position:>4} {ratio:8.3f}  {told}"
    unknown = table["conditional"].isna().to_numpy()
    doubts = {
        "the log does not tell": unknown,
        "they differ by more than their errors": differing(table, curve.queries),
    }
    for doubt, where in doubts.items():
        if where.any():
            some = ", ".join(map(str, table["position"][where].head(FEW)))
            yield f"warning: {doubt} at position {some}, and the fit follows its prior there"
    hardly = (curve.reason != "") & ~unknown
    if hardly.any():
        some = ", ".join(map(str, table["position"][hardly].head(FEW)))
        yield f"the log hardly tells at position {some}: no interval there is to be trusted"
    if np.any([hardly, *doubts.values()]):
        yield "`twotowers propensities` says more"
