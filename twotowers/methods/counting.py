"""Click rates in closed form, for models without hidden events."""

from __future__ import annotations

from twotowers.fitting.pages import fit_counts
from twotowers.methods.page_fits import (
    PRIOR,
    check_by_pair,
    fitted_of,
    imagined,
    statistics_of,
)
from twotowers.methods.task import Fitted, Task

LANES = {"prior": 1.0, "prior_mean": 0.5}
"""See `twotowers.methods.page_fits.PRIOR`."""


def fit(task: Task) -> list[Fitted]:
    """Count every lane's training log (`twotowers.fitting.pages.fit_counts`).

    Args:
        task: its model must have `counts`, and its tower be "embedding".

    Raises:
        InputError: the model cannot be counted, or needs pages that the log has not.
    """
    check_by_pair(task)
    return [
        _fitted(task, log, **{name: values[name] for name in PRIOR}) for log, values in task.lanes
    ]


def _fitted(task: Task, log: int, prior: float, prior_mean: float) -> Fitted:
    smoothing = imagined(prior, prior_mean)
    estimate = fit_counts(statistics_of(task, log), prior=smoothing)
    return fitted_of(task, log, estimate, smoothing)
