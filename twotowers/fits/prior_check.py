"""What the clicks of each pair say of examination by themselves, beside the fit of a click model.

A fit with a parameter per pair needs a prior where pairs are seen a few times, and its examination
follows it. The conditional estimate (`twotowers.fitting.conditional`) needs none. Where it does not
exist, clicks do not tell what a document is worth from where it was shown, whatever the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import stdtrit

from twotowers.fitting.conditional import NEVER, fit_conditional
from twotowers.fitting.curves import Curve
from twotowers.fitting.pair_counts import PairCounts
from twotowers.fitting.statistics import Statistics

COLUMNS = ("conditional", "conditional_error", "conditional_low", "conditional_high")
"""Of the conditional estimate: relative to the first position, error of the logarithm, interval."""
LEVEL = 0.05
"""Chance of a warning for all positions together, if both estimates are right."""
FEW = 20
"""The most positions that are printed."""


@dataclass(frozen=True)
class Told:
    """What a log tells of examination, whatever model is fitted to it.

    Attributes:
        curve: the conditional estimate.
        pairs: columns query and document of the log's pairs, by their number.
        sure: [pairs] whether the pair was shown at a position whose examination is beyond doubt.
    """

    curve: Curve
    pairs: pa.Table
    sure: np.ndarray


def told_of(statistics: Statistics, pairs: pa.Table) -> Told:
    """What the counts tell that a position-based model is fitted to."""
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
    curve = fit_conditional(counts)
    known = (np.isfinite(curve.estimate) & (curve.reason == ""))[position]
    return Told(curve, pairs, np.bincount(pair, known, len(pairs)) > 0)


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
    prior = "the fit follows its prior there"
    apart = differing(table, curve.queries)
    if apart.any():
        some = _listed(table["position"].to_numpy()[apart])
        yield f"warning: they differ by more than their errors at position {some}, and {prior}"
    yield from doubts(curve, prior, more=bool(apart.any()))


def doubts(curve: Curve, but: str, *, more: bool = False) -> Iterator[str]:
    """Warnings of positions that the log does not tell, or hardly.

    Args:
        curve: the conditional estimate.
        but: what a fit does there.
        more: whether there is a doubt besides.
    """
    position = curve.names["position"].to_numpy()
    unknown = np.isnan(curve.estimate) & (curve.reason != NEVER)
    hardly = (curve.reason != "") & np.isfinite(curve.estimate)
    if unknown.any():
        yield f"warning: the log does not tell at position {_listed(position[unknown])}, and {but}"
    if hardly.any():
        some = _listed(position[hardly])
        yield f"the log hardly tells at position {some}: no interval there is to be trusted"
    if more or unknown.any() or hardly.any():
        yield "`twotowers propensities` says more"


def _listed(positions: np.ndarray) -> str:
    return ", ".join(map(str, positions[:FEW])) + (" ..." if len(positions) > FEW else "")
