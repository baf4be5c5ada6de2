"""The dual learning algorithm with towers (Ai et al. 2018).

Relevance and examination weight each other's clicks (`twotowers.models.dual`). One compiled program
trains all lanes. Chen et al. 2024 use the name DLA for alternating least squares on click rates,
which is method `alternation`.
"""

from __future__ import annotations

import numpy as np

from twotowers.errors import InputError, check_range
from twotowers.fitting.gradient import FitSettings
from twotowers.fitting.gradient import fit as gradient_fit
from twotowers.methods.likelihood import count_loss
from twotowers.methods.task import Fitted, Task
from twotowers.models.dual import DualTowers
from twotowers.models.towers import scores, two_towers
from twotowers.objectives.likelihood import CountLoss

TRAINS = True


def fit(task: Task, *, highest_weight: float = 10.0) -> list[Fitted]:
    """Fit one copy of both towers per lane.

    Args:
        task: its model must have examination. The model's click probability is not used.
        highest_weight: largest weight of a click, in [1, 1e9].

    Raises:
        InputError: the model has no examination, lists are longer than 32, or the weight is out
            of range.
    """
    check_range(highest_weight, field="method.highest_weight", low=1, high=1e9)
    if "examination" not in task.model.parts:
        raise InputError(
            f"{type(task.model).__name__} has no examination",
            field="model.kind",
            expected="a model with examination, such as 'additive'",
        )
    lanes = [(log, "none") for log, _ in task.lanes]
    train, validation = (_loss(task, split, lanes) for split in ("train", "validation"))
    inputs = task.splits["train"].inputs
    towers = two_towers(
        task.tower,
        width=inputs.shape[-1],
        pairs=task.splits["train"].where.size,
        positions=task.positions,
        seed=task.seed,
        model=task.model,
        **task.examination,
    )
    result = gradient_fit(
        DualTowers(towers, highest=highest_weight),
        train,
        validation,
        FitSettings(**task.training),
        lanes=len(lanes),
        seed=task.seed,
        varied=task.varied(),
    )
    return [_fitted(result.model(lane).towers, result, lane) for lane in range(len(lanes))]


def _loss(task: Task, split: str, lanes) -> CountLoss:
    if task.splits[split].counts.listed:
        raise InputError(
            "lists are too long for method 'dla'", field="positions", expected="at most 32"
        )
    return count_loss(task.splits[split], lanes)


def _fitted(towers, result, lane: int) -> Fitted:
    return Fitted(
        scores=lambda inputs: np.asarray(scores(towers.relevance, inputs)),
        bias=np.asarray(towers.examination, float),
        values={"epochs": result.epochs[lane]},
        history=result.history[:, lane],
    )
