"""All claims of the chapter. Those on losses and their minima, which need no data, are here.

Thresholds are from the printed Table 2.2 where it decides.
"""

import numpy as np

from papers.hager2023.grid import DATASETS, MARKED, RULES, marks
from papers.hager2023.judges import grid
from twotowers.claims.claims import CHECK, Claims, Measured, means_of, rows_of
from twotowers.claims.conditions import above, at_least, at_most, below, exactly, shown

CLAIMS = Claims(chance=False)


@CLAIMS.add(
    "1", "identities", "Proposition 1",
    "Without position bias, expected losses of click model and IPS are the same",
    at_most("the largest difference", 1e-6), identity="proposition_1",
)  # fmt: skip
@CLAIMS.add(
    "2", "identities", "Proposition 2",
    "Where bias is ignored, expected losses of click model and IPS are the same, and biased",
    at_most("the largest difference", 1e-6),
    at_most("the distance of their minimum from relevance times examination", 1e-3),
    identity="proposition_2", biased=True,
)  # fmt: skip
@CLAIMS.add(
    "3", "identities", "Theorem 1",
    "Given the true bias, the minimum of the click model's expected loss is the true relevance",
    at_most("the largest difference", 1e-6), identity="theorem_1",
)  # fmt: skip
def identity_holds(results, *, identity, biased=False) -> Measured:
    metrics = [identity, "ignored_minimum"] if biased else [identity]
    return [rows_of(results, metric=metric)["value"].max() for metric in metrics]


@CLAIMS.add(
    "4", "fig2.1", "Section 2.4.2",
    "The minimum of the click model's loss stays at .5 under growing bias; its magnitude shrinks",
    at_most("the distance of each minimum from .5", 1e-3),
    below("the range of the loss at each examination", 1, "times that at the next higher one"),
    at_most("the largest difference of IPS's loss between examinations", 1e-9),
)  # fmt: skip
def loss_shrinks(results) -> Measured:
    def curves(kind):
        measured = rows_of(results, metric="loss", kind=kind)
        return measured.pivot(index="examined", columns="estimate", values="value")

    minima = rows_of(results, metric="minimum", kind="pbm")["value"].to_numpy()
    ranges = np.ptp(curves("pbm").sort_index(ascending=False).to_numpy(), axis=1)
    apart = np.ptp(curves("ips").to_numpy(), axis=0).max()
    return np.abs(minima - 0.5).max(), (ranges[1:], ranges[:-1]), apart


@CLAIMS.add(
    "18", "fig2.3", "Section 2.6.2",
    "Two documents that share a parameter: IPS converges to the mean relevance, the click model to "
    "the document that is examined more",
    at_most("the distance of IPS's minimum from the mean", 1e-6),
    at_most("the distance of the click model's minimum from its closed form", 1e-6),
    below("its distance from the document examined more", 1, "times that from the other"),
    shown("relevances and minima"),
)  # fmt: skip
def two_documents(results) -> Measured:
    def one(metric, kind):
        return float(rows_of(results, metric=metric, kind=kind, curve="both")["value"].iloc[0])

    relevances = rows_of(results, metric="toy_relevance").set_index("curve")["value"]
    more, less = relevances["irrelevant"], relevances["relevant"]
    ips, pbm = one("toy_minimum", "ips"), one("toy_minimum", "pbm")
    return (
        abs(ips - relevances.mean()),
        abs(pbm - one("toy_closed_form", "pbm")),
        (abs(pbm - more), abs(pbm - less)),
        {"relevance": less, "relevance, examined more": more, "IPS": ips, "click model": pbm},
    )


@CLAIMS.add(
    "19", "marks", "Table 2.2",
    "The printed marks follow from the printed means and deviations by the test that is described",
    exactly("the number of marks that the test does not give, of 3, 12 or 36 comparisons", 0),
    exactly("the number of significant differences without a mark", 0),
    shown("marks not given"), shown("differences not marked"), origin=CHECK,
)  # fmt: skip
def marks_follow(results) -> Measured:
    both = marks(results)
    # A mark of the other sign is not given either.
    given = both[(both["value_printed"] != 0) & (both["value"] != both["value_printed"])]
    missing = both[(both["value_printed"] == 0) & (both["value"] != 0)]

    cells = [part[MARKED].drop_duplicates().to_numpy().tolist() for part in (given, missing)]
    return *map(len, cells), *(", ".join(map(" ".join, part)) or "none" for part in cells)


@CLAIMS.add(
    "30", "choices", "Section 2.5.3",
    "The learning rates that were chosen are those of the lowest validation loss averaged over "
    "epochs, not of the lowest one",
    exactly("the number of chosen rates, of nine, that the mean over epochs picks", 9),
    below("the number that the lowest loss picks", 9), origin=CHECK,
)  # fmt: skip
def rates_follow(results) -> Measured:
    return [rows_of(results, metric="agrees", rule=rule)["value"].sum() for rule in RULES[1:]]


@CLAIMS.add(
    "31", "choices", "Section 2.5.3",
    "Rates of the lowest validation loss put PBM with estimated bias ahead of true bias on Yahoo! "
    "Webscope; those that were chosen do the reverse",
    above("the difference in nDCG@10 at the rates of the lowest loss", 0),
    below("the difference at the rates that were chosen", 0), origin=CHECK,
)  # fmt: skip
def rates_decide(results) -> Measured:
    def lead(rule):
        yahoo = rows_of(results, metric="ndcg@10", rule=rule, dataset="yahoo")
        of = yahoo.set_index("method")["value"]
        return of["estimated"] - of["pbm"]

    return lead("lowest"), lead("chosen")


@CLAIMS.add(
    "6", "table2.1", "Section 2.5.1",
    "Cutting lists at their 90th percentile keeps the distribution of relevance almost identical",
    at_most("the largest change of the share of a label", 0.01),
    at_least("the share of documents that stay", 0.8),
)  # fmt: skip
def shares_stay(results) -> Measured:
    lists = {"setting": [f"lists-{dataset}" for dataset in DATASETS]}
    return means_of(results, ("share_moved", "share_kept"), lists)


CLAIMS = CLAIMS.in_order(grid.CLAIMS)
