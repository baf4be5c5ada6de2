"""The cross-examination of both papers: which policy, which user, which relevance, which method.

PAL, GradRev and Drop are lanes of one setting: scale and rate 0 is PAL. Biased and DLA have
settings of their own.
"""

import pandas as pd

from twotowers.claims.claims import rows_of, seed_means

WORLDS = {
    "": "Annotated labels,\nposition-based user",
    "-additive": "Annotated labels,\nadditive user",
    "-synthetic": "Synthetic relevance,\nposition-based user",
}
"""From the ending of a setting's name to what it simulates."""

RANKERS = {"label": "label", "linear": "linear ranker", "deep": "deep ranker"}
OWN = ("biased", "dla")
"""Methods whose name ends their settings' names."""

QUALITY, RANKING = "policy_ndcg@10", "ndcg@5"


def cross(results: pd.DataFrame) -> pd.DataFrame:
    """Every row of these settings that one method alone has, named.

    Returns:
        Columns world, ranker, method, mixing_weight, temperature, seed, metric, value.
    """
    settings = {
        f"x-{ranker}{world}" + (f"-{own}" if own else ""): (ranker, world, own)
        for ranker in RANKERS
        for world in WORLDS
        for own in (None, *OWN)
    }
    rows = rows_of(results, setting=list(settings), metric=[QUALITY, RANKING])
    ranker, world, own = zip(*rows["setting"].map(settings), strict=True)
    scale, rate = rows["reversal_scale"] > 0, rows["examination_dropout"] > 0
    lane = pd.Series("pal", rows.index).mask(scale, "gradrev").mask(rate, "drop")
    method = pd.Series(own, rows.index).fillna(lane.mask(scale & rate))
    rows = rows.assign(world=world, ranker=ranker, method=method)
    keep = ["world", "ranker", "method", "mixing_weight", "temperature", "seed", "metric", "value"]
    return rows.dropna(subset="method")[keep]


def curve(rows: pd.DataFrame, world: str, ranker: str, method: str) -> pd.DataFrame:
    """Of deterministic rankings: per weight the policy's nDCG@10 and the tower's nDCG@5."""
    where = {"world": world, "ranker": ranker, "method": method, "temperature": 0}
    over = {"mixing_weight": None}
    return pd.DataFrame(
        {metric: seed_means(rows, over, **where, metric=metric) for metric in (QUALITY, RANKING)}
    )
