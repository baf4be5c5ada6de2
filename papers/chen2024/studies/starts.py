"""How often Regression-EM gets stuck, by many starts on the lists of K = 2 (Section 5.1, Table 1).

In the published update an examination that is clipped to 1 stays there. That is decided in the
first steps, so that a hundredth of the published number is enough.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.chen2024.contexts import POSITIONS
from papers.chen2024.estimators import fit_dla, fit_regression_em
from papers.chen2024.lists import generate
from papers.chen2024.rates import same_rows
from papers.chen2024.studies.synthetic import Log, merged_positions, rows_of, with_swap
from twotowers.identifiability.intervention import node_intervention
from twotowers.randomness import stream

COMPONENTS = 2
MERGING_STEPS = 2000
"""Of the fit whose estimates say which swap costs least: more move them by less than 1e-5."""


def run(inputs, *, seed: int, starts: int, steps: int, clicks: int, data_seed: int) -> pd.DataFrame:
    """How many starts end with an examination of 1, plain, merged and with a swap.

    Args:
        inputs: none.
        seed: draws clicks and starts.
        starts: how many.
        steps: of Regression-EM.
        clicks: N per place of a list.
        data_seed: draws the lists.
    """
    lists = generate(COMPONENTS, seed=data_seed)
    log = Log(lists, [clicks], seed=seed)
    merged = merged_positions(lists)
    estimates = log.fit(fit_dla, {"merging": merged}, MERGING_STEPS).estimates["merging"]
    added = with_swap(lists.documents, node_intervention(*log.rows, *estimates[0]))
    (feature, factor), rate = log.rows, log.rate[0]
    again = rows_of(added)
    swapped = (
        np.concatenate([feature, again[0]]),
        np.concatenate([factor, again[1]]),
        np.concatenate([rate, log.sample("intervention", *again, clicks)]),
    )
    variants = {
        "plain": (feature, factor, rate),
        "merging": (feature, merged[factor], rate),
        "intervention": swapped,
    }
    rows = []
    for variant, (documents, positions, rates) in variants.items():
        fitted = fit_regression_em(
            same_rows(
                documents, positions, rates,
                features=len(lists.labels), factors=POSITIONS, lanes=starts,
            ),
            stream("many starts", seed, variant).random((starts, POSITIONS)),
            steps=steps,
        )  # fmt: skip
        stuck = (fitted.examination[:, np.unique(positions)] == 1).any(1)
        rows += [(variant, "stuck", stuck.sum()), (variant, "starts", starts)]
    frame = pd.DataFrame(rows, columns=["variant", "metric", "value"])
    return frame.astype({"value": float}).assign(position=None)
