"""Claims on Figure 2.2 and Table 2.2, on the further analyses of Section 2.6, and ours."""

from functools import cache

import numpy as np
import pandas as pd

from papers.hager2023.grid import (
    ALPHA,
    DATASETS,
    FULL,
    METHODS,
    PRODUCTION,
    RUNS,
    STRICTEST,
    between,
    by_seed,
    gap,
    least_significant,
    of_method,
    runs_of,
)
from twotowers.claims.claims import (
    OURS,
    Claims,
    Measured,
    NotTestable,
    TooFewRuns,
    rows_of,
    seed_means,
)
from twotowers.claims.conditions import (
    above,
    at_least,
    at_most,
    below,
    evidence_if,
    shown,
    significant,
)
from twotowers.claims.published import bands
from twotowers.claims.statistics import select

CLAIMS = Claims()

ALL = {title: {"dataset": name} for name, title in DATASETS.items()}
EARLY = 1e5
"""Simulated queries up to which the thesis has the click models ahead."""


BOTH = shown("the difference"), shown("the least significant one")
SIGNIFICANT = significant("the difference in nDCG@10, over the least significant one,"), *BOTH
NOT_SIGNIFICANT = at_most("the difference, over the least significant one,", 1), *BOTH
TRAINED = evidence_if(
    "PBM with true bias is ahead of the naive model",
    "PBM with true bias is behind the naive model, so its training failed",
)
NOT_ISTELLA, NOT_MSLR = (
    {title: part for title, part in ALL.items() if part["dataset"] != name}
    for name in ("istella", "mslr")
)


@CLAIMS.add(
    "5", "table2.2", "Section 2.6.1",
    "All approaches improve the average relevant position of the production ranker",
    below("each difference in ARP to Production", 0), parts=ALL, metric="arp",
)  # fmt: skip
@CLAIMS.add(
    "7", "table2.2", "Section 2.6.1", "All approaches improve over the production ranker",
    above("each difference in nDCG@10 to Production", 0), parts=ALL,
)  # fmt: skip
def beats_production(results, *, dataset, metric="ndcg@10") -> Measured:
    return {name: between(results, dataset, m, PRODUCTION, metric) for m, name in METHODS.items()}


@CLAIMS.add(
    "8", "fig2.2", "Section 2.6.1", "The naive model converges by one million queries",
    at_most("the change in nDCG@10 from 10^6 to 10^8 queries", 0.005), parts=ALL,
)  # fmt: skip
def naive_converges(results, *, dataset) -> Measured:
    where = {"setting": f"{dataset}-naive", "metric": "ndcg@10"}
    means = seed_means(results, {"sessions": [1e6, FULL]}, **where)
    return abs(means[FULL] - means[1e6])


@CLAIMS.add(
    "9", "table2.2", "Section 2.6.1",
    "PBM with estimated bias beats the naive model significantly",
    *SIGNIFICANT, parts=NOT_ISTELLA, pair=("estimated", "naive"),
)  # fmt: skip
@CLAIMS.add(
    "10", "table2.2", "Section 2.6.1", "PBM with true bias beats the naive model significantly",
    *SIGNIFICANT, parts=ALL, pair=("pbm", "naive"),
)  # fmt: skip
@CLAIMS.add(
    "11", "table2.2", "Section 2.6.1",
    "PBM with estimated bias does not beat the naive model significantly on Istella-S",
    *NOT_SIGNIFICANT, chance=False, dataset="istella", pair=("estimated", "naive"), least=RUNS,
)  # fmt: skip
@CLAIMS.add(
    "16", "table2.2", "Section 2.6.1",
    "IPS does not end significantly above PBM with true bias on MSLR-WEB30K",
    *NOT_SIGNIFICANT, chance=False, dataset="mslr", pair=("ips", "pbm"), least=RUNS,
)  # fmt: skip
def of_significant(results, *, dataset, pair, least=2) -> Measured:
    """The difference of two methods over the least significant one, and both.

    By the thesis' test, at its alpha, corrected for 36 comparisons.
    """
    runs = [runs_of(results, dataset, method) for method in pair]
    count = min(map(len, runs))
    if count < least:
        raise TooFewRuns(f"the thesis tests over {RUNS} runs, and here are {count}")
    difference = runs[0].mean() - runs[1].mean()
    threshold = least_significant(*(run.std() for run in runs), count, ALPHA / STRICTEST)
    return difference / threshold, difference, threshold


