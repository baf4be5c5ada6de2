"""The dual learning algorithm with towers (Ai et al. 2018).

Relevance and examination weight each other's clicks (`twotowers.towers.dual`). One compiled program
trains all lanes. Chen et al. 2024 use the name DLA for alternating least squares on click rates,
which is method `alternation`.
"""

from __future__ import annotations

import numpy as np

from twotowers.errors import InputError, check_range
from twotowers.methods.descent import check_lengths, count_loss, descend, towers_of
from twotowers.methods.page_losses import fitted_of
from twotowers.methods.task import Fitted, Task
from twotowers.towers.dual import DualTowers

TRAINS = True


def fit(task: Task, *, highest_weight: float = 10.0) -> list[Fitted]:
    """Fit one copy of both towers per lane.

    Args:
        task: its model must have examination. The model's click probability is not used.
        highest_weight: largest weight of a click, in [1, 1e9].
    """
    check_range(highest_weight, field="method.highest_weight", low=1, high=1e9)
    if "examination" not in task.model.parts:
        raise InputError(
            f"{type(task.model).__name__} has no examination",
            field="model.kind",
            expected="a model with examination, such as 'additive'",
        )
    lanes = [(log, "none") for log, _ in task.lanes]
    splits = [task.splits[name] for name in ("train", "validation")]
    check_lengths(splits, "dla")
    model = DualTowers(towers_of(task, task.model), highest=highest_weight)
    result = descend(task, model, *(count_loss(split, lanes) for split in splits))
    return [
        fitted_of(result, lane, bias=np.asarray(result.model(lane).towers.examination, float))
        for lane in range(len(lanes))
    ]
