"""Maximum likelihood in closed form, for click models without hidden events."""

from typing import Annotated

from pydantic import Field

from twotowers.fitting.em import fit_counts
from twotowers.methods.page_fits import fit_lanes
from twotowers.methods.task import Fitted, Task
from twotowers.towers.lane import Lanes

NEEDS = ("embedding", "counts")
Weight = Annotated[float, Field(ge=1)]
Mean = Annotated[float, Field(gt=0, lt=1)]


def fit(task: Task, *, prior: Lanes[Weight] = 1.0, prior_mean: Lanes[Mean] = 0.5) -> list[Fitted]:
    """Fit every lane's training log by `twotowers.fitting.em.fit_counts`.

    Args:
        task: its model must have `counts`, and its tower must be "embedding".
        prior, prior_mean: see `twotowers.fitting.prior.pseudo_counts`.
    """
    return fit_lanes(task, fit_counts, prior, prior_mean)
