"""The cells of Table 1: of tuned methods, the lane that validation chose.

Two winners are kept apart. "clicks" is the lane of the lowest loss on held-out clicks, which is
what practice can choose by. "ndcg" is the lane of the highest nDCG@5 on the validation queries,
which takes labels: the best case, and probably what the paper reports. Both are chosen once per
policy, by means over seeds.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from twotowers.claims.claims import rows_of, seed_means
from twotowers.claims.statistics import BAND, compare, paired_p, select
from twotowers.intervals import holm

POLICIES = {1.0: "Oracle", 0.8: "L1", 0.6: "L2", 0.2: "L3", 0.0: "Random"}
"""From the weight w of the label to the policy's name, strongest first."""

NAMES = {"mixing_weight": POLICIES, "reversal_scale": "eta", "examination_dropout": "rate"}
"""What columns and policies are called in texts."""

METHODS = {"biased": "Biased", "pal": "PAL", "dla": "DLA", "gradrev": "GradRev", "drop": "Drop"}
BASELINES, REMEDIES = ("biased", "pal", "dla"), ("gradrev", "drop")
DATASETS = {"yahoo": "Yahoo", "mslr": "MSLR-WEB30K"}

TUNED = ("reversal_scale", "examination_dropout")
"""The lanes that validation chooses among."""

CHOSEN_BY = {"ndcg": ("validation_ndcg@5", 1), "clicks": ("validation_nll", -1)}
"""From the winner to what is measured, and the sign that makes it the larger, the better."""

SOURCES = {
    ("reproduced", "ndcg"): "ours, by nDCG",
    ("reproduced", "clicks"): "ours, by clicks",
    ("published", "ndcg"): "paper",
}
"""What a table says where it has both winners. The paper does not say by what it chose."""

ALPHA = 0.05


def tuned(results: pd.DataFrame, setting: str) -> list[str]:
    rows = select(results, setting=setting)
    return [lane for lane in TUNED if lane in rows and rows[lane].notna().any()]


def winners(results: pd.DataFrame, setting: str, by: str) -> pd.DataFrame:
    """The lane that won under each policy: mixing_weight, and a column per tuned lane."""
    lanes = tuned(results, setting)
    metric, sign = CHOSEN_BY[by]
    over = dict.fromkeys(["mixing_weight", *lanes])
    means = sign * seed_means(results, over, setting=setting, metric=metric)
    return means.groupby("mixing_weight").idxmax().apply(pd.Series).set_axis([*over], axis=1)


def won(results: pd.DataFrame, setting: str, by: str) -> pd.DataFrame:
    """All rows of a setting in the lanes that won; all there are if nothing was tuned."""
    rows = select(results, setting=setting)
    if not tuned(rows, setting):
        return rows
    chosen = winners(rows, setting, by)
    return pd.concat([select(rows, **lane) for lane in chosen.to_dict("records")])


def on_common_grid(results: pd.DataFrame, settings: Sequence[str]) -> pd.DataFrame:
    """Rows of some settings, in the values of tuned lanes that all have which are tuned by them.

    So no setting wins by a finer grid.
    """
    rows = select(results, setting=list(settings))
    for lane in set(TUNED) & set(rows):
        grids = [set(own.dropna()) for _, own in rows.groupby("setting")[lane] if own.notna().any()]
        if grids:
            rows = rows[rows[lane].isna() | rows[lane].isin(set.intersection(*grids))]
    return rows


def cells(
    results: pd.DataFrame,
    dataset: str,
    methods: Sequence[str],
    by: str = "ndcg",
    metric: str = "ndcg@5",
) -> pd.DataFrame:
    """Means over seeds: a row per policy, strongest first, and a column per method."""
    columns, over = {}, {"mixing_weight": list(POLICIES)}
    for method in methods:
        setting = f"{dataset}-{method}"
        rows = won(rows_of(results, setting=setting), setting, by)
        columns[method] = seed_means(rows, over, setting=setting, metric=metric)
    return pd.DataFrame(columns).loc[list(POLICIES)]


def beside_printed(
    results: pd.DataFrame, published: pd.DataFrame, settings: Sequence[str], **where
) -> pd.DataFrame:
    """nDCG@5 of both winners and as printed: a row per setting, policy, winner and source."""
    keys = ["setting", "mixing_weight", "metric"]
    where = {**where, "setting": list(settings), "metric": "ndcg@5"}
    parts = []
    for by in CHOSEN_BY:
        rows = pd.concat([won(results, setting, by) for setting in settings])
        parts.append(compare(rows, published, keys, **where).assign(chosen_by=by))
    values = pd.concat(parts, ignore_index=True)
    pairs = pd.MultiIndex.from_frame(values[["source", "chosen_by"]])
    return values.loc[pairs.isin(SOURCES), [*keys, "chosen_by", "source", *BAND]]


def better_than_pal(results: pd.DataFrame, dataset: str, by: str = "ndcg") -> pd.DataFrame:
    """Which remedies are significantly better than PAL, 1, or worse, -1: a row per policy.

    Of ours a two-sided paired t test over the test queries, each query's nDCG@5 being its mean
    over seeds, Holm-corrected for all ten tests of the data set. Of the published table its marks.
    """
    if "query" not in results or results["query"].isna().all():
        return cells(results, dataset, REMEDIES, by, "significant")
    pal = _queries(select(results, setting=f"{dataset}-pal"))
    p, sign = [], []
    for method in REMEDIES:
        theirs = _queries(won(results, f"{dataset}-{method}", by))
        for weight in POLICIES:
            p.append(paired_p(theirs.loc[weight], pal.loc[weight]))
            sign.append(np.sign(theirs.loc[weight].mean() - pal.loc[weight].mean()))
    significant = np.where(holm(p) < ALPHA, sign, 0)
    places = pd.MultiIndex.from_product([REMEDIES, POLICIES])
    return pd.Series(significant, places).unstack(0).loc[list(POLICIES), list(REMEDIES)]


def _queries(rows: pd.DataFrame) -> pd.Series:
    rows = rows_of(rows, metric="query_ndcg@5")
    return rows.groupby(["mixing_weight", "query"])["value"].mean()


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
