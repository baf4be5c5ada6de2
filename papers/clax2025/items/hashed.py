"""All ten models on tables that are hashed to a tenth, beside full tables."""

import pandas as pd
from matplotlib.figure import Figure

from papers.clax2025.orders import METRICS, fits
from twotowers.claims.statistics import over_seeds, select
from twotowers.models.names import MODELS
from twotowers.report.drawings.dots import on_lines

RATIO = 10
TABLES = {"full": "full table", "hashed": "hashed to a tenth"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per model, table and metric, of the divisions of the log that both tables have."""
    values = fits(results)
    values = select(
        values[values["ratio"].isna() | (values["ratio"] == RATIO)], compression=[*TABLES]
    )
    seeds = values.loc[values["compression"] == "hashed", "seed"].unique()
    rows = values[values["seed"].isin(seeds)]
    return over_seeds(rows, ["compression", "model", "metric"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    off = (table["model"] == "cm") & (table["metric"] != "mean_perplexity")
    lines = {"model": {name: name.upper() for name in MODELS}}
    return on_lines(table[~off], lines, by={"compression": TABLES}, metrics=METRICS)
