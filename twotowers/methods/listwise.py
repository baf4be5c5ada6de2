"""The softmax loss of lists, with or without inverse propensity weights (Ai et al. 2018).

Only the relevance tower is fitted. This is the ranking half of `twotowers.methods.dla` with given
weights. It separates the effect of the listwise loss from the effect of the weights. The loss does
not depend on a constant added to all scores of a list, so the method predicts no clicks.
"""

from __future__ import annotations

import numpy as np

from twotowers.methods.descent import check_lengths, count_loss, descend
from twotowers.methods.ips import TRUE, propensities_of, weighed
from twotowers.methods.page_losses import NONE, fitted_of, relevance_of
from twotowers.methods.task import Fitted, Task

TRAINS = True


def fit(task: Task, *, propensities: str = TRUE) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
        propensities: "none" gives every click the weight 1. Other values are as in
            `twotowers.methods.ips`.
    """
    splits = [task.splits[name] for name in ("train", "validation")]
    check_lengths(splits, "listwise")
    if propensities != NONE:
        logs = range(len(splits[0].counts.impressions))
        theta = np.stack([propensities_of(task, log, propensities) for log in logs])
        splits = [weighed(split, theta) for split in splits]
    lanes = [(log, "none") for log, _ in task.lanes]
    result = descend(task, relevance_of(task), *(count_loss(split, lanes) for split in splits))
    return [fitted_of(result, lane) for lane in range(len(lanes))]
