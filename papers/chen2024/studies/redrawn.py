"""How much the draw of the fully synthetic data set itself matters (ours, not the paper's).

The authors publish one data set for K = 2, and all their runs use it. Here every seed draws its
own by the same construction; what varies between seeds is the sampling error to allow for when
a number of ours is compared with one of theirs. Takes seconds.
"""

from __future__ import annotations

import pandas as pd

from papers.chen2024.lists import generate
from papers.chen2024.studies.synthetic import Log, dla

COMPONENTS = 2


def run(inputs, *, seed: int, clicks: int, steps: int) -> pd.DataFrame:
    """No debiasing, and DLA plain and repaired, on lists drawn with this seed."""
    lists = generate(COMPONENTS, seed=seed)
    repaired = dla(lists, {"plain", "merging", "intervention"}, {}, [clicks], steps, seed=seed)
    frames = [repaired, Log(lists, [clicks], seed=seed).no_debias()]
    return pd.concat(frames, ignore_index=True).assign(components=COMPONENTS)
