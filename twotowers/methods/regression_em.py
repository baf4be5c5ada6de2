"""Regression EM with towers (Wang et al. 2018), on result pages.

The loss is `twotowers.losses.pointwise.regression_em_loss` (Hager 2026, Eq. 3.4). Its gradient
is that of the likelihood of a position-based model. So this is method `likelihood` with model
`position_based`, unless early stopping watches the loss of EM, as in the published code.
"""

from typing import Literal

import numpy as np

from twotowers.losses.pages import RegressionEM
from twotowers.methods.descent import fitted_of, page_losses, towers_of, train
from twotowers.methods.task import Fitted, Task
from twotowers.models.position_based import PositionBased

TRAINS = True
NEEDS = ("sessions",)


def fit(task: Task, *, watched: Literal["likelihood", "em"] = "likelihood") -> list[Fitted]:
    """Fit both towers of every lane by gradient descent.

    Args:
        task: its model is not used. The click model is the position-based one.
        watched: the loss that early stopping watches, "likelihood" or "em".
    """
    result = train(task, towers_of(task, PositionBased()), RegressionEM(watched=watched))
    return [_fitted(result, lane, log) for lane, (log, _) in enumerate(task.lanes)]


def _fitted(result, lane: int, log: int) -> Fitted:
    model = result.model(lane)
    return fitted_of(
        result,
        lane,
        bias=np.asarray(model.position_bias, float),
        page_losses=lambda split: page_losses(model, split, log),
    )
