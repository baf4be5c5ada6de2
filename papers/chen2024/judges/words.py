"""What metrics and lanes are called in the texts of claims."""

from __future__ import annotations


def metric_name(name: str) -> str:
    """A metric of the studies as the paper writes it: test_ndcg@5 is test nDCG@5."""
    return name.replace("mcc", "MCC").replace("test_", "test ").replace("ndcg", "nDCG")


MEASURED = [f"{split}ndcg@{at}" for split in ("", "test_") for at in (1, 3, 5, 10)]
NAMES = {
    "components": "K =",
    "views": "clicks",
    "bias_factors": "|T| =",
    "feature_vectors": "|X| =",
    "rows": "|D| =",
    "method": {"rate_dla": "DLA", "rate_em": "Regression-EM", "two_tower": "Two-Tower"},
    "metric": {name: metric_name(name) for name in ("mcc", *MEASURED)},
}
