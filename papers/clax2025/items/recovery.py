"""What it costs to fit another model than the user's: perplexity and ranking, ten by ten."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import over_seeds, select
from twotowers.models.names import MODELS
from twotowers.report.figures import style

PERPLEXITY, RANKING = "mean_conditional_perplexity", "ndcg@10"


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    rows = select(results, metric=[PERPLEXITY, "mean_perplexity", RANKING])
    return over_seeds(rows, ["user_kind", "setting", "metric"]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    """Two panels of ten by ten cells; light is good in both."""
    names = {kind: name for name, kind in MODELS.items()}
    with style():
        figure = Figure(figsize=(7.2, 3.8), layout="constrained")
        panels = figure.subplots(1, 2)
        titles = ("Conditional perplexity less the own model's", "nDCG@10")
        for panel, metric, title in zip(panels, (PERPLEXITY, RANKING), titles, strict=True):
            rows = select(table, metric=metric)
            rows = rows.assign(user=rows["user_kind"].map(names), model=rows["setting"].str[9:])
            grid = rows.pivot(index="user", columns="model", values="value")
            grid = grid.reindex(index=list(MODELS), columns=list(MODELS))
            cells = grid.to_numpy()
            if metric == PERPLEXITY:
                cells = cells - np.diag(cells)[:, None]
            # A cascade model that meets two clicks is off the scale.
            top = np.nanquantile(cells, 0.85) if metric == PERPLEXITY else np.nanmax(cells)
            colours, extend = (
                ("viridis_r", "max") if metric == PERPLEXITY else ("viridis", "neither")
            )
            panel.grid(False)
            image = panel.imshow(cells, vmin=np.nanmin(cells), vmax=top, cmap=colours)
            figure.colorbar(image, ax=panel, shrink=0.7, extend=extend)
            ticks = range(len(MODELS)), [name.upper() for name in MODELS]
            panel.set_xticks(*ticks, rotation=90)
            panel.set_yticks(*ticks)
            panel.set(xlabel="Fitted model", ylabel="User", title=title)
    return figure
