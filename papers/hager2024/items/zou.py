"""Figure 3.1: what Zou et al. (2022) report, beside a random ranking."""

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2024.names import RANDOM
from twotowers.claims.statistics import compare, select
from twotowers.report.drawings.dots import on_lines

ZOU = "zou2022"
METHODS = {"Naive": "Naive", "IPS": "IPS", "REM": "RegressionEM", "PairD": "PairD", "DLA": "DLA"}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    given = [each.assign(method=each["setting"].map({RANDOM: "Random"}).fillna(each.get("method")))
             for each in (select(results, setting=RANDOM), published)]  # fmt: skip
    keys = ["setting", "method", "metric"]
    return compare(*given, keys, setting=[RANDOM, ZOU], metric="dcg@10")


def draw(table: pd.DataFrame) -> Figure:
    lines = {"method": METHODS | {"Random": "Random"}}
    sets = {ZOU: "Zou et al. (2022), Table 6", RANDOM: "a random ranking"}
    return on_lines(table, lines, by={"setting": sets}, metrics={"dcg@10": "DCG@10"})
