"""Claims 21 to 25: Figure 5.4, models that generalise over features."""

from __future__ import annotations

import pandas as pd
from scipy.stats import kendalltau

from papers.clax2025.judges.fits import CONDITIONAL, PERPLEXITY, of
from papers.clax2025.names import CALLED
from twotowers.results.claims import Claims, Measured
from twotowers.results.conditions import above, at_most, below, shown

CLAIMS = Claims(names={"model": CALLED})

DCG = "dcg@10"
NAIVE, POSITION = "dctr", "pbm"
CASCADES = ("dcm", "ccm", "dbn")
"""Cascade-based models whose DCG@10 is published."""
EXAMINING = (POSITION, *CASCADES)
"""Models in which users look at some positions more than at others."""
RANKING = (NAIVE, *EXAMINING, "mixture")
"""Models that rank annotated documents."""


@CLAIMS.add(
    "21", "fig5.4", "Section 5.7.3",
    "Click prediction by features remains similar to that by embeddings",
    # The authors have no numbers of embeddings here. A tenth of what clicks leave to predict.
    at_most("every model: the difference of perplexities, features and embeddings", 0.02),
)  # fmt: skip
def similar(results: pd.DataFrame) -> Measured:
    own, other = (of(results, by, EXAMINING, PERPLEXITY) for by in ("features", "pairs"))
    return (own - other).abs()


@CLAIMS.add(
    "22", "fig5.4", "Section 5.7.3", "Gaps between models narrow considerably with features",
    *[
        below(f"the highest less the lowest {metric} of the models by features", 0.67,
              "times that of the models with a parameter per pair")
        for metric in ("perplexity", "conditional perplexity")
    ],
)  # fmt: skip
def narrower(results: pd.DataFrame) -> Measured:
    found = []
    for metric in (PERPLEXITY, CONDITIONAL):
        own, other = (of(results, by, EXAMINING, metric) for by in ("features", "pairs"))
        found.append((own.max() - own.min(), other.max() - other.min()))
    return found


@CLAIMS.add(
    "23", "fig5.4", "Section 5.7.3", "Ranking does not follow click prediction",
    below("Kendall's tau between the models' orders by perplexity and by DCG@10", 0.6),
    shown("order by DCG@10"),
)  # fmt: skip
def apart(results: pd.DataFrame) -> Measured:
    clicks, ranking = (of(results, "features", RANKING, metric) for metric in (PERPLEXITY, DCG))
    tau = kendalltau(-clicks.to_numpy(), ranking.to_numpy()).statistic
    return tau, " ".join(ranking.sort_values(ascending=False, kind="stable").index).upper()


@CLAIMS.add(
    "24", "fig5.4", "Section 5.7.3; Figure 5.4",
    "Cascade-based models rank well: the best ranking is one of theirs",
    # Published: 7.776 (DBN) and 7.706 (PBM); 7.624 (DCM) and 7.538 (DCTR).
    above("DCG@10 of the best of DCM, CCM and DBN", 1, "times that of PBM"),
    above("DCG@10 of each of DCM, CCM and DBN", 1, "times that of DCTR"),
)  # fmt: skip
def cascades(results: pd.DataFrame) -> Measured:
    found = of(results, "features", (NAIVE, POSITION, *CASCADES), DCG)
    own = found[list(CASCADES)]
    return (own.max(), found[POSITION]), (own, found[NAIVE])


@CLAIMS.add(
    "25", "fig5.4", "Section 5.7.3", "The mixture is better than each of its parts",
    below("the mixture's perplexity", 1, "times that of GCTR, DCTR and PBM"),
    above("the mixture's DCG@10", 1, "times that of DCTR and PBM"),
)  # fmt: skip
def mixed(results: pd.DataFrame) -> Measured:
    clicks = of(results, "features", ("mixture", NAIVE, POSITION), PERPLEXITY)
    clicks["gctr"] = of(results, "counts", ("gctr",), PERPLEXITY)["gctr"]
    ranking = of(results, "features", ("mixture", NAIVE, POSITION), DCG)
    return [(each["mixture"], each.drop("mixture")) for each in (clicks, ranking)]
