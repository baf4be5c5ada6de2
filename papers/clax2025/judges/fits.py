"""Claims 1 to 7, 17 to 20 and 42 to 46: Figures 5.1 and 5.3, EM or counting against gradient
descent, and training times, of which the thesis says little else."""

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from papers.clax2025.orders import CALLED, COMPRESSIONS, HIDDEN, NINTH
from twotowers.claims.claims import OURS, Claims, Measured, NotTestable, seed_means
from twotowers.claims.conditions import above, at_least, at_most, below, counted, shown
from twotowers.claims.statistics import select
from twotowers.models.names import MODELS

NAMES = {"model": CALLED, "position": "rank", "ratio": "ratio", "compression": COMPRESSIONS}
CLAIMS = Claims(names=NAMES)

PERPLEXITY, CONDITIONAL = "mean_perplexity", "mean_conditional_perplexity"
POOLED = "pooled_conditional_perplexity"
CHAINS = ("ubm", "dcm", "ccm", "dbn", "sdbn")
DEPENDENT = "every model whose clicks depend on those above"
PUBLISHED_ORDER = ("dbn", "ubm", "pbm", "ccm", "sdbn", "dcm", "dctr", "cm", "rctr", "gctr")
"""CLAX's models by perplexity, first fold."""
LOW = (6, 7, 8, 9, 10)
"""Lower ranks."""


@CLAIMS.add(
    "1", "fig5.1", "Section 5.7.1", "Gradient descent matches EM in perplexity",
    # Published, fold 1: .0018 (UBM, DCM) to .0060 (DBN). The stand-in was calibrated to the rest.
    at_most(f"{DEPENDENT}: the difference of perplexities", 0.01),
    shown("gradient's perplexity less EM's (below 0, gradient descent predicts better)"),
)  # fmt: skip
def matches(results: pd.DataFrame) -> Measured:
    gaps = _gaps(results, [name for name in MODELS if name != "cm"], PERPLEXITY)
    return gaps[list(CHAINS)].abs(), gaps


@CLAIMS.add(
    "2", "fig5.1", "Section 5.7.1",
    "In conditional perplexity gradient descent is as good as EM, or better",
    # Published: -.0057 (UBM) to -.0211 (DBN); a tie is within .001.
    at_most(f"{DEPENDENT}: gradient's conditional perplexity less EM's", 0.001),
)  # fmt: skip
def exceeds(results: pd.DataFrame) -> Measured:
    return _gaps(results, CHAINS, CONDITIONAL)


@CLAIMS.add(
    "3", "fig5.1", "Section 5.7.1", "PBM and the CTR models perform identically in both libraries",
    # The authors' differ by .0023 at most.
    at_most("GCTR, RCTR, DCTR and PBM: the difference of perplexities", 0.002),
    solved_for=True,
)  # fmt: skip
def identical(results: pd.DataFrame) -> Measured:
    return _gaps(results, ("gctr", "rctr", "dctr", "pbm"), PERPLEXITY).abs()


@CLAIMS.add(
    "4", "fig5.1", "Figure 5.1", "The models' order by perplexity is the published one",
    counted(at_least("Kendall's tau between our order and the published one", 0.7)),
    shown("our order"),
    gated=False,
)  # fmt: skip
def ordered(results: pd.DataFrame) -> Measured:
    values = of(results, "gradient", PUBLISHED_ORDER, PERPLEXITY)
    tau = kendalltau(values.to_numpy(), np.arange(len(values))).statistic
    order = " ".join(values.sort_values(kind="stable").index).upper()
    return tau, order


@CLAIMS.add(
    "45", "fig5.1", "Figure 5.1",
    "CCM learns as much from the clicks above as UBM and DBN; SDBN and DCM, whose users always go "
    "on after no click, learn little",
    # Published, means of three folds: .0034; .0201 and .0242. Solved for are UBM's and DBN's.
    at_most("CCM's conditional perplexity less the mean of UBM's and DBN's", 0.01),
    at_least("that of SDBN, and of DCM, less the same mean", 0.01),
)  # fmt: skip
def remembered(results: pd.DataFrame) -> Measured:
    values = of(results, "gradient", CHAINS, CONDITIONAL)
    less = values - values[["ubm", "dbn"]].mean()
    return less["ccm"], less[["sdbn", "dcm"]]


@CLAIMS.add(
    "46", "fig5.1", "Figure 5.1",
    "The cascade model predicts clicks better than the rates of ranks",
    below("CM's perplexity", 1, "times RCTR's"),
    gated=False,
)  # fmt: skip
def cascade(results: pd.DataFrame) -> Measured:
    values = of(results, "gradient", ("cm", "rctr"), PERPLEXITY)
    return [(values["cm"], values["rctr"])]


