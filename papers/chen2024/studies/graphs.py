"""The identifiability graphs of the fully synthetic lists, to be drawn (Figure 5)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.chen2024.contexts import POSITIONS
from papers.chen2024.lists import generate
from papers.chen2024.studies.synthetic import rows_of
from twotowers.identifiability.graph import factor_components


def run(inputs, *, seed: int, components: list[int], data_seed: int) -> pd.DataFrame:
    """Documents seen at both of two positions, and each position's component, per K."""
    rows = []
    for number in components:
        document, factor = rows_of(generate(number, seed=data_seed).documents)
        seen = np.zeros((POSITIONS, document.max() + 1), int)
        seen[factor, document] = 1
        shared = seen @ seen.T
        for p, q in zip(*np.triu_indices(POSITIONS, 1), strict=True):
            rows.append((number, "shared_documents", p + 1, q + 1, shared[p, q]))
        for p, label in enumerate(factor_components(document, factor, factors=POSITIONS)):
            rows.append((number, "component", p + 1, None, label))
    frame = pd.DataFrame(rows, columns=["components", "metric", "position", "other", "value"])
    return frame.astype({"other": "Int64", "value": float})
