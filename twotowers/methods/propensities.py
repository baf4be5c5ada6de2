"""Propensities of positions, by which methods weight clicks."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from twotowers.errors import InputError
from twotowers.methods.harvesting import Estimator, harvested
from twotowers.methods.task import Split, Task

NONE, TRUE = "none", "true"
"""No weights, and the examination probabilities of the simulated user."""
Known = Literal["true"] | Estimator


def weighed(task: Task, propensities: Known) -> Task:
    """The task with clicks divided by propensities of positions (see `propensities_of`)."""
    logs = range(len(task.splits["train"].counts.impressions))
    theta = np.stack([propensities_of(task, log, propensities) for log in logs])
    return replace(task, splits={name: _weighed(each, theta) for name, each in task.splits.items()})


def _weighed(split: Split, theta: np.ndarray) -> Split:
    counts = split.counts
    if counts.listed:
        at = np.stack([own[position] for own, position in zip(theta, counts.position, strict=True)])
    else:
        at = theta[:, None, None, : counts.clicks.shape[-1]]
    clicks = (counts.clicks / at).astype(np.float32)
    return replace(split, counts=replace(counts, clicks=clicks), sessions=None)


def propensities_of(task: Task, log: int, propensities: Known) -> np.ndarray:
    """[positions] propensities of one log.

    Args:
        task: its users and data.
        log: number of the log.
        propensities: "true" takes the examination probabilities of the simulated user. An
            estimator of `twotowers.methods.harvesting` takes those of the training log.
    """
    if propensities == TRUE:
        user = task.users[log] if task.users else None
        if not hasattr(user, "examined"):
            raise InputError(
                "the examination probabilities of this log are unknown",
                field="propensities",
                expected="a simulated user with them, such as 'position_based', or an estimator",
            )
        return user.examined(task.positions)
    return harvested(task, log, propensities)
