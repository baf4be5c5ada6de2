"""Examination alone, harvested from pairs that a log shows at several positions.

The estimators are those of `twotowers.fitting.harvesting`. `all_pairs_published` is All Pairs with
the collision of the code of Hager (2026, Section 3.3.2), and `naive` are click rates.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.curves import Curve
from twotowers.fitting.harvesting import harvest
from twotowers.methods.task import Fitted, Task, pair_counts
from twotowers.towers.lane import Lanes

BIAS_ALONE = True
ALL_PAIRS, PUBLISHED = "all_pairs", "all_pairs_published"
Estimator = Literal["naive", "pivot_one", "adjacent_chain", "all_pairs", "all_pairs_published"]


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
