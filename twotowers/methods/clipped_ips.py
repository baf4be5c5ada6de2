"""Pointwise inverse propensity scoring with clipped weights, on result pages.

The loss is `twotowers.losses.pointwise.inverse_propensity_loss` (Hager 2026, Section 3.4).
Method `ips` is the same without a clip, on the counts of cells. Clicks are predicted by
P(click) = e_k s(f), with the propensities as they are, as published.
"""

from __future__ import annotations

import numpy as np

from twotowers.losses.pages import inverse_propensity
from twotowers.methods.ips import TRUE, propensities_of
from twotowers.methods.page_losses import (
    fitted_of,
    position_based_losses,
    relevance_of,
    rows_of,
    train,
    weights_of,
)
from twotowers.methods.task import Fitted, Task
from twotowers.towers.lane import Lane
from twotowers.towers.two_towers import scores

TRAINS = True


def fit(
    task: Task, *, propensities: str = TRUE, highest_weight: float | Lane = 10.0
) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
        propensities: see `twotowers.methods.ips`.
        highest_weight: the largest weight of a click, 1 or more. 10 is the published clip at .1.
    """
    weights = weights_of(task, propensities, highest_weight)
    result = train(
        task,
        relevance_of(task),
        inverse_propensity,
        own=highest_weight,
        given=lambda split: weights,
    )
    return [
        _fitted(result, lane, log, propensities_of(task, log, propensities))
        for lane, (log, _) in enumerate(task.lanes)
    ]


def _fitted(result, lane: int, log: int, theta: np.ndarray) -> Fitted:
    tower = result.model(lane).relevance

    def page_losses(split):
        found = np.asarray(scores(tower, split.inputs)).ravel()[rows_of(split, log)]
        losses = position_based_losses(found, theta, split.sessions[log].clicks)
        return losses, losses

    return fitted_of(result, lane, bias=np.log(theta), page_losses=page_losses)
