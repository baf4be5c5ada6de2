"""The authors' published results, in the long form of our own.

The csv files hold the mean and standard deviation over three seeds for every setting, strength,
temperature and weighting: the bias per position, and the ranking metrics of model and policy.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent / "published"

SETTINGS = {
    ("1-example", "expert"): "example-expert",
    ("1-example", "deep"): "example-deep",
    ("2-model-fit-linear", "linear"): "fit-linear",
    ("2-model-fit-deep", "deep"): "fit-deep",
    ("2-model-fit-embedding", "expert"): "fit-embedding",
    ("3-model-misfit-linear", "deep"): "misfit-linear",
    ("3-model-misfit-omitted-features", "deep"): "misfit-omitted",
    ("3-expert-policy", "expert"): "misfit-expert",
}
"""From the authors' experiment and ranker to our setting."""

METRICS = {"ndcg@10": "ndcg@10", "nll": "nll", "lp_ndcg@10": "policy_ndcg@10"}
"""From the authors' columns of ranking.csv to our metrics."""

LANE = ["paper", "setting", "strength", "temperature", "weighting"]


def bands() -> pd.DataFrame:
    """Every published number with its spread.

    Returns:
        Columns paper, setting, strength, temperature, weighting, metric, position, value (the
        mean), sd (NaN where not published) and n.
    """
    bias = _lanes(pd.read_csv(FOLDER / "position_bias.csv"))
    bias = bias.rename(columns={"mean": "value"}).assign(metric="position_bias")
    ranking = _lanes(pd.read_csv(FOLDER / "ranking.csv"))
    parts = [bias] + [
        ranking[[*LANE, "n"]].assign(
            metric=metric,
            position=None,
            value=ranking[column],
            sd=ranking.get(f"{column}_sd", float("nan")),
        )
        for column, metric in METRICS.items()
    ]
    parts = [part.astype({"position": "Int64"}) for part in parts]
    columns = [*LANE, "metric", "position", "value", "sd", "n"]
    return pd.concat(parts, ignore_index=True)[columns]


def _lanes(table: pd.DataFrame) -> pd.DataFrame:
    """Name the lanes of a published table as ours are named."""
    return table.assign(
        paper="hager2025",
        setting=[SETTINGS[key] for key in zip(table["experiment"], table["ranker"], strict=True)],
        weighting=table["ips"].map({True: "ips", False: "none"}),
    ).rename(columns={"alpha": "strength", "tau": "temperature"})
