"""All claims of chapter 5. Those on EM and gradients, and on known users, are here.

The thesis gives no errors. A nominal share of .95 is met within .03: of 2,000 documents the share
has a standard error of .005, of which one must leave room for the normal law of a few clicks.
"""

import pandas as pd

from papers.clax2025.judges import compression, features, fits
from papers.clax2025.orders import CALLED, HIDDEN
from twotowers.claims.claims import OURS, Claims, Measured, NotTestable, seed_means
from twotowers.claims.conditions import above, at_least, at_most, counted, shown
from twotowers.claims.statistics import select
from twotowers.models.names import MODELS

CLAIMS = Claims(names={"model": CALLED})


@CLAIMS.add(
    "8", "em_gradient", "Eq. 5.10",
    "The gradient of Q at the current parameters is that of the marginal likelihood",
    # What central differences of step 1e-6 leave.
    at_most("every model: the largest difference, relative to the largest gradient", 1e-5),
    chance=False, metric="gradient_difference",
)  # fmt: skip
@CLAIMS.add(
    "41", "em_gradient", "Eq. 5.10; ours",
    "TF-Ranking's ClickEMLoss has the gradient of the binary cross-entropy of clicks",
    # Rounding in float64 leaves about 1e-15.
    at_most("PBM: the largest difference by both logits, relative to the largest gradient", 1e-6),
    origin=OURS, chance=False, metric="click_loss_difference", models=("pbm",),
)  # fmt: skip
def study(results: pd.DataFrame, metric: str, models: tuple[str, ...] = HIDDEN) -> pd.Series:
    return seed_means(results, {"model": models}, setting="em_gradient", metric=metric)


@CLAIMS.add(
    "9", "em_gradient", "Section 5.3.3",
    "EM is gradient ascent with a step size that depends on the parameters",
    # A factor is p (1 - p) / trials, so it is positive by construction.
    shown("every model: the smallest factor by which an EM step scales the gradient"),
    at_most("every model: what of an EM step these factors leave unexplained", 1e-9),
    chance=False,
)  # fmt: skip
def scaled(results: pd.DataFrame) -> Measured:
    return study(results, "smallest_factor"), study(results, "step_difference")


@CLAIMS.add(
    "10", "em_gradient", "Section 5.3.3; ours",
    "Without priors, EM and gradient ascent end at the same likelihood",
    at_most("every model: the difference of log-likelihoods per document", 5e-4),
    origin=OURS,
)  # fmt: skip
def same_end(results: pd.DataFrame) -> Measured:
    return study(results, "end_difference").abs()


@CLAIMS.add(
    "11", "recovery", "Ours",
    "No model predicts a user's clicks better than the user's own model",
    # Held-out clicks of few sessions differ by chance; ten times less than misspecification costs.
    at_most("every user: own conditional perplexity less each other model's", 0.002), origin=OURS,
    gated=False,
)  # fmt: skip
def own_is_best(results: pd.DataFrame) -> Measured:
    settings = [f"recovery-{name}" for name in MODELS]
    over = {"user_kind": list(MODELS.values()), "setting": settings}
    where = {"metric": "mean_conditional_perplexity", "setting": settings}
    measured = seed_means(results, over, **where).unstack("setting")
    own = pd.Series({kind: measured.loc[kind, f"recovery-{name}"] for name, kind in MODELS.items()})
    return -measured.sub(own, axis="index")


OF_DOCUMENTS = ("attraction", "satisfaction")
"""Parts of which each document has its own."""


@CLAIMS.add(
    "31", "uncertainty", "Ours",
    "95 % intervals of counting and EM hold the truth of documents about as often as they say",
    at_least("every model and part of documents: coverage", 0.92),
    at_most("every model and part of documents: coverage", 0.98),
    documents=True, models={"dctr", "pbm", "cm", "ubm", "dcm", "ccm", "dbn", "sdbn"}, origin=OURS,
)  # fmt: skip
@CLAIMS.add(
    "32", "uncertainty", "Ours",
    "So do those of what all documents share",
    # Of few parameters each; a share of .85 is 3 of 20 outside, where 1 is expected.
    counted(at_least("every model: coverage of positions and of what there is once", 0.85)),
    documents=False, models={"gctr", "rctr", "pbm", "ubm", "dcm", "ccm", "dbn"}, origin=OURS,
)  # fmt: skip
def of_parts(results: pd.DataFrame, documents: bool, models: set[str]) -> Measured:
    if "part" not in results:
        raise NotTestable("no intervals")
    rows = select(results, setting=[f"interval-{name}" for name in MODELS], metric="coverage")
    values = rows.groupby(["setting", "part"])["value"].mean()
    values = values[values.index.get_level_values("part").isin(OF_DOCUMENTS) == documents]
    settings = values.index.get_level_values("setting")
    if lacking := models - {setting.split("-")[1] for setting in settings}:
        raise NotTestable(f"no coverage of {', '.join(sorted(lacking))}")
    return [values, values] if documents else values


@CLAIMS.add(
    "33", "uncertainty", "Ours",
    "Where gradient descent stops early, intervals at its end hold the truth less often",
    above("PBM and DBN: coverage of attraction by EM", 1, "times that by gradient descent"),
    origin=OURS,
)  # fmt: skip
def of_gradient(results: pd.DataFrame) -> Measured:
    def coverage(prefix):
        over = {"setting": [f"{prefix}-pbm", f"{prefix}-dbn"], "part": ["attraction"]}
        return seed_means(results, over, metric="coverage")

    return [(coverage("interval"), coverage("stopped"))]


CLAIMS = CLAIMS.in_order(*(judges.CLAIMS for judges in (compression, features, fits)))
