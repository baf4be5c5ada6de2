"""What chapter 3 claims of cross-encoders."""

import numpy as np
import pandas as pd

from papers.hager2024.judges.common import effects, means
from twotowers.claims.claims import Claims
from twotowers.claims.conditions import above, below

CLAIMS = Claims()
CROSS = {
    "two-tower": "point-naive",
    "point-ips": "point-naive",
    "list-ips": "list-naive",
    "list-dla": "list-naive",
}
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
