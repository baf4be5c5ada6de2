"""How far a fit of a click model follows its prior, by an estimate of examination without a prior.

A fit with a parameter per pair needs a prior where pairs are seen a few times, and its examination
follows it. The conditional estimate (`twotowers.fitting.conditional`) needs none. Where it does not
exist, clicks do not separate what a document is worth from where it was shown, whatever the model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import shorten

import numpy as np
import pandas as pd
import pyarrow as pa

from twotowers.fitting.conditional import NEVER, fit_conditional
from twotowers.fitting.curves import Curve
from twotowers.fitting.pair_counts import PairCounts
from twotowers.fitting.statistics import pairs_of, position_of
from twotowers.intervals import quantile
from twotowers.logs.counted import Counts

CONDITIONAL = ("conditional", "conditional_error", "conditional_low", "conditional_high")
"""Of the conditional estimate: relative to the first position, error of the logarithm, interval."""
LEVEL = 0.05
"""Chance of a warning for all positions together, if both estimates are right."""
WIDTH = 80
"""Characters of positions that are printed."""
FOLLOWS = "the fit follows its prior there"


@dataclass(frozen=True)
class PriorCheck:
    """The evidence of a log on examination, whatever model is fitted to it.

    Attributes:
        curve: the conditional estimate.
        pairs: columns query and document of the log's pairs, by their number.
        reliable: [pairs] whether the pair was shown at a position with a reliable estimate.
    """

    curve: Curve
    pairs: pa.Table
    reliable: np.ndarray


def prior_check(counts: Counts, positions: int) -> PriorCheck:
    """The evidence in counts by query, document and position, on pages of so many positions."""
    pair, pairs = pairs_of(counts)
    position, query = position_of(counts), counts.columns["query"]
    names = pd.DataFrame({"position": np.arange(1, positions + 1)})
    weights = counts.impressions.astype(float), counts.clicks.astype(float)
    curve = fit_conditional(PairCounts.of_sorted(pair, position, *weights, query, names))
    known = (np.isfinite(curve.estimate) & (curve.reason == ""))[position]
    return PriorCheck(curve, pairs, np.bincount(pair, known, len(pairs)) > 0)


def differing(table: pd.DataFrame, queries: np.ndarray) -> np.ndarray:
    """[positions] whether ratios to the first position differ by more than their errors.

    Both errors are of logarithms and add up as if independent. Student's quantile is that of
    `LEVEL`, divided by the number of positions; `queries` [positions] is the effective number of
    them behind the conditional estimate. The table has position, estimate and error of the fit, and
    `CONDITIONAL`; others are compared with its first row.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(table["estimate"] / table["estimate"].iloc[0])
        distance = np.abs(ratio - np.log(table["conditional"])).to_numpy()
        own = (table["error"] / table["estimate"]).fillna(0).to_numpy()
    spread = np.hypot(own, table["conditional_error"].to_numpy())
    compared = np.isfinite(distance) & (spread > 0)
    freedom = np.maximum(np.nan_to_num(queries, nan=1), 1)
    errors = quantile(freedom, level=1 - LEVEL / max(compared.sum(), 1))
    return compared & (distance > errors * spread)


def warnings(curve: Curve, fitted: pd.DataFrame | None = None) -> Iterator[str]:
    """Warn of positions at which the log has little or no evidence.

    Also of those at which the examination of a position-based fit, a table of `differing`, differs
    from the conditional estimate.
    """
    position = curve.names["position"].to_numpy()
    unknown = np.isnan(curve.estimate) & (curve.reason != NEVER)
    hardly = (curve.reason != "") & np.isfinite(curve.estimate)
    said = {
        f"warning: the log has no evidence at position {{}}, and {FOLLOWS}": position[unknown],
        "the log has little evidence at position {}: no interval there is to be trusted": (
            position[hardly]
        ),
    }
    if fitted is not None:
        place = fitted["position"].to_numpy()
        differ = place[differing(fitted, curve.queries[place - 1])]
        sentence = "warning: examination differs from that conditional on pairs' clicks by more "
        sentence += f"than their errors at position {{}}, and {FOLLOWS}"
        said = {sentence: differ, **said}
    for sentence, where in said.items():
        if len(where):
            yield sentence.format(shorten(", ".join(map(str, where)), WIDTH, placeholder=" ..."))
    if any(map(len, said.values())):
        yield "`twotowers propensities` says more"
