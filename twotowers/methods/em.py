"""Exact EM, with parameters per query-document pair, position and so on instead of towers."""

from __future__ import annotations

from twotowers.errors import InputError
from twotowers.fitting.em import fit_em
from twotowers.methods.page_fits import fit_lanes
from twotowers.methods.task import Fitted, Task

LANES = {"prior": 1.0, "prior_mean": 0.5}
"""The prior on probabilities, 1 or more: see `twotowers.methods.page_fits.PRIOR`. 1 is no prior. 2
adds one success and one failure if `prior_mean` is 1/2."""


def fit(
    task: Task,
    *,
    prior_on: str = "all",
    iterations: int = 1000,
    tolerance: float = 1e-8,
    accelerate: bool = True,
) -> list[Fitted]:
    """Fit every lane's training log by `twotowers.fitting.em.fit_em`.

    Args:
        task: its model must have `expectations`, and its tower must be "embedding".
        prior_on: the only part whose probabilities have the prior, such as "attraction", or "all".
        iterations: largest number of iterations.
        tolerance: EM stops when the relative gain of an iteration in log-likelihood is no larger.
        accelerate: whether an iteration is a cycle of SQUAREM, or else a plain step of EM.

    Raises:
        InputError: the model has no `expectations`, the tower is not "embedding", the prior is out
            of range, or the model needs sessions and the log is recorded as cells.
    """
    if task.model.expectations is None or task.model.counts is not None:
        other = "'likelihood'" if task.model.counts is None else "'counting'"
        raise InputError(
            f"{type(task.model).__name__} has no expectations",
            field="method",
            expected=f"a model with expectations, or method {other}",
        )
    how = {"iterations": iterations, "tolerance": tolerance, "accelerate": accelerate}
    return fit_lanes(task, fit_em, prior_on, **how)
