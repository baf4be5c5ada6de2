"""The cross-examination of both papers: which policy, which user, which relevance, which method.

PAL, GradRev and Drop are lanes of one setting: scale and rate 0 is PAL.
"""

from __future__ import annotations

import pandas as pd

from twotowers.results.claims import NotTestable, seed_means
from twotowers.results.statistics import select

WORLDS = {
    "": "Annotated labels,\nposition-based user",
    "-additive": "Annotated labels,\nadditive user",
    "-synthetic": "Synthetic relevance,\nposition-based user",
}
"""From the ending of a setting's name to what it simulates."""

RANKERS = {"label": "label", "linear": "linear ranker", "deep": "deep ranker"}
METHODS = {"pal": "PAL", "gradrev": "GradRev", "drop": "Drop"}

QUALITY, RANKING = "policy_ndcg@10", "ndcg@5"


def cross(results: pd.DataFrame) -> pd.DataFrame:
    """Every row of these settings that PAL, GradRev or Drop has, named.

    Returns:
        Columns world, ranker, method, mixing_weight, temperature, seed, metric, value.
    """
    settings = {f"x-{ranker}{world}": (ranker, world) for ranker in RANKERS for world in WORLDS}
    rows = select(results, setting=list(settings), metric=[QUALITY, RANKING])
    if rows.empty:
        raise NotTestable("no results of the cross-examination")
    scale, rate = rows["reversal_scale"] > 0, rows["examination_dropout"] > 0
    method = pd.Series("pal", rows.index).mask(scale, "gradrev").mask(rate, "drop")
    ranker, world = zip(*rows["setting"].map(settings), strict=True)
    rows = rows.assign(world=world, ranker=ranker, method=method.mask(scale & rate))
    keep = ["world", "ranker", "method", "mixing_weight", "temperature", "seed", "metric", "value"]
    return rows.dropna(subset="method")[keep]


def curve(rows: pd.DataFrame, world: str, ranker: str, method: str) -> pd.DataFrame:
    """Of deterministic rankings: per weight the policy's nDCG@10 and the tower's nDCG@5."""
    where = {"world": world, "ranker": ranker, "method": method, "temperature": 0}
    over = {"mixing_weight": None}
    return pd.DataFrame({
        metric: seed_means(rows, over, **where, metric=metric) for metric in (QUALITY, RANKING)
    })  # fmt: skip
