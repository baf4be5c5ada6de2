"""Pointwise inverse propensity scoring: each click counts 1 / the propensity of its position.

The loss of an impression at position k with click c is (Bekker et al. 2019; Saito et al. 2020,
Eq. 8)

    -[(c / theta_k) ln s(gamma) + (1 - c / theta_k) ln(1 - s(gamma))]

with s the sigmoid. For a position-based user, its expectation over clicks equals the loss on
relevance itself. On a log of cells, the propensities theta_k are not clipped, so 1 - c / theta_k
may be negative. On a log of sessions, weights are clipped (Hager 2026, Section 3.4;
`twotowers.losses.pointwise.inverse_propensity_loss`), and clicks are predicted by
P(click) = theta_k s(gamma), as published.
"""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from twotowers.losses.pages import inverse_propensity
from twotowers.methods import likelihood
from twotowers.methods.descent import (
    fitted_of,
    position_based_losses,
    relevance_of,
    train,
    weights_of,
)
from twotowers.methods.harvesting import TRUE, Known, propensities_of, weighed
from twotowers.methods.task import Fitted, Task
from twotowers.models.document_rate import DocumentRate
from twotowers.towers.lane import Lanes
from twotowers.towers.two_towers import scores

TRAINS = True


def fit(
    task: Task,
    *,
    weighting: Lanes[Literal["none", "impressions", "queries"]] = "none",
    propensities: Known = TRUE,
) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
        weighting: of cells; see `twotowers.methods.likelihood.fit`.
        propensities: see `twotowers.methods.harvesting.propensities_of`. Of pages, weights are at
            most 10, the published clip at .1.
    """
    if task.splits["train"].sessions is not None:
        return _fit_pages(task, weighting, propensities)
    given = replace(weighed(task, propensities), model=DocumentRate())
    return [
        replace(
            result,
            bias=np.log(propensities_of(task, log, propensities)),
            # The scores predict relevance, not clicks.
            cell_losses=None,
            values={"epochs": result.values["epochs"]},
        )
        for result, (log, _) in zip(
            likelihood.fit(given, weighting=weighting), task.lanes, strict=True
        )
    ]


def _fit_pages(task: Task, weighting, propensities: Known) -> list[Fitted]:
    weights = weights_of(task, propensities)
    model = relevance_of(task)
    result = train(task, model, inverse_propensity, weighting, given=lambda split: weights)
    fitted = []
    for lane, (log, _) in enumerate(task.lanes):
        tower, theta = result.model(lane).relevance, propensities_of(task, log, propensities)

        def page_losses(split, tower=tower, theta=theta, log=log):
            logits = split.on_pages(log, partial(scores, tower))
            losses = position_based_losses(logits, theta, split.sessions[log].clicks)
            return losses, losses

        fitted.append(fitted_of(result, lane, bias=np.log(theta), page_losses=page_losses))
    return fitted
