"""A mark of Table 2.2 that does not follow from its numbers."""

from papers.hager2023.grid import MARKED, marks
from twotowers.claims.claims import rows_of
from twotowers.claims.conditions import written
from twotowers.claims.findings import Finding


def mark(results, authors):
    both = marks(results).drop_duplicates(MARKED)
    marked = both[both["value_printed"] != 0]
    off = marked[marked["value"] != marked["value_printed"]]
    p = rows_of(results, metric="mark_p").set_index(MARKED)["value"]
    table = off.set_index("dataset")[["method", "measure"]]
    table["p"] = [written(p[tuple(own)].mean(), 4) for own in off[MARKED].to_numpy()]
    table["printed"] = off["value_printed"].map({1: "higher", -1: "lower"}).to_numpy()
    table["by the test"] = off["value"].map({0: "no mark", 1: "higher", -1: "lower"}).to_numpy()
    return table, {"wrong": len(off), "all": len(marked)}


FINDINGS = [
    Finding(
        "19",
        "We mark significantly higher ▲ or lower performance ▼ compared to the PBM - True bias "
        "model using a significance level of α = 0.0001.",
        "Table 2.2",
        "An erratum at most (our text of the paper is converted): by an unpaired t test, {wrong} "
        "of the {all} marks does not follow from the printed means and deviations of ten runs. "
        "A test of pairs of runs could give it. Conclusions on nDCG are not touched.",
        mark,
    )
]
