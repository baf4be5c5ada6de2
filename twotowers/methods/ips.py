"""Pointwise inverse propensity scoring: each click counts 1 / the propensity of its position.

The loss of an impression at position k with click c is (Bekker et al. 2019; Saito et al. 2020,
Eq. 8)

    -[(c / theta_k) ln s(gamma) + (1 - c / theta_k) ln(1 - s(gamma))]

with s the sigmoid. For a position-based user, its expectation over clicks equals the loss on
relevance itself. The propensities theta_k are not clipped, so 1 - c / theta_k may be negative.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from twotowers.errors import InputError
from twotowers.methods import likelihood
from twotowers.methods.harvesting import ESTIMATORS, harvested
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.document_rate import DocumentRate
from twotowers.root import ROOT
from twotowers.towers.lane import Lane

TRAINS = True
TRUE = "true"


def fit(
    task: Task,
    *,
    weighting: Literal["none", "impressions", "queries"] | Lane = "none",
    propensities: str = TRUE,
) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
        weighting: see `twotowers.methods.likelihood.fit`.
        propensities: "true" takes the examination probabilities of the simulated user. An
            estimator of `twotowers.methods.harvesting` takes those of the training log. Else the
            path of a csv file with the columns position (from 1) and propensity, in (0, 1]. A
            relative path starts at the project's folder.
    """
    logs = len(task.splits["train"].counts.impressions)
    theta = np.stack([propensities_of(task, log, propensities) for log in range(logs)])
    given = replace(
        task,
        model=DocumentRate(),
        splits={name: weighed(split, theta) for name, split in task.splits.items()},
    )
    fits = likelihood.fit(given, weighting=weighting)
    return [
        replace(
            found,
            bias=np.log(theta[log]),
            # The scores predict relevance, not clicks.
            cell_losses=None,
            values={"epochs": found.values["epochs"]},
        )
        for found, (log, _) in zip(fits, task.lanes, strict=True)
    ]


def weighed(split: Split, theta: np.ndarray) -> Split:
    """The split with each click divided by the propensity of its position.

    Args:
        split: with the counts of any number of logs.
        theta: [logs, positions] propensities.
    """
    counts = split.counts
    if counts.listed:
        at = np.stack([own[position] for own, position in zip(theta, counts.position, strict=True)])
    else:
        at = theta[:, None, None, : counts.clicks.shape[-1]]
    clicks = (counts.clicks / at).astype(np.float32)
    return replace(split, counts=replace(counts, clicks=clicks), sessions=None)


def propensities_of(task: Task, log: int, propensities: str) -> np.ndarray:
    """[positions] propensities of one log. Arguments and errors as in `fit`."""
    if propensities == TRUE:
        user = task.users[log] if task.users else None
        if not hasattr(user, "examined"):
            raise InputError(
                "the examination probabilities of this log are unknown",
                field="propensities",
                expected="a simulated user that has them, such as 'position_based', or a csv file",
            )
        return user.examined(task.positions)
    if propensities in ESTIMATORS:
        return harvested(task, log, propensities)
    path = ROOT / propensities
    if not path.is_file():
        raise InputError("there is no such file", path=path, field="propensities")
    table = pd.read_csv(path)
    for name in ("position", "propensity"):
        if name not in table:
            raise InputError("no such column", path=path, field=name)
    theta = table.set_index("position")["propensity"].reindex(np.arange(1, task.positions + 1))
    bad = theta.index[~((theta > 0) & (theta <= 1))]
    if len(bad):
        raise InputError(
            f"position {bad[0]} has the propensity {theta[bad[0]]}",
            path=path,
            field="propensity",
            expected=f"a number in (0, 1] for each of the positions 1 to {task.positions}",
        )
    return theta.to_numpy(float)
