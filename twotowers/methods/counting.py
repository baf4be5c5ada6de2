"""Maximum likelihood in closed form, for click models without hidden events."""

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
    """Fit every lane's training log by `twotowers.fitting.pages.fit_counts`.

    Args:
        task: its model must have `counts`, and its tower must be "embedding".

    Raises:
        InputError: the model has no `counts`, the tower is not "embedding", the prior is out of
            range, or the model needs sessions and the log is recorded as cells.
    """
    check_by_pair(task)
    return [
        _fitted(task, log, **{name: values[name] for name in PRIOR}) for log, values in task.lanes
    ]


def _fitted(task: Task, log: int, prior: float, prior_mean: float) -> Fitted:
    smoothing = imagined(prior, prior_mean)
    estimate = fit_counts(statistics_of(task, log), prior=smoothing)
    return fitted_of(task, log, estimate, smoothing)
