"""How often a random data set is identifiable, and Example 2's estimate of it (Appendix A.2).

The estimate is Gilbert's, for graphs whose edges are independent; those of an identifiability
graph are not.
"""

import pandas as pd
from matplotlib.figure import Figure

from twotowers.claims.statistics import measured, over_seeds, select, whole
from twotowers.report.charts import Curves

SIZE = ["feature_vectors", "bias_factors", "rows"]
METRICS = {
    "simulated": "simulated",
    "estimate": "Example 2",
    "simulated_seen": "simulated, drawn factors only",
    "estimate_finite": "Example 2 before its limits",
}


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    metrics = [*METRICS, "standard_error"]
    values = measured(results, "example2", metric=metrics)
    summary = over_seeds(values, [*SIZE, "metric"])
    error = select(summary, metric="standard_error").set_index(SIZE)["value"]
    half = 1.96 * error.reindex(pd.MultiIndex.from_frame(summary[SIZE])).to_numpy()
    simulated = summary["metric"] == "simulated"
    summary["low"] = (summary["value"] - half).where(simulated)
    summary["high"] = (summary["value"] + half).where(simulated)
    return whole(summary, SIZE).assign(source="reproduced")


def draw(table: pd.DataFrame) -> Figure:
    sizes = table[SIZE[:2]].drop_duplicates().sort_values(SIZE[:2])
    titles = {(x, t): f"|X| = {x:,}, |T| = {t:,}" for x, t in sizes.itertuples(index=False)}
    places = pd.Series(list(table[SIZE[:2]].itertuples(index=False, name=None)), table.index)
    chart = Curves(table.assign(size=places), by={"metric": METRICS}, col={"size": titles})
    plot = chart.plot("rows").label(x="Rows |D|", y="Probability of identifiability")
    # An estimate of a probability that leaves [0, 1] leaves the panel.
    return chart.figure(plot.share(x=False).limit(y=(-0.05, 1.05)), height=2.35)
