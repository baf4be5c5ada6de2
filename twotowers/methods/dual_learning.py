"""The dual learning algorithm (Ai et al. 2018; Hager 2026, Eq. 3.6), on result pages.

The losses are `twotowers.losses.listwise.dual_losses`. Method `dla` is the same algorithm, of
the counts of whole queries. The code of Hager (2026) has `normalised: after` and `watched: losses`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from twotowers.errors import check_range
from twotowers.losses.listwise import Normalised, Unclicked
from twotowers.losses.pages import Dual
from twotowers.methods.descent import towers_of
from twotowers.methods.page_losses import fitted_of, train
from twotowers.methods.task import Fitted, Task
from twotowers.models.additive import Additive

TRAINS = True


def fit(
    task: Task,
    *,
    highest_weight: float = 10.0,
    normalised: Normalised = "not",
    unclicked: Unclicked = "uniform",
    watched: Literal["places", "losses"] = "places",
) -> list[Fitted]:
    """Fit both towers of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
        highest_weight: the largest weight of a click, in [1, 1e9].
        normalised, unclicked: see `twotowers.losses.listwise.softmax_loss`.
        watched: the loss that early stopping watches: see `twotowers.losses.pages.Dual`.
    """
    check_range(highest_weight, field="method.highest_weight", low=1, high=1e9)
    loss = Dual(highest=highest_weight, normalised=normalised, unclicked=unclicked, watched=watched)
    result = train(task, towers_of(task, Additive()), loss)
    return [
        fitted_of(result, lane, bias=np.asarray(result.model(lane).examination, float))
        for lane in range(len(task.lanes))
    ]
