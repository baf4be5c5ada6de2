"""Claims 4 and 5: Table 1's numbers against other draws of its data set."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from papers.chen2024.judges.cells import CLICKS, by_seed
from papers.chen2024.judges.words import metric_name
from twotowers.results.claims import Judgement, decide, number

# Claims 4 and 5: on Table 1's scale No debias and the next method are .059 apart; draws of the
# data set that reach further than this would tell nothing.
INFORMATIVE = 0.05
NO_DEBIAS = {"mcc": 0.521, "ndcg@1": 0.711, "ndcg@3": 0.625, "ndcg@5": 0.665, "ndcg@10": 0.82}
NODE_MERGING = {"mcc": 0.975}


def as_another_draw(
    results: pd.DataFrame, method: str, variant: str, printed: Mapping[str, float]
) -> Judgement:
    """Claims 4 and 5: the authors' data set could be one more draw from our generator.

    Their numbers stand for one data set of this construction, ours for another, and both are
    sampled. In the study `redrawn` every seed draws its own; a printed number agrees if it lies
    in the interval that holds one more draw with probability .95 (over all metrics judged:
    Bonferroni), widened by half its last digit. The interval must be narrow enough to tell No
    debias from the others.
    """
    runs = by_seed(
        results, {"metric": tuple(printed)},
        setting="redrawn", method=method, variant=variant, components=2, clicks=CLICKS,
    )  # fmt: skip
    count = runs.shape[1]
    quantile = stdtrit(count - 1, 1 - 0.05 / len(printed) / 2)
    half = quantile * runs.std(axis="columns") * np.sqrt(1 + 1 / count) + 0.0005
    mean, wanted = runs.mean(axis="columns"), pd.Series(printed)
    off = (mean - wanted).abs()
    told = ", ".join(
        f"{metric_name(name)} {number(mean[name])} +- {number(half[name])} "
        f"(printed {number(wanted[name])})"
        for name in printed
    )
    return decide(
        f"{told}; {count} draws",
        {
            "printed numbers within the interval for one more draw": (off <= half).all(),
            "interval at most .05 to either side": half.max() <= INFORMATIVE,
        },
    )
