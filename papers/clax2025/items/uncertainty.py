"""How often 95 % intervals hold the truth, a line per part of each model."""

import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import over_seeds, select
from twotowers.models.names import MODELS
from twotowers.report.drawings.dots import on_lines

METRICS = ("coverage", "too_low", "too_high", "intervals", "standard_error", "impressions")
METHODS = {"interval": "counting or EM", "stopped": "gradient"}
"""From the first part of a setting's name to what fitted it."""


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    rows = select(results, metric=list(METRICS))
    return over_seeds(rows, ["setting", "part", "metric"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    method, model = (table["setting"].str.split("-").str[place] for place in (0, 1))
    part = table["part"].str.replace("_", " ")
    named = table.assign(method=method, line=model.str.upper() + ", " + part)
    rows = select(named, metric="coverage")
    rows = rows.assign(**rows[["low", "high"]].clip(0, 1))
    order = {name.upper(): place for place, name in enumerate(MODELS)}
    lines = sorted(set(rows["line"]), key=lambda line: (order[line.split(",")[0]], line))
    lines = {"line": dict(zip(lines, lines, strict=True))}
    figure = on_lines(rows, lines, by={"method": METHODS}, metrics={"coverage": "Coverage"})
    figure.axes[0].axvline(0.95, color="black", linewidth=0.9, linestyle=":", zorder=0)
    return figure
