"""Claims on the further analyses of Section 2.6, and on ours."""

import numpy as np

from papers.hager2023.grid import DATASETS, FULL, PRODUCTION, by_seed, gap, of_method
from twotowers.claims.claims import Claims, Measured, seed_means
from twotowers.claims.conditions import above, at_least, at_most, below, evidence_if, shown

CLAIMS = Claims()

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
    shown_lists = by_seed(results, **of_method("istella", PRODUCTION, "ndcg@10"), sessions=FULL)
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
    parts={title: {"dataset": name} for name, title in DATASETS.items()},
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
