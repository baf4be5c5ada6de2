"""How far IPS is ahead of the click model on expected clicks: a panel per data set."""

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2023.grid import DATASETS
from twotowers.claims.statistics import over_seeds, select
from twotowers.report.charts import Dots

STUDIES = {f"mechanism-{name}": title for name, title in DATASETS.items()}
TOWERS = {"document": "per document", "linear": "linear", "sampled": "drawn clicks"}
SPLIT = {"ndcg@10_train": "training queries", "ndcg@10": "test queries"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    rows = select(results, setting=list(STUDIES), metric=["ndcg@10", "ndcg@10_train"])
    keys = ["setting", "tower", "metric", "seed"]
    wide = rows.set_index([*keys, "kind"])["value"].unstack("kind")
    gaps = (wide["ips"] - wide["pbm"]).rename("value").reset_index()
    # A parameter per document is measured on the queries that have it.
    own = (gaps["tower"] == "document") & (gaps["metric"] == "ndcg@10")
    gaps["metric"] = gaps["metric"].mask(own, "ndcg@10_train")
    return over_seeds(gaps, keys[:3]).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    named = table.assign(tower=table["tower"].map(TOWERS))
    chart = Dots(named, by={"metric": SPLIT}, col={"setting": STUDIES})
    plot = chart.plot("tower", orient="y").label(x="nDCG@10, IPS − PBM", y="")
    return chart.figure(plot, height=1.4)
