"""Maximum likelihood in closed form, for click models without hidden events."""

from __future__ import annotations

from twotowers.fitting.em import fit_counts
from twotowers.methods.page_fits import fit_lanes
from twotowers.methods.task import Fitted, Task

LANES = {"prior": 1.0, "prior_mean": 0.5}
"""See `twotowers.methods.page_fits.PRIOR`."""


def fit(task: Task, *, prior_on: str = "all") -> list[Fitted]:
    """Fit every lane's training log by `twotowers.fitting.em.fit_counts`.

    Args:
        task: its model must have `counts`, and its tower must be "embedding".
        prior_on: the only part whose probabilities have the prior, such as "attraction", or "all".

    Raises:
        InputError: the model has no `counts`, the tower is not "embedding", the prior is out of
            range, or the model needs sessions and the log is recorded as cells.
    """
    return fit_lanes(task, fit_counts, prior_on)
