"""Claims 21 to 26 and 47: Figure 5.4, models that generalise over features."""

import pandas as pd
from scipy.stats import kendalltau

from papers.clax2025.judges.fits import CONDITIONAL, PERPLEXITY, of
from papers.clax2025.orders import CALLED
from twotowers.claims.claims import Claims, Measured
from twotowers.claims.conditions import above, at_most, below, counted, shown, some

CLAIMS = Claims(names={"model": CALLED})

DCG = "dcg@10"
NAIVE, POSITION = "dctr", "pbm"
CASCADES = ("cm", "dcm", "ccm", "dbn", "sdbn")
"""Cascade-based models."""
EXAMINING = (POSITION, "dcm", "ccm", "dbn")
"""Models that are also fitted with a parameter per pair."""
RANKING = (NAIVE, POSITION, "ubm", *CASCADES, "mixture")
"""Models that rank annotated documents."""


@CLAIMS.add(
    "21", "fig5.4", "Section 5.7.3",
    "Click prediction by features remains similar to that by embeddings",
    # The authors have no numbers of embeddings here. The margin is that of claim 1. It was .02,
    # which could hardly fail, and was changed after one seed had been seen, with .012 of DCM.
    at_most("every model: the difference of perplexities, features and embeddings", 0.01),
)  # fmt: skip
def similar(results: pd.DataFrame) -> Measured:
    own, other = (of(results, by, EXAMINING, PERPLEXITY) for by in ("features", "pairs"))
    return (own - other).abs()


@CLAIMS.add(
    "22", "fig5.4", "Section 5.7.3",
    'Gaps between models narrow with features; how much is "considerably", the paper does not say',
    *[
        below(f"the standard deviation of {metric} among the models by features", 1,
              "times that of the models with a parameter per pair")
        for metric in ("perplexity", "conditional perplexity")
    ],
)  # fmt: skip
def narrower(results: pd.DataFrame) -> Measured:
    measured = []
    for metric in (PERPLEXITY, CONDITIONAL):
        own, other = (of(results, by, EXAMINING, metric) for by in ("features", "pairs"))
        measured.append((own.std(), other.std()))
    return measured


@CLAIMS.add(
    "23", "fig5.4", "Section 5.7.3", "Ranking does not follow click prediction",
    # Published: a tau of 0 in each fold, and .06 of their means, of these nine models.
    counted(below("Kendall's tau between the models' orders by perplexity and by DCG@10", 0.6)),
    shown("order by DCG@10"),
)  # fmt: skip
def apart(results: pd.DataFrame) -> Measured:
    clicks, ranking = (of(results, "features", RANKING, metric) for metric in (PERPLEXITY, DCG))
    tau = kendalltau(-clicks.to_numpy(), ranking.to_numpy()).statistic
    return tau, " ".join(ranking.sort_values(ascending=False, kind="stable").index).upper()


@CLAIMS.add(
    "24", "fig5.4", "Section 5.7.3; Figure 5.4",
    "Cascade-based models rank well: the best ranking is one of theirs",
    # Published: 7.957 (CM), 7.947 (SDBN) and 7.719 (PBM); 7.626 (CCM) and 7.529 (DCTR).
    some(above("DCG@10 of a cascade-based model", 1, "times that of PBM")),
    above("mean DCG@10 of the cascade-based models", 1, "times that of DCTR"),
)  # fmt: skip
def cascades(results: pd.DataFrame) -> Measured:
    measured = of(results, "features", (NAIVE, POSITION, *CASCADES), DCG)
    own = measured[list(CASCADES)]
    return (own, measured[POSITION]), (own.mean(), measured[NAIVE])


# The thesis says "click prediction", and its two metrics say different things of its own runs.
@CLAIMS.add(
    "25a", "fig5.4", "Section 5.7.3",
    "The mixture predicts clicks better than each of its parts, given those above",
    below("the mixture's conditional perplexity", 1, "times that of GCTR, DCTR and PBM"),
    metric=CONDITIONAL,
)  # fmt: skip
@CLAIMS.add(
    "25b", "fig5.4", "Section 5.7.3",
    "The mixture predicts clicks better than each of its parts, not given any",
    below("the mixture's perplexity", 1, "times that of GCTR, DCTR and PBM"), metric=PERPLEXITY,
)  # fmt: skip
@CLAIMS.add(
    "25c", "fig5.4", "Section 5.7.3", "The mixture ranks better than each of its parts",
    above("the mixture's DCG@10", 1, "times that of DCTR and PBM"), metric=DCG,
)  # fmt: skip
def mixed(results: pd.DataFrame, metric: str) -> Measured:
    measured = of(results, "features", ("mixture", NAIVE, POSITION), metric)
    if metric != DCG:
        measured["gctr"] = of(results, "counts", ("gctr",), metric)["gctr"]
    return [(measured["mixture"], measured.drop("mixture"))]


@CLAIMS.add(
    "26", "fig5.4", "Figure 5.4",
    "CM and SDBN rank better than PBM, and predict clicks worse",
    # Published: 7.957 and 7.947 against 7.719; 1.2414 and 1.2375 against 1.2280.
    above("DCG@10 of CM and of SDBN", 1, "times that of PBM"),
    above("perplexity of CM and of SDBN", 1, "times that of PBM"),
)  # fmt: skip
def rank_alone(results: pd.DataFrame) -> Measured:
    measured = []
    for metric in (DCG, PERPLEXITY):
        values = of(results, "features", (POSITION, "cm", "sdbn"), metric)
        measured.append((values.drop(POSITION), values[POSITION]))
    return measured


@CLAIMS.add(
    "47", "fig5.4", "Figure 5.4",
    "By features, models of documents predict better than rates of ranks",
    # Published: 1.2414 (CM) and 1.2401 (DCTR) at worst, against 1.2557. Solved for is PBM's.
    below("perplexity of every other model of documents", 1, "times RCTR's"),
)  # fmt: skip
def documents_tell(results: pd.DataFrame) -> Measured:
    others = [name for name in RANKING if name != POSITION]
    ranks = of(results, "counts", ("rctr",), PERPLEXITY)["rctr"]
    return [(of(results, "features", others, PERPLEXITY), ranks)]
