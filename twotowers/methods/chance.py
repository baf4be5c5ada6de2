"""Rank at random, in expectation: all scores are equal, and metrics take each order as likely."""

from functools import partial

import numpy as np

from twotowers.methods.task import Fitted, Split, Task

NO_CLICK = np.logaddexp(0, (np.arange(1000) + 0.5) / 1000).mean()
"""The mean of ln(1 + e^u) over u in (0, 1): the loss of no click. That of a click is 1/2 less."""


def fit(task: Task) -> list[Fitted]:
    """Rank by chance; the model and the tower are not used.

    Scores are uniform in (0, 1), and a click's log-odds (Hager 2026, Table 3.3). What is measured
    is the mean over all draws.
    """
    return [
        Fitted(
            scores=lambda inputs: np.zeros(inputs.shape[:2]),
            page_losses=partial(losses, log),
            learns=False,
        )
        for log, _ in task.lanes
    ]


def losses(log: int, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """The mean of -ln P(click or none, as observed) at each position, twice."""
    each = NO_CLICK - split.sessions[log].clicks / 2
    return each, each