@CLAIMS.add(
    "5", "fig5.1", "Figure 5.1", "The cascade model cannot explain what is clicked below a click",
    # Published: 2.903, where the worst of the others has 1.526. It holds by construction: a click
    # there has probability 1e-8, whatever the fit is.
    above("CM's conditional perplexity", 1, "times that of each other model"),
    gated=False,
)  # fmt: skip
def one_click(results: pd.DataFrame) -> Measured:
    values = of(results, "gradient", MODELS, CONDITIONAL)
    return [(values["cm"], values.drop("cm"))]


@CLAIMS.add(
    "6", "fig5.1", "Section 5.7.1",
    "What gradient descent gains is numerical stability: EM in log space loses nothing",
    # Half of the smallest gap that is published, UBM's .0057.
    at_most(f"{DEPENDENT}: EM's conditional perplexity less gradient's", 0.0028),
)  # fmt: skip
def stable(results: pd.DataFrame) -> Measured:
    return -_gaps(results, CHAINS, CONDITIONAL, by={"dcm": "em", "sdbn": "em"})


@CLAIMS.add(
    "7", "fig5.1", "Section 5.7.1", "The improvement is at lower ranks",
    below(
        "UBM, CCM and DBN: gradient's conditional perplexity over ranks 6 to 10", 1, "times EM's"
    ),
)  # fmt: skip
def lower_ranks(results: pd.DataFrame) -> Measured:
    names = ("ubm", "ccm", "dbn")
    fits = (("gradient", {}), ("em", {"prior_mean": NINTH}))
    pair = (_by_rank(results, prefix, names, LOW, **lane) for prefix, lane in fits)
    return [tuple(values.mean(axis="columns") for values in pair)]


@CLAIMS.add(
    "42", "by_rank", "Ours",
    "At every rank, what EM loses to gradient descent it loses by its prior",
    # Means over ranks were known when this was written, and nothing by rank.
    below(f"{DEPENDENT}, every rank: the distance of EM's conditional perplexity from gradient "
          "descent's, with a prior of 1/2,", 1, "times that with a prior of 1/9"),
    origin=OURS,
)  # fmt: skip
def by_prior(results: pd.DataFrame) -> Measured:
    far = {}
    for mean in (NINTH, 0.5):
        own, other = (
            _by_rank(results, prefix, CHAINS, range(1, 11), **lane)
            for prefix, lane in (("gradient", {}), ("em", {"prior_mean": mean}))
        )
        far[mean] = (own - other).abs()
    return [(far[0.5], far[NINTH])]


@CLAIMS.add(
    "43", "rounds", "Section 5.7.1; ours",
    "Fifty rounds of plain EM predict as well as EM to convergence",
    # A fifth of the smallest gap to gradient descent that is published, UBM's .0057.
    at_most("every model that EM fits: the difference of conditional perplexities", 0.001),
    origin=OURS,
)  # fmt: skip
def enough(results: pd.DataFrame) -> Measured:
    # Of the divisions of the log that were fitted in 50 rounds.
    seeds = results.loc[results["setting"].str.startswith("rounds-"), "seed"].unique()
    results = results[results["seed"].isin(seeds)]
    rounds, ends = (
        of(results, prefix, HIDDEN, CONDITIONAL, prior_mean=NINTH) for prefix in ("rounds", "em")
    )
    return (rounds - ends).abs()


@CLAIMS.add(
    "44", "definitions", "Eq. 5.14; ours",
    "The models' order does not depend on the definition of perplexity",
    # The authors have 1.310 and 1.298 of PBM.
    counted(at_least("Kendall's tau between the orders by the mean over ranks and by Eq. 5.14, "
                     "given the clicks above", 0.8)),
    below("every model but CM, given the clicks above: Eq. 5.14", 1, "times the mean over ranks"),
    origin=OURS, gated=False,
)  # fmt: skip
def defined(results: pd.DataFrame) -> Measured:
    mean, pooled = (of(results, "gradient", MODELS, metric) for metric in (CONDITIONAL, POOLED))
    tau = kendalltau(mean.to_numpy(), pooled.to_numpy()).statistic
    return tau, (pooled.drop("cm"), mean.drop("cm"))


def _by_rank(results: pd.DataFrame, prefix: str, models, ranks, **lane) -> pd.DataFrame:
    """Conditional perplexity: a row per model, a column per rank."""
    settings = [f"{prefix}-{name}" for name in models]
    over = {"setting": settings, "position": ranks}
    values = seed_means(results, over, metric="conditional_perplexity", **lane).unstack()
    return values.loc[settings].set_axis(_models(models))


