"""Claims 8 to 11 and 41: Eq. 5.10 at random parameters, exact optima, ClickEMLoss; and recovery."""

import pandas as pd

from papers.clax2025.names import CALLED, HIDDEN
from twotowers.claims.claims import OURS, Claims, Measured, seed_means
from twotowers.claims.conditions import at_most, shown
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
