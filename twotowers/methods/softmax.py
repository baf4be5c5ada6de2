"""The softmax loss of result pages, with or without inverse propensity weights.

It is the listwise loss of Hager (2026, Section 3.4), whose code has `normalised: after`. Method
`listwise` is the same loss of the counts of whole queries. The scores do not predict clicks.
"""

from __future__ import annotations

from twotowers.losses.listwise import Normalised, Unclicked
from twotowers.losses.pages import Softmax
from twotowers.methods.page_losses import NONE, fitted_of, relevance_of, train, weights_of
from twotowers.methods.task import Fitted, Task
from twotowers.towers.lane import Lane

TRAINS = True


def fit(
    task: Task,
    *,
    propensities: str = NONE,
    normalised: Normalised = "not",
    unclicked: Unclicked = "uniform",
    highest_weight: float | Lane = 10.0,
) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
        propensities: "none" gives every click the weight 1, the naive loss. Other values are as in
            `twotowers.methods.ips`.
        normalised, unclicked: see `twotowers.losses.listwise.softmax_loss`.
        highest_weight: the largest weight of a click, 1 or more. 10 is the published clip at .1.
    """
    weights = weights_of(task, propensities, highest_weight)
    result = train(
        task,
        relevance_of(task),
        Softmax(normalised=normalised, unclicked=unclicked),
        own=highest_weight,
        given=lambda split: weights,
    )
    return [fitted_of(result, lane) for lane in range(len(task.lanes))]
