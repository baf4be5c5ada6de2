"""The softmax loss of lists, with or without inverse propensity weights (Ai et al. 2018).

Only the relevance tower is fitted. This is the ranking half of `twotowers.methods.dla` with given
weights. It separates the effect of the listwise loss from the effect of the weights. The loss does
not depend on a constant added to all scores of a list, so the method predicts no clicks.
"""

from __future__ import annotations

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.gradient import FitSettings
from twotowers.fitting.gradient import fit as gradient_fit
from twotowers.methods.ips import TRUE, propensities_of, weighed
from twotowers.methods.likelihood import count_loss
from twotowers.methods.page_losses import fitted_of
from twotowers.methods.task import Fitted, Task
from twotowers.models.document_rate import DocumentRate
from twotowers.models.listwise import ListTower
from twotowers.models.towers import two_towers
from twotowers.objectives.likelihood import CountLoss

TRAINS = True
NONE = "none"


def fit(task: Task, *, propensities: str = TRUE) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
        propensities: "none" gives every click the weight 1. Other values are as in
            `twotowers.methods.ips`.

    Raises:
        InputError: propensities are unknown, or lists are longer than 32.
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
        varied=task.varied(),
    )
    return [fitted_of(result, lane) for lane in range(len(task.lanes))]


def _loss(task: Task, name: str, propensities: str) -> CountLoss:
    split = task.splits[name]
    if split.counts.listed:
        raise InputError(
            "lists are too long for method 'listwise'", field="positions", expected="at most 32"
        )
    if propensities != NONE:
        logs = range(len(split.counts.impressions))
        theta = [propensities_of(task, log, propensities) for log in logs]
        split = weighed(split, np.stack(theta))
    return count_loss(split, [(log, "none") for log, _ in task.lanes])
