"""The softmax loss of lists, of clicks as they are or by inverse propensities (Ai et al. 2018).

The relevance tower alone is fitted. It is the ranking half of `twotowers.methods.dla` with weights
that are given, so what the list does to a ranking and what the weights do can be told apart. The
loss knows scores up to a constant per list, so it predicts no clicks.
"""

from __future__ import annotations

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.gradient import FitSettings
from twotowers.fitting.gradient import fit as gradient_fit
from twotowers.logs.counts import Counts
from twotowers.methods.ips import TRUE, propensities_of, weighed
from twotowers.methods.likelihood import count_loss
from twotowers.methods.task import Fitted, Task
from twotowers.models.document_rate import DocumentRate
from twotowers.models.listwise import ListTower
from twotowers.models.towers import scores, two_towers
from twotowers.objectives.likelihood import CountLoss

TRAINS = True
NONE = "none"
UNWEIGHTED = {"weighting": "none"}


def fit(task: Task, *, propensities: str = TRUE) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model is not asked what a click is.
        propensities: "none", where every click counts alike; otherwise as of
            `twotowers.methods.ips`.

    Raises:
        InputError: propensities are unknown, or lists are too long to be counted in a table.
    """
    train, validation = (_loss(task, split, propensities) for split in ("train", "validation"))
    towers = two_towers(
        task.tower,
        width=task.splits["train"].inputs.shape[-1],
        pairs=task.splits["train"].where.size,
        positions=task.positions,
        seed=task.seed,
        model=DocumentRate(),
    )
    result = gradient_fit(
        ListTower(towers.relevance),
        train,
        validation,
        FitSettings(**task.training),
        lanes=len(task.lanes),
        seed=task.seed,
        varied=task.varied(()),
    )
    return [_fitted(result, lane) for lane in range(len(task.lanes))]


def _loss(task: Task, name: str, propensities: str) -> CountLoss:
    split = task.splits[name]
    if not isinstance(split.counts, Counts):
        raise InputError(
            "lists are too long for method 'listwise'", field="positions", expected="at most 32"
        )
    if propensities != NONE:
        logs = range(len(split.counts.impressions))
        theta = [propensities_of(task, log, propensities) for log in logs]
        split = weighed(split, np.stack(theta))
    return count_loss(split, [(log, UNWEIGHTED) for log, _ in task.lanes])


def _fitted(result, lane: int) -> Fitted:
    model = result.model(lane)
    return Fitted(
        scores=lambda inputs: np.asarray(scores(model.relevance, inputs)),
        values={"epochs": result.epochs[lane]},
        history=result.history[:, lane],
    )