@CLAIMS.add(
    "27", "table2.2", "ours", "PBM with estimated bias is ahead of the naive model",
    above("the difference in nDCG@10", 0), parts=NOT_ISTELLA, origin=OURS, one="estimated",
)  # fmt: skip
@CLAIMS.add(
    "28", "table2.2", "ours", "PBM with true bias is ahead of the naive model",
    above("the difference in nDCG@10", 0), parts=ALL, origin=OURS, one="pbm",
)  # fmt: skip
def ahead_of_naive(results, *, dataset, one) -> Measured:
    return between(results, dataset, one, "naive")


@CLAIMS.add(
    "12", "table2.2", "Section 2.6.1",
    "PBM with true bias and with estimated bias differ significantly nowhere",
    at_most("the size of the difference, over the least significant one,", 1), *BOTH,
    chance=False, parts=ALL,
)  # fmt: skip
def no_significant_difference(results, *, dataset) -> Measured:
    pair = "pbm", "estimated"
    ratio, *others = of_significant(results, dataset=dataset, pair=pair, least=RUNS)
    return abs(ratio), *others


@CLAIMS.add(
    "13", "table2.2", "Section 2.6.1",
    "PBM with true bias varies less between runs than with estimated bias",
    below("the standard deviation of nDCG@5 over runs with true bias", 1,
          "times that with estimated bias"),
    shown("number of runs"), parts=ALL,
)  # fmt: skip
def varies_less(results, *, dataset) -> Measured:
    true, estimated = (runs_of(results, dataset, m, "ndcg@5") for m in ("pbm", "estimated"))
    if (count := min(len(true), len(estimated))) < 2:
        raise NotTestable("one run has no deviation")
    return (true.std(), estimated.std()), count


@CLAIMS.add(
    "14", "fig2.2", "Section 2.6.1",
    "Both click models are ahead of IPS for the first 100,000 queries",
    above("the lead in nDCG@10 of each click model at each budget that is run up to 10^5", 0),
    parts=ALL,
)  # fmt: skip
def ahead_at_first(results, *, dataset) -> Measured:
    early = rows_of(results, metric="ndcg@10").query("sessions <= @EARLY")
    over = {"sessions": sorted(early["sessions"].unique())}
    means = {
        method: seed_means(early, over, setting=f"{dataset}-{method}")
        for method in ("pbm", "estimated", "ips")
    }
    return pd.DataFrame({METHODS[m]: means[m] - means["ips"] for m in ("pbm", "estimated")})


@CLAIMS.add(
    "15", "table2.2", "Section 2.6.1", "IPS ends significantly above PBM with true bias",
    *SIGNIFICANT, TRAINED, parts=NOT_MSLR,
)  # fmt: skip
def ips_ends_above(results, *, dataset) -> Measured:
    values = of_significant(results, dataset=dataset, pair=("ips", "pbm"))
    return *values, between(results, dataset, "pbm", "naive") > 0


@CLAIMS.add(
    "29", "table2.2", "ours", "IPS ends above PBM with true bias",
    above("the difference in nDCG@10", 0), TRAINED, parts=NOT_MSLR, origin=OURS,
)  # fmt: skip
def ips_is_ahead(results, *, dataset) -> Measured:
    leads = (between(results, dataset, *pair) for pair in (("ips", "pbm"), ("pbm", "naive")))
    return next(leads), next(leads) > 0


@cache
def printed_ndcg(dataset: str) -> dict[str, float]:
    """Table 2.2's nDCG@10 of the production ranker and of each method."""
    table = bands("hager2023")
    return {
        method: float(
            select(table, **of_method(dataset, method, "ndcg@10"), sessions=FULL)["value"].iloc[0]
        )
        for method in (PRODUCTION, *METHODS)
    }


@CLAIMS.add(
    "17", "table2.2", "Table 2.2",
    "The order of the five models by nDCG@10 is that of the table",
    above("nDCG@10 less that of the next, of two printed .005 apart or more,", 0), shown("nDCG@10"),
    parts=ALL,
)  # fmt: skip
def in_printed_order(results, *, dataset) -> Measured:
    printed = printed_ndcg(dataset)
    ours = {method: runs_of(results, dataset, method).mean() for method in printed}
    leads = {
        f"{one} and {other}": ours[one] - ours[other]
        for one in printed
        for other in printed
        if printed[one] - printed[other] >= 0.005
    }
    return leads, ours


@CLAIMS.add(
    "25", "table2.2", "ours", "PBM with estimated bias finds the bias",
    at_most("the distance of its slope against ln k from -1, in any seed,", 0.2),
    parts=ALL, origin=OURS,
)  # fmt: skip
def finds_bias(results, *, dataset) -> Measured:
    where = {"setting": f"{dataset}-estimated", "metric": "position_bias", "sessions": FULL}
    bias = seed_means(results, {"seed": None, "position": None}, **where).unstack()
    steps = np.log(bias.columns.to_numpy(float))
    # Through 0 at rank 1, to which bias is relative.
    slopes = (bias * steps).sum(axis="columns") / (steps**2).sum()
    return np.abs(slopes + 1)


