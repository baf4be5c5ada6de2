"""Claims 12 to 16: Section 5.7.2, tables that are smaller than the pairs.

The thesis prints no number of Figure 5.2. So the thresholds are our reading of its words. They were
set before we had the authors' runs.
"""

import pandas as pd

from papers.clax2025.orders import CALLED, COMPRESSIONS, WITHOUT_TABLE, correlations, fits
from twotowers.claims.claims import Claims, Measured, NotTestable, seed_means
from twotowers.claims.conditions import above, at_least, at_most, below, counted, shown
from twotowers.models.names import MODELS

CLAIMS = Claims(names={"ratio": "ratio", "compression": COMPRESSIONS, "model": CALLED})

PERPLEXITY, CONDITIONAL = "mean_perplexity", "mean_conditional_perplexity"
WITH_TABLE = tuple(name for name in MODELS if name not in WITHOUT_TABLE)
MOST = 1000
"""The highest ratio."""


@CLAIMS.add(
    "12", "fig5.2", "Section 5.7.2",
    "The models' order hardly changes up to compression by 10 to 100 times",
    # A tau of .8 is 5 of 45 pairs of models in another order; one of .6 is 9.
    counted(at_least("by conditional perplexity, both compressions, up to 10 times: tau", 0.8)),
    counted(at_least("the same, 100 times: tau", 0.6)),
    gated=False,
)  # fmt: skip
def stays(results: pd.DataFrame) -> Measured:
    taus = _taus(results)[CONDITIONAL].unstack("compression")
    return taus[taus.index <= 10], taus[taus.index == 100]


@CLAIMS.add(
    "13", "fig5.2", "Section 5.7.2", "Both compressions behave alike",
    at_most("up to 100 times, both metrics: the mean distance of their taus", 0.15),
    gated=False,
)  # fmt: skip
def alike(results: pd.DataFrame) -> Measured:
    taus = _taus(results).stack().unstack("compression")
    own = taus[taus.index.get_level_values("ratio") <= 100]
    return (own["hashed"] - own["quotient"]).abs().mean()


@CLAIMS.add(
    "14", "fig5.2", "Section 5.7.2", "Unconditional perplexity is more susceptible to compression",
    below("mean tau over ratios and compressions by perplexity", 1, "times that by conditional"),
    gated=False,
)  # fmt: skip
def susceptible(results: pd.DataFrame) -> Measured:
    means = _taus(results).mean()
    return [(means[PERPLEXITY], means[CONDITIONAL])]


@CLAIMS.add(
    "15", "fig5.2", "Section 5.7.2", "Compression reduces overall click prediction performance",
    above("either compression, 1,000 times: mean perplexity of the models with a table", 1,
          "times that on full tables"),
    gated=False,
)  # fmt: skip
def worse(results: pd.DataFrame) -> Measured:
    full, most = _perplexities(results)
    return [(most.mean(), full.mean())]


@CLAIMS.add(
    "16", "fig5.2", "Section 5.7.2",
    "At high compression, baselines that are not compressed make others look worse than they are",
    counted(at_least("either compression: how many more models with a table are behind RCTR in "
                     "perplexity, 1,000 times, than on full tables", 1)),
    shown("compressed models behind RCTR"),
    gated=False,
)  # fmt: skip
def misleading(results: pd.DataFrame) -> Measured:
    full, most = _perplexities(results)
    rows = _common_seeds(fits(results))
    rctr = seed_means(rows, {"model": ["rctr"]}, metric=PERPLEXITY).item()
    behind = most > rctr
    names = {name: " ".join(own.index[own]).upper() or "none" for name, own in behind.items()}
    return behind.sum() - (full > rctr).sum(), pd.Series(names).rename(COMPRESSIONS)


def _taus(results: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds: a row per ratio and compression, a column per metric."""
    over = {"ratio": None, "compression": list(COMPRESSIONS), "metric": [CONDITIONAL, PERPLEXITY]}
    return seed_means(correlations(results), over).unstack("metric")


def _perplexities(results: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame]:
    """By model: on full tables, and per compression at the highest ratio."""
    rows, models = _common_seeds(fits(results)), {"model": WITH_TABLE}
    full = seed_means(rows, models, compression="full", metric=PERPLEXITY)
    over = {**models, "compression": list(COMPRESSIONS)}
    most = seed_means(rows, over, ratio=MOST, metric=PERPLEXITY).unstack("compression", sort=False)
    return full, most


def _common_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Of the seeds that have compressed tables."""
    seeds = rows.loc[rows["compression"] != "full", "seed"]
    if seeds.empty:
        raise NotTestable("no compressed tables")
    return rows[rows["seed"].isin(seeds)]
