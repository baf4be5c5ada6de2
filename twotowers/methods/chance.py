"""Rank at random: scores are uniform in (0, 1), drawn anew for each seed."""

from __future__ import annotations

from functools import partial

import numpy as np

from twotowers.methods.task import Fitted, Split, Task
from twotowers.randomness import stream


def fit(task: Task) -> list[Fitted]:
    """Rank by chance; the model and the tower are not used.

    A click's log-odds are taken for the score (Hager 2026, Table 3.3).
    """

    def scores(inputs: np.ndarray) -> np.ndarray:
        return stream("random ranker", task.seed, len(inputs)).random(inputs.shape[:2])

    return [
        Fitted(scores=scores, page_losses=partial(losses, scores, log), learns=False)
        for log, _ in task.lanes
    ]


def losses(scores, log: int, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """-ln P(click or none, as observed) at each position, twice."""
    pages = split.sessions[log]
    found = scores(split.inputs)[pages.query[:, None], pages.documents]
    each = np.logaddexp(0, np.where(pages.clicks, -found, found))
    return each, each