UNEVEN = [1e4]
"""Simulated queries that ask some queries far more often than others, so that it matters whether
each query or each impression counts. At 10^8 both losses are the same."""

CLICK_MODELS = {"with true bias": {"method": "pbm"}, "with estimated bias": {"method": "estimated"}}


@CLAIMS.add(
    "20", "fig2.4a", "Section 2.6.3",
    "With a parameter per document, IPS and the click models recover relevance equally well",
    at_least("nDCG@10 of each method after all queries", 0.995),
)  # fmt: skip
def recovered(results) -> Measured:
    most = results.loc[results["metric"] == "ndcg@10", "sessions"].max()
    over = {"method": ["ips", "pbm", "estimated"]}
    return seed_means(results, over, metric="ndcg@10", sessions=most, collisions=0)


@CLAIMS.add(
    "21", "fig2.4b", "Section 2.6.4", "Documents that share features cost the click model more",
    at_most("the lead of IPS without collisions", 0.005),
    above("the lead of IPS at .5", 0), above("the lead of IPS at .9", 0),
    parts=CLICK_MODELS,
)  # fmt: skip
def collisions_cost(results, *, method) -> Measured:
    most = results.loc[results["metric"] == "ndcg@10", "sessions"].max()
    where = {"metric": "ndcg@10", "sessions": most}

    def of(method, share):
        return by_seed(results, **where, method=method, collisions=share)

    return [gap(of("ips", share), of(method, share)) for share in (0, 0.5, 0.9)]


@CLAIMS.add(
    "22", "fig2.5", "Section 2.6.5", "Growing known position bias costs the click model, not IPS",
    at_most("what IPS loses in nDCG@10 from eta 0 to 2", 0.01),
    above("what PBM loses", 0.01),
    below("what IPS loses", 1, "times what PBM loses"),
    evidence_if(
        "PBM at eta 2 is ahead of the production ranker",
        "PBM at eta 2 is behind the rankings that it saw, so its training failed",
    ),
    also=["table2.2"],
)  # fmt: skip
def bias_costs(results) -> Measured:
    def at(method, eta):
        return by_seed(results, setting=f"eta-{method}", metric="ndcg@10", eta=eta)

    ips, pbm = (gap(at(method, 0), at(method, 2)) for method in ("ips", "pbm"))
    shown_lists = runs_of(results, "istella", PRODUCTION)
    return ips, pbm, (ips, pbm), gap(at("pbm", 2), shown_lists) > 0


@CLAIMS.add(
    "23", "weighted", "Section 2.5.2",
    "Results hold up on raw clicks, without averaging click rates",
    at_most("how far the lead of PBM over IPS on raw clicks is from that on averaged rates", 0.02),
    shown("the lead on raw clicks"), shown("the lead on averaged rates"),
)  # fmt: skip
def on_raw_clicks(results) -> Measured:
    def leads(log):
        over, where = {"sessions": UNEVEN}, {"metric": "ndcg@10"}
        pbm, ips = (
            seed_means(results, over, setting=f"{log}-{method}", **where)
            for method in ("pbm", "ips")
        )
        return pbm - ips

    raw, averaged = leads("raw"), leads("istella")
    return (raw - averaged).abs(), raw, averaged


@CLAIMS.add(
    "24", "mechanism", "Section 2.6.2",
    "Documents that share features make a gap (ours: on expected clicks, without variance)",
    at_most("the size of IPS's lead in nDCG@10 with a parameter per document, in any seed,",
                    0.001),
    above("IPS's lead on training queries, at the exact optimum of a linear ranker,", 0),
    at_most("the largest derivative at this optimum, of any seed,", 1e-5),
    shown("mean lead on test queries by tower"),
    parts=ALL,
)  # fmt: skip
def by_misfit(results, *, dataset) -> Measured:
    def runs(tower, metric="ndcg@10"):
        lane = {"setting": f"mechanism-{dataset}", "metric": metric, "tower": tower}
        return [by_seed(results, **lane, kind=kind) for kind in ("ips", "pbm")]

    slopes = {"setting": f"mechanism-{dataset}", "metric": "gradient", "tower": "linear"}
    left = seed_means(results, {"seed": None, "kind": ["ips", "pbm"]}, **slopes)
    own = runs("document")
    fitted = gap(*runs("linear", "ndcg@10_train"))
    leads = {tower: gap(*runs(tower)) for tower in ("linear", "sampled")}
    return np.abs(own[0] - own[1]), fitted, left, leads
