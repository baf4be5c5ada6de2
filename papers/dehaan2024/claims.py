"""What the paper claims, each claim with its conditions and its judge.

Thresholds were set from the printed values before any of ours were seen at scale laptop.
"""

import numpy as np
import pandas as pd

from papers.dehaan2024.items.bins import bins
from papers.dehaan2024.names import by_query, named
from twotowers.claims.claims import OURS, Claims, NotTestable, seed_means
from twotowers.claims.conditions import above, at_least, at_most, below, shown, some

CLAIMS = Claims(fixed=("random", "policy", "expert"))
TWO_TOWERS = ["two-tower", "dropout", "backdoor"]
CLICKED = ["naive", *TWO_TOWERS]
NDCG = "ndcg@10"


def means(results: pd.DataFrame, settings, metric: str = NDCG) -> pd.Series:
    """The mean of each setting. Those that no chance enters have one seed."""
    rows = named(results)
    return pd.concat([seed_means(rows, {"setting": [each]}, metric=metric) for each in settings])


def queries(results: pd.DataFrame, settings) -> pd.DataFrame:
    """[queries, settings] nDCG@10 of every annotated query, and of the policy; and its bin."""
    values = by_query(results, [*settings, "policy"], NDCG)
    missing = {*settings, "policy"} - set(values)
    if missing:
        raise NotTestable(f"no values of queries of {sorted(missing)[0]}")
    return values.assign(bin=bins(values["policy"]))


@CLAIMS.add(
    "1", "table1", "Sec. 3", "The logged order can be predicted nearly perfectly",
    at_least("nDCG@10 of the logged order", 0.9), shown("nDCG@10 of a random order"),
    solved_for=True,
)  # fmt: skip
def policy_is_known(results):
    values = means(results, ["policy", "random"], "logged_ndcg@10")
    return values["policy"], values["random"]


@CLAIMS.add(
    "2", "table1", "Sec. 3", "The policy ranks much better than chance",
    at_least("nDCG@10 of the policy less that of a random ranking", 0.018), of="policy",
    beside="random",
    solved_for=True,
)  # fmt: skip
@CLAIMS.add(
    "3", "table2", "Sec. 4", "All models rank better than chance",
    above("nDCG@10 less that of a random ranking", 0), of=[*CLICKED, "policy", "expert"],
    beside="random", solved_for=True,
)  # fmt: skip
@CLAIMS.add(
    "4", "table2", "Sec. 4", "All two-tower models rank better than the policy",
    above("nDCG@10 less that of the policy", 0), of=TWO_TOWERS, beside="policy",
)  # fmt: skip
@CLAIMS.add(
    "13", "appendixB", "App. B", "A hidden layer in the bias tower gains nothing",
    at_most("nDCG@10 with a hidden layer less that without", 0.005), of="bias-layers",
    beside="two-tower",
)  # fmt: skip
@CLAIMS.add(
    "14", "table2", "the published folds",
    "The published expert owes much of its lead to queries that it has seen",
    above("nDCG@10 as published less that on held-out folds", 0.02), origin=OURS, chance=False,
    of="expert", beside="expert-folds",
)  # fmt: skip
def difference(results, *, of, beside):
    """In mean nDCG@10, of one setting or of each of several."""
    values = means(results, [*([of] if isinstance(of, str) else of), beside])
    return values[of] - values[beside]


@CLAIMS.add(
    "5", "table2", "Sec. 4", "Two towers rank a little better than the naive model",
    above("nDCG@10 of two towers less that of the naive model", 0),
    below("the same difference", 0.02),
)  # fmt: skip
def two_towers_beat_naive(results):
    values = means(results, ["two-tower", "naive"])
    gain = values["two-tower"] - values["naive"]
    return gain, gain


@CLAIMS.add(
    "6", "table2", "Sec. 4", "Both corrections rank worse than plain two towers",
    above("nDCG@10 of plain two towers less that of the correction", 0),
)  # fmt: skip
def corrections_harm(results):
    values = means(results, TWO_TOWERS)
    return values["two-tower"] - values.drop("two-tower")


@CLAIMS.add(
    "7", "table2", "Sec. 4", "Both corrections rank as the naive model does",
    at_most("size of the difference in nDCG@10", 0.005),
)  # fmt: skip
def corrections_are_naive(results):
    values = means(results, [*TWO_TOWERS[1:], "naive"])
    return (values.drop("naive") - values["naive"]).abs()


@CLAIMS.add(
    "8", "table2", "Sec. 4", "The expert is far ahead of all models of clicks",
    at_least("nDCG@10 of the expert less that of each of them", 0.1), solved_for=True,
    expert="expert",
)  # fmt: skip
@CLAIMS.add(
    "15", "table2", "the published folds",
    "On held-out folds, too, the expert is far ahead of all models of clicks",
    at_least("nDCG@10 of the expert less that of each of them", 0.1), origin=OURS,
    solved_for=True, expert="expert-folds",
)  # fmt: skip
def expert_is_ahead(results, *, expert):
    values = means(results, [*CLICKED, expert])
    return values[expert] - values.drop(expert)


@CLAIMS.add(
    "9", "fig1", "Sec. 5, App. C", "Two towers do not drop where the policy ranks well",
    at_least(
        "nDCG@10 of two towers less that of a ranker that is as good on all queries, where the "
        "policy is above its mean",
        0,
    ),
)  # fmt: skip
def no_drop(results):
    """The ranker closes the same share of the gap from chance to 1 on each query.

    A slope over the policy's nDCG@10 would tell regression to the mean: it is negative of a random
    ranking, too.
    """
    each = queries(results, ["two-tower", "random"])
    gain, most = each["two-tower"] - each["random"], 1 - each["random"]
    lead = gain - gain.sum() / most.sum() * most
    return lead[each["policy"] > each["policy"].mean()].mean()


@CLAIMS.add(
    "11", "fig1", "App. C",
    "The expert's lead on two towers is largest where the policy ranks badly",
    below("slope of the lead over the policy's nDCG@10", 0), of="expert", beside="two-tower",
)  # fmt: skip
def slope(results, *, of, beside):
    """Of the line of least squares."""
    each = queries(results, [of, beside])
    return float(np.polyfit(each["policy"], each[of] - each[beside], 1)[0])


@CLAIMS.add(
    "10", "fig1", "App. C", "Neither the naive model nor two towers beat the policy in every bin",
    *[
        some(below(f"nDCG@10 of {name} less that of the policy, in a bin", 0))
        for name in ("the naive model", "two towers")
    ],
)  # fmt: skip
def not_in_every_bin(results):
    each = queries(results, ["two-tower", "naive"]).groupby("bin").mean()
    return each["naive"] - each["policy"], each["two-tower"] - each["policy"]


@CLAIMS.add(
    "16", "corrected", "the published targets",
    "As published, the backdoor adjustment has next to no position bias; with logarithms it has",
    below("fall of its bias from position 1 to 9, as published", 1), above("with logarithms", 1.5),
    origin=OURS,
)  # fmt: skip
def published_targets_are_no_logits(results):
    values = seed_means(
        results, {"setting": ["backdoor", "backdoor-log"]}, metric="position_bias", position=9
    )
    return -values["backdoor"], -values["backdoor-log"]


CLAIMS = CLAIMS.in_order()
