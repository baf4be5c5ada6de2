"""What chapter 3 claims of cross-encoders, of its tuning, and of what it tried in vain."""

import numpy as np
import pandas as pd

from papers.hager2024.judges.common import DEBIASED, NAIVE, effects, means
from papers.hager2024.names import GROUPS, POINTWISE
from twotowers.claims.claims import Claims, seed_means
from twotowers.claims.conditions import above, at_most, below
from twotowers.claims.statistics import select

CLAIMS = Claims()
CROSS = {name: DEBIASED[name] for name in ("two-tower", "point-ips", "list-ips", "list-dla")}
"""The methods of cross-encoders, and their naive models."""


def cross(results: pd.DataFrame) -> pd.Series:
    """DCG@10 of the cross-encoders by method."""
    methods = ("point-naive", "two-tower", "point-ips", "list-naive", "list-ips", "list-dla")
    measured = means(results, [f"bert-{name}" for name in methods])
    return measured.set_axis(pd.Index(methods, name="method"))


@CLAIMS.add(
    "17", "table3.2", "Sec. 3.6.2", "Listwise cross-encoders beat their pointwise counterparts",
    above("DCG@10 of a listwise one less that of the pointwise one", 0),
    of=["list-naive", "list-ips", "list-dla"], beside=["point-naive", "point-ips", "two-tower"],
)  # fmt: skip
@CLAIMS.add(
    "18", "table3.2", "Sec. 3.6.2", "Two towers improve the pointwise cross-encoder",
    above("DCG@10 of the two-tower cross-encoder less the naive one", 0),
    of="two-tower", beside="point-naive",
)  # fmt: skip
@CLAIMS.add(
    "19", "table3.2", "Sec. 3.6.2", "IPS and DLA degrade cross-encoders",
    below("DCG@10 less that of the naive model", 0),
    of=["point-ips", "list-ips", "list-dla"], beside=["point-naive", "list-naive", "list-naive"],
)  # fmt: skip
def difference(results, *, of, beside):
    measured = cross(results)
    return measured[of] - np.asarray(measured[beside])


@CLAIMS.add(
    "20", "table3.2", "Sec. 3.6.2", "The naive softmax gives the best cross-encoder",
    above("its DCG@10 less that of each other one", 0),
)  # fmt: skip
def best_cross_encoder(results):
    measured = cross(results)
    return measured["list-naive"] - measured.drop("list-naive")


@CLAIMS.add(
    "21", "table3.2", "Sec. 3.6.2", "Unbiased methods change cross-encoders more than rerankers",
    above("mean size of their effect on DCG@10", 1, "times that on rerankers with our MonoBERT"),
    also=("table3.4",),
)  # fmt: skip
def larger_effects(results):
    measured = cross(results)
    own = measured[list(CROSS)] - measured[list(CROSS.values())].to_numpy()
    rerankers = effects(results, CROSS, ["ours"])["ours"]
    return [(own.abs().mean(), rerankers.abs().mean())]


TUNED = [name for group in GROUPS for name in group if name != "paird"]
RATE, DROPOUT = "learning_rate", "tower_dropout"


def tuned(results: pd.DataFrame, metric: str, methods=TUNED) -> pd.DataFrame:
    """[methods, (learning rates, rates of dropout)] means."""
    names = [f"tuned-{name}" for name in methods]
    own = select(results, setting=names)
    values = seed_means(own, {"setting": names, RATE: None, DROPOUT: None}, metric=metric)
    table = values.unstack([RATE, DROPOUT])
    return table.loc[names].set_axis(pd.Index(methods, name="method"))


@CLAIMS.add(
    "29", "tuning", "Sec. 3.5.3",
    "Most methods do best at the lowest learning rate, and without dropout",
    above(
        "median over methods: the lowest loss of held-out clicks at higher rates less that at "
        "the lowest",
        0,
    ),
    above("median over methods: the lowest loss with dropout less that without", 0),
)  # fmt: skip
def lowest_rate_without_dropout(results):
    values = tuned(results, "validation_loss")
    lowest = {RATE: values.columns.get_level_values(RATE).min(), DROPOUT: 0}
    here = (values.columns.get_level_values(column) == at for column, at in lowest.items())
    return [
        (values.loc[:, ~own].min(axis=1) - values.loc[:, own].min(axis=1)).median() for own in here
    ]


@CLAIMS.add(
    "30", "tuning", "Sec. 3.5.3", "The main findings hold at every learning rate and dropout",
    above("DCG@10 of naive LambdaRank less that of the naive softmax", 0),
    above("DCG@10 of the naive softmax less that of the naive pointwise loss", 0),
    below("the mean gain by a method", 1, "times the mean step between naive losses"),
    below("NLL of an unbiased pointwise method less that of the naive model", 0),
)  # fmt: skip
def findings_at_every_rate(results):
    ranking = tuned(results, "dcg@10")
    steps = ranking.loc[NAIVE].diff().iloc[1:]
    names = [name for name in DEBIASED if name in TUNED]
    gains = ranking.loc[names] - ranking.loc[[DEBIASED[name] for name in names]].to_numpy()
    clicks = tuned(results, "held_out_loss", POINTWISE)
    return (
        steps.loc["lambdarank"],
        steps.loc["list-naive"],
        (gains.mean(), steps.mean()),
        (clicks.iloc[1:] - clicks.iloc[0]).stack([RATE, DROPOUT]),
    )


@CLAIMS.add(
    "31", "structure", "Sec. 3.5.2",
    "Normalisation layers, and a perceptron for positions, gain nothing",
    at_most("gain in DCG@10 by layer or batch normalisation", 0.1),
    at_most("gain in DCG@10 by a perceptron of positions", 0.1),
)  # fmt: skip
def structure_gains_nothing(results):
    values = means(
        results, [f"built-{of}" for of in ("naive", "layer", "batch", "towers", "perceptron")]
    )
    normalised = values[["built-layer", "built-batch"]] - values["built-naive"]
    return normalised, values["built-perceptron"] - values["built-towers"]
