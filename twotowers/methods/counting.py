"""Maximum likelihood in closed form, for click models without hidden events."""

from __future__ import annotations

from twotowers.fitting.em import fit_counts
from twotowers.methods.page_fits import fit_lanes
from twotowers.methods.task import Fitted, Task
from twotowers.towers.lane import Lane


def fit(
    task: Task, *, prior: float | Lane = 1.0, prior_mean: float | Lane = 0.5, prior_on: str = "all"
) -> list[Fitted]:
    """Fit every lane's training log by `twotowers.fitting.em.fit_counts`.

    Args:
        task: its model must have `counts`, and its tower must be "embedding".
        prior, prior_mean, prior_on: see `twotowers.methods.page_fits.imagined`.
    """
    return fit_lanes(task, fit_counts, prior, prior_mean, prior_on)
