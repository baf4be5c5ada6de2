"""Exact EM, with parameters per query-document pair, position and so on instead of towers."""

from typing import Annotated

from pydantic import Field

from twotowers.fitting.em import fit_em
from twotowers.methods.counting import Mean, Weight
from twotowers.methods.page_fits import fit_lanes
from twotowers.methods.task import Fitted, Task
from twotowers.towers.lane import Lanes

NEEDS = ("embedding", "expectations")


def fit(
    task: Task,
    *,
    prior: Lanes[Weight] = 1.0,
    prior_mean: Lanes[Mean] = 0.5,
    iterations: Annotated[int, Field(ge=1)] = 1000,
    tolerance: Annotated[float, Field(ge=0, le=1)] = 1e-8,
    accelerate: bool = True,
) -> list[Fitted]:
    """Fit every lane's training log by `twotowers.fitting.em.fit_em`.

    Args:
        task: its model must have `expectations`, and its tower must be "embedding".
        prior, prior_mean: see `twotowers.fitting.prior.pseudo_counts`.
        iterations: largest number of iterations.
        tolerance: EM stops when the relative gain of an iteration in log-likelihood is no larger.
        accelerate: whether an iteration is a cycle of SQUAREM, or else a plain step of EM.
    """
    how = {"iterations": iterations, "tolerance": tolerance, "accelerate": accelerate}
    return fit_lanes(task, fit_em, prior, prior_mean, **how)
