"""Why the embedding tower misses position bias at alpha 0 and -1: estimate minus truth by fit."""

import pandas as pd
from matplotlib.figure import Figure

from papers.hager2025.stopping import errors, named
from twotowers.claims.statistics import compare, select
from twotowers.report.charts import TRUTH, Curves, Dots, ranks, symbols, with_truth
from twotowers.report.figures import page

STRENGTHS, TEMPERATURE, POSITION = (-1, 0), 0.333, 10
AS_PUBLISHED = "early stopping, start default"
FITS = {
    AS_PUBLISHED: "stopped early, random start",
    "early stopping, start zero": "stopped early, zero start",
    "early stopping, start truth": "stopped early, true start",
    "no early stopping, start default": "not stopped early, random start",
    "optimum": "exact optimum",
}
CURVES = (AS_PUBLISHED, "early stopping, start truth", "optimum")


def table(results: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    ours = select(named(results), metric="position_bias")
    theirs = select(published, setting="fit-embedding", metric="position_bias", weighting="none")
    theirs = theirs.assign(method=AS_PUBLISHED, sessions_factor=1)
    keys = ["method", "strength", "temperature", "sessions_factor", "metric", "position"]
    lanes = {"strength": STRENGTHS, "temperature": TEMPERATURE, "method": list(FITS)}
    table = compare(errors(ours), errors(theirs), keys, **lanes)
    curve = (table["sessions_factor"] == 1) & table["method"].isin(CURVES)
    return table[curve | (table["position"] == POSITION)]


def draw(table: pd.DataFrame) -> Figure:
    """Three panels: error by rank at alpha -1 and at 0, and at position 10 for all fits."""
    figure = page(3.2)
    left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))
    strengths = {"strength": symbols("α", table["strength"])}
    curves = select(table, method=list(CURVES), sessions_factor=1)
    chart = Curves(
        with_truth(curves, ["strength", "position"], lambda at: 0.0),
        by={"method": {method: FITS[method] for method in CURVES}},
        col=strengths,
    )
    plot = ranks(chart.plot("position"), curves["position"].max())
    chart.onto(left, plot.label(y="Position bias, estimate − truth"))
    chart = Dots(_at_position(table), by=strengths)
    plot = chart.plot("fit", orient="y").label(x="Estimate − truth", y="")
    plot = plot.label(title=f"Rank {POSITION}")
    chart.onto(right, plot)
    right.axes[0].axvline(0, **TRUTH)
    return figure


def _at_position(table: pd.DataFrame) -> pd.DataFrame:
    """The rows at one position, with a name for each fit, in the order of FITS."""
    rows = select(table, position=POSITION)
    grown = "... of " + rows["sessions_factor"].map("{:g} × the sessions".format)
    fits = rows["method"].map(FITS).where(rows["sessions_factor"] == 1, grown)
    measured = sorted(rows["sessions_factor"].unique())[1:]
    order = [*FITS.values(), *(f"... of {factor:g} × the sessions" for factor in measured)]
    return rows.assign(fit=pd.Categorical(fits, order))
