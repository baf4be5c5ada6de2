"""Claims on the further analyses of Section 2.6, and on ours."""

from __future__ import annotations

import numpy as np

from papers.hager2023.grid import FULL, by_seed, gap
from twotowers.results.claims import Claims, Measured, seed_means
from twotowers.results.conditions import above, at_least, at_most, below, shown

CLAIMS = Claims()

FEW = 1e3
"""Queries at which they differ in how often they are seen."""

CLICK_MODELS = {"with true bias": {"method": "pbm"}, "with estimated bias": {"method": "estimated"}}


@CLAIMS.add(
    "20", "fig2.4a", "Section 2.6.3",
    "With a parameter per document, IPS and the click models recover relevance equally well",
    at_least("nDCG@10 of each method after all queries", 0.995),
)  # fmt: skip
def recovered(results) -> Measured:
    most = results.loc[results["metric"] == "ndcg@10", "sessions"].max()
    means = seed_means(
        results,
        {"method": ["ips", "pbm", "estimated"]},
        metric="ndcg@10",
        sessions=most,
        collisions=0,
    )
    return means


@CLAIMS.add(
    "21", "fig2.4b", "Section 2.6.4", "Documents that share features cost the click model more",
    at_most("the lead of IPS without collisions", 0.005),
    above("the lead of IPS at .5", 0), above("the lead of IPS at .9", 0),
    parts=CLICK_MODELS,
)  # fmt: skip
def collisions_cost(results, *, method) -> Measured:
    most = results.loc[results["metric"] == "ndcg@10", "sessions"].max()
    leads = [
        gap(
            *(
                by_seed(results, metric="ndcg@10", method=m, sessions=most, collisions=share)
                for m in ("ips", method)
            )
        )
        for share in (0, 0.5, 0.9)
    ]
    return leads


@CLAIMS.add(
    "22", "fig2.5", "Section 2.6.5", "Growing known position bias costs the click model, not IPS",
    at_most("what IPS loses in nDCG@10 from eta 0 to 2", 0.01),
    above("what PBM loses", 0.01),
    below("what IPS loses", 1, "times what PBM loses"),
)  # fmt: skip
def bias_costs(results) -> Measured:
    ips, pbm = (
        gap(*(by_seed(results, setting=f"eta-{m}", metric="ndcg@10", eta=eta) for eta in (0, 2)))
        for m in ("ips", "pbm")
    )
    return ips, pbm, (ips, pbm)


@CLAIMS.add(
    "23", "weighted", "Section 2.5.2",
    "Results hold up on raw clicks, without averaging click rates",
    above("the lead of PBM over IPS at 1,000 raw queries", 0),
    above("the lead of IPS over PBM at 10^8 raw queries", 0),
    shown("on averaged rates: IPS less PBM at 1,000 and at 10^8 queries"),
)  # fmt: skip
def on_raw_clicks(results) -> Measured:
    def lead(log, sessions):
        runs = (
            by_seed(results, setting=f"{log}-{method}", metric="ndcg@10", sessions=sessions)
            for method in ("ips", "pbm")
        )
        return gap(*runs)

    averaged = [lead("istella", sessions) for sessions in (FEW, FULL)]
    return -lead("raw", FEW), lead("raw", FULL), averaged


@CLAIMS.add(
    "24", "mechanism", "Section 2.6.2",
    "Documents that share features make a gap (ours: on expected clicks, without variance)",
    at_most("the size of IPS's lead in nDCG@10 with a parameter per document, in any seed,", 0.001),
    above("IPS's lead at the exact optimum of a linear ranker", 0),
    at_most("the largest derivative at this optimum, of any seed,", 1e-5),
    shown("mean lead by tower"),
    parts={
        "MSLR-WEB30K": {"dataset": "mslr"},
        "Istella-S": {"dataset": "istella"},
        "Yahoo! Webscope": {"dataset": "yahoo"},
    },
)  # fmt: skip
def by_misfit(results, *, dataset) -> Measured:
    def runs(tower):
        lane = {"setting": f"mechanism-{dataset}", "metric": "ndcg@10", "tower": tower}
        return [by_seed(results, **lane, kind=kind) for kind in ("ips", "pbm")]

    slopes = {"setting": f"mechanism-{dataset}", "metric": "gradient", "tower": "linear"}
    left = seed_means(results, {"seed": None, "kind": ["ips", "pbm"]}, **slopes)
    own = runs("document")
    leads = {tower: gap(*runs(tower)) for tower in ("document", "linear", "sampled", "deep")}
    return np.abs(own[0] - own[1]), leads["linear"], left, leads
