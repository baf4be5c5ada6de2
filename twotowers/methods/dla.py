"""The dual learning algorithm with towers (Ai et al. 2018; Hager 2026, Eq. 3.6).

Relevance and examination weight each other's clicks. On a log of sessions, the losses are those of
result pages (`twotowers.losses.listwise.dual_losses`); on a log of cells, those of the counts of
whole queries (`twotowers.towers.dual`). Chen et al. 2024 use the name DLA for alternating least
squares on click rates, which is method `alternation`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from twotowers.losses.listwise import Normalised, Unclicked
from twotowers.losses.pages import Dual
from twotowers.methods.descent import descend, towers_of
from twotowers.methods.page_losses import count_losses, fitted_of, train
from twotowers.methods.task import Fitted, Task
from twotowers.models.additive import Additive
from twotowers.towers.dual import DualTowers

TRAINS = True
NEEDS = ("examination", "dense")


def fit(
    task: Task,
    *,
    normalised: Normalised = "not",
    unclicked: Unclicked = "uniform",
    watched: Literal["places", "losses"] = "places",
) -> list[Fitted]:
    """Fit both towers of every lane by gradient descent. Weights of clicks are at most 10.

    Args:
        task: its model's click probability is not used.
        normalised, unclicked: of pages; see `twotowers.losses.listwise.softmax_loss`. The code of
            Hager (2026) normalises "after".
        watched: of pages, the loss that early stopping watches: see `twotowers.losses.pages.Dual`.
            The code of Hager (2026) watches "losses".
    """
    lanes = range(len(task.lanes))
    if task.splits["train"].sessions is not None:
        loss = Dual(normalised=normalised, unclicked=unclicked, watched=watched)
        result = train(task, towers_of(task, Additive()), loss)
        towers = [result.model(lane) for lane in lanes]
    else:
        model = DualTowers(towers_of(task, task.model))
        result = descend(task, model, *count_losses(task))
        towers = [result.model(lane).towers for lane in lanes]
    return [
        fitted_of(result, lane, bias=np.asarray(own.examination, float))
        for lane, own in zip(lanes, towers, strict=True)
    ]
