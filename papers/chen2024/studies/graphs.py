"""The identifiability graphs of the fully synthetic lists, to be drawn (Figure 5)."""

import numpy as np
import pandas as pd

from papers.chen2024.models.eye_tracking import POSITIONS
from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability.linked_lists import linked_lists


def run(inputs, *, seed: int, lists: list[dict]) -> pd.DataFrame:
    """Documents seen at both of two positions, and each position's component, per K."""
    rows = []
    for given in lists:
        number = given["components"]
        document, factor = linked_lists(positions=POSITIONS, **given).rows
        seen = np.zeros((POSITIONS, document.max() + 1), int)
        seen[factor, document] = 1
        shared = seen @ seen.T
        for p, q in zip(*np.triu_indices(POSITIONS, 1), strict=True):
            rows.append((number, "shared_documents", p + 1, q + 1, shared[p, q]))
        for p, label in enumerate(factor_components(document, factor, factors=POSITIONS)):
            rows.append((number, "component", p + 1, None, label))
    frame = pd.DataFrame(rows, columns=["components", "metric", "position", "other", "value"])
    return frame.astype({"other": "Int64", "value": float})
