"""The softmax loss of lists, with or without inverse propensity weights (Ai et al. 2018).

On a log of sessions, a list is a result page (Hager 2026, Section 3.4, whose code has `normalised:
after`); on a log of cells, it is the counts of a whole query (`twotowers.methods.descent`). The
loss does not depend on a constant added to all scores of a list, so the method predicts no clicks.
"""

from typing import Literal

from twotowers.losses.listwise import Normalised, Unclicked
from twotowers.losses.pages import Softmax
from twotowers.methods.descent import (
    count_losses,
    descend,
    fitted_of,
    relevance_of,
    train,
    weights_of,
)
from twotowers.methods.harvesting import NONE, Known, weighed
from twotowers.methods.task import Fitted, Task

TRAINS = True
NEEDS = ("dense",)


def fit(
    task: Task,
    *,
    propensities: Literal["none"] | Known = NONE,
    normalised: Normalised = "not",
    unclicked: Unclicked = "uniform",
) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
        propensities: "none" gives every click the weight 1, the naive loss. Other values are as in
            `twotowers.methods.harvesting`. Of pages, weights are at most 10, the published clip
            at .1.
        normalised, unclicked: of pages; see `twotowers.losses.listwise.softmax_loss`.
    """
    model = relevance_of(task)
    if task.splits["train"].sessions is not None:
        weights = weights_of(task, propensities)
        loss = Softmax(normalised=normalised, unclicked=unclicked)
        result = train(task, model, loss, given=lambda split: weights)
    else:
        given = task if propensities == NONE else weighed(task, propensities)
        result = descend(task, model, *count_losses(given))
    return [fitted_of(result, lane) for lane in range(len(task.lanes))]