def _gaps(results: pd.DataFrame, models, metric: str, by=None) -> pd.Series:
    """Gradient's value less EM's or counting's, by model.

    As published: DCM and SDBN by counting, where `by` does not say "em".
    """
    counted = {"dcm": "counted", "sdbn": "counted"} | (by or {})
    own = of(results, "gradient", models, metric)
    settings = [f"{counted.get(name, 'em')}-{name}" for name in models]
    others = seed_means(results, {"setting": settings}, metric=metric, prior_mean=NINTH)
    return own - others.loc[settings].to_numpy()


def of(results: pd.DataFrame, prefix: str, models, metric: str, **lane) -> pd.Series:
    """Means over seeds of the settings PREFIX-model, by model."""
    settings = [f"{prefix}-{name}" for name in models]
    values = seed_means(results, {"setting": settings}, metric=metric, **lane)
    return pd.Series(values.to_numpy(), _models(models))


def _models(names) -> pd.Index:
    return pd.Index(names, name="model")


BAIDU_ORDER = ("pbm", "rctr", "ubm", "ccm", "dbn", "cm", "sdbn", "dcm", "gctr", "dctr")
"""Models by the mean perplexity of the authors' three runs."""
SECONDS = "train_seconds"
"""Only authors' runs have it: the same seed gives the same bytes here, so results hold no times."""


@CLAIMS.add(
    "17", "fig5.3", "Figure 5.3", "The models' order by perplexity is the published one",
    # That of claim 4. A tau of .73 had been seen on one division of the log.
    counted(at_least("Kendall's tau between our order and the published one", 0.7)),
    gated=False,
)  # fmt: skip
def ordered_on_baidu(results: pd.DataFrame) -> Measured:
    values = of(results, "baidu", BAIDU_ORDER, PERPLEXITY)
    return kendalltau(values.to_numpy(), np.arange(len(values))).statistic


@CLAIMS.add(
    "18", "fig5.3", "Figure 5.3", "A table of documents adds nothing on Baidu-ULTR",
    # The authors have 1.2404 and 1.2352, and 1.1504 twice. We had seen one division of the log.
    above("DCTR's perplexity", 1, "times that of GCTR"),
    at_least("PBM's perplexity", 0.999, "times that of RCTR"),
    gated=False,
)  # fmt: skip
def nothing(results: pd.DataFrame) -> Measured:
    values = of(results, "baidu", ("gctr", "dctr", "rctr", "pbm"), PERPLEXITY)
    return (values["dctr"], values["gctr"]), (values["pbm"], values["rctr"])


@CLAIMS.add(
    "19", "fig5.1", "Section 5.7.1; Figure 5.1",
    "Gradient descent trains in a tenth of the time of EM, where EM iterates",
    # Printed minutes: 2.7 to 4.5 by gradient descent, 164 (PBM) to 2,148 (CCM) by EM.
    below("PBM, UBM, CCM and DBN: seconds of gradient descent", 0.1, "times those of EM"),
    gated=False,
)  # fmt: skip
def faster(results: pd.DataFrame) -> Measured:
    # PyClick counts DCM and SDBN.
    names = [name for name in HIDDEN if name not in ("dcm", "sdbn")]
    own = _seconds(results, "gradient", names)
    return [(own, _seconds(results, "em", names, prior_mean=NINTH))]


@CLAIMS.add(
    "20", "fig5.2", "Section 5.7.2", "Compression by 10 times and more makes training faster",
    # Printed: 14 minutes become around 4. The size of the ratio is the machine's.
    below("either compression, each ratio from 10 on: mean seconds of all models", 0.5,
          "times those on full tables"),
    gated=False,
)  # fmt: skip
def shorter(results: pd.DataFrame) -> Measured:
    full = _seconds(results, "gradient", MODELS).mean()
    rows = []
    for prefix in COMPRESSIONS:
        values = select(results, metric=SECONDS)
        values = values[values["setting"].str.startswith(prefix) & (values["tower_ratio"] >= 10)]
        rows.append(values.assign(compression=prefix, ratio=values["tower_ratio"]))
    values = pd.concat(rows).groupby(["ratio", "compression"])["value"].mean()
    return [(values, full)]


def _seconds(results: pd.DataFrame, prefix: str, models, **lane) -> pd.Series:
    if not (results["metric"] == SECONDS).any():
        raise NotTestable("results hold no times: README, 'Times'")
    return of(results, prefix, models, SECONDS, **lane)
