"""How much the draw of the fully synthetic data set itself matters (ours, not the paper's).

The authors publish one data set for K = 2, and all their runs use it. Here every seed draws its
own by the same construction; what varies between seeds is the sampling error to allow for when
a number of ours is compared with one of theirs.
"""

from __future__ import annotations

import pandas as pd

from papers.chen2024.lists import generate
from papers.chen2024.studies.synthetic import Log, dla

COMPONENTS = 2


def run(inputs, *, seed: int, clicks: int, steps: int, draws: int) -> pd.DataFrame:
    """No debiasing on several data sets of this seed, and DLA plain and repaired on the first.

    Args:
        inputs: none.
        seed: draws everything.
        clicks: N per place of a list.
        steps: of DLA.
        draws: data sets, numbered from 0 in column `draw`; no debiasing is cheap.
    """
    frames = []
    for draw in range(draws):
        number = draws * seed + draw
        lists = generate(COMPONENTS, seed=number)
        frames.append(Log(lists, [clicks], seed=number).no_debias().assign(draw=draw))
        if draw == 0:
            variants = {"plain", "merging", "intervention"}
            repaired = dla(lists, variants, {}, [clicks], steps, seed=number)
            frames.append(repaired.assign(draw=draw))
    return pd.concat(frames, ignore_index=True).assign(components=COMPONENTS)
