"""The softmax loss of result pages, with or without inverse propensity weights.

It is the listwise loss of Hager (2026, Section 3.4), whose code has `normalised: after`. Method
`listwise` is the same loss of the counts of whole queries. The scores do not predict clicks.
"""

from __future__ import annotations

from twotowers.methods.page_losses import NONE, fitted_of, relevance_of, train, weights_of
from twotowers.methods.task import Fitted, Task
from twotowers.objectives.pages import Softmax

LANES = {"highest_weight": 10.0}
"""The largest weight of a click, 1 or more. 10 is the published clip at .1."""
CHOICES = {"normalised": ("not", "after", "before"), "unclicked": ("uniform", "nothing")}

TRAINS = True


def fit(
    task: Task, *, propensities: str = NONE, normalised: str = "not", unclicked: str = "uniform"
) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
        propensities: "none" gives every click the weight 1, the naive loss. Other values are as in
            `twotowers.methods.ips`.
        normalised, unclicked: see `twotowers.objectives.listwise.softmax_loss`.

    Raises:
        InputError: the log has no sessions, or propensities are unknown.
    """
    weights = weights_of(task, propensities)
    result = train(
        task,
        relevance_of(task),
        Softmax(normalised=normalised, unclicked=unclicked),
        own=LANES,
        given=lambda split: weights,
    )
    return [fitted_of(result, lane) for lane in range(len(task.lanes))]
