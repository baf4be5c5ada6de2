"""Examination alone, harvested from pairs that a log shows at several positions.

Other methods weight clicks by it, or by the simulated user's own (`propensities_of`).

The estimators are those of `twotowers.fitting.harvesting`. `all_pairs_published` is All Pairs with
the collision of the code of Hager (2026, Section 3.3.2), and `naive` are click rates.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.curves import Curve
from twotowers.fitting.harvesting import harvest
from twotowers.methods.task import Fitted, Split, Task, pair_counts
from twotowers.towers.lane import Lanes

BIAS_ALONE = True
ALL_PAIRS, PUBLISHED = "all_pairs", "all_pairs_published"
Estimator = Literal["naive", "pivot_one", "adjacent_chain", "all_pairs", "all_pairs_published"]
NONE, TRUE = "none", "true"
"""No weights, and the examination probabilities of the simulated user."""
Known = Literal["true"] | Estimator


def fit(task: Task, *, estimator: Lanes[Estimator] = ALL_PAIRS) -> list[Fitted]:
    """Harvest every lane's training log.

    There are no scores of documents. The bias of a position is the logarithm of its ratio to the
    first; NaN where no document links the two.
    """
    own = zip(task.lanes, task.each(estimator), strict=True)
    curves = [curve_of(task, log, name) for (log, _), name in own]
    return [
        Fitted(scores=None, bias=np.log(curve.estimate), bias_error=curve.error) for curve in curves
    ]


def curve_of(task: Task, log: int, estimator: str) -> Curve:
    """Examination of each position of a training log, relative to the first."""
    train = task.splits["train"]
    if train.pair is None and train.inputs.ndim != 2:
        raise InputError(
            "harvesting compares pairs with themselves, and this log does not number them",
            field="method",
            expected="a real log, or a tower with a parameter per query-document pair",
        )
    name = ALL_PAIRS if estimator == PUBLISHED else estimator
    return harvest(pair_counts(task, log), name, collision=estimator == PUBLISHED)


def harvested(task: Task, log: int, estimator: str) -> np.ndarray:
    """[positions] propensities in (0, 1]. One that is not known is that of the position above."""
    estimate = curve_of(task, log, estimator).estimate
    known = np.maximum.accumulate(np.where(np.isfinite(estimate), np.arange(len(estimate)), 0))
    return np.clip(estimate[known], 1e-6, 1)


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
            estimator takes those of the training log.
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
