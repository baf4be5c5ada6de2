"""Exact EM, with parameters per query-document pair, position and so on instead of towers."""

from __future__ import annotations

from twotowers.errors import InputError
from twotowers.fitting.em import fit_em
from twotowers.methods.page_fits import fit_lanes
from twotowers.methods.task import Fitted, Task
from twotowers.towers.lane import Lane


def fit(
    task: Task,
    *,
    prior: float | Lane = 1.0,
    prior_mean: float | Lane = 0.5,
    prior_on: str = "all",
    iterations: int = 1000,
    tolerance: float = 1e-8,
    accelerate: bool = True,
) -> list[Fitted]:
    """Fit every lane's training log by `twotowers.fitting.em.fit_em`.

    Args:
        task: its model must have `expectations`, and its tower must be "embedding".
        prior, prior_mean, prior_on: see `twotowers.methods.page_fits.imagined`.
        iterations: largest number of iterations.
        tolerance: EM stops when the relative gain of an iteration in log-likelihood is no larger.
        accelerate: whether an iteration is a cycle of SQUAREM, or else a plain step of EM.
    """
    if task.model.expectations is None or task.model.counts is not None:
        other = "'likelihood'" if task.model.counts is None else "'counting'"
        raise InputError(
            f"{type(task.model).__name__} has no expectations",
            field="method",
            expected=f"a model with expectations, or method {other}",
        )
    how = {"iterations": iterations, "tolerance": tolerance, "accelerate": accelerate}
    return fit_lanes(task, fit_em, prior, prior_mean, prior_on, **how)
