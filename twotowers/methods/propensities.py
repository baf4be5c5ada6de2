"""Propensities of positions, by which methods weight clicks."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from twotowers.errors import InputError
from twotowers.methods.harvesting import ESTIMATORS, harvested
from twotowers.methods.task import Split, Task
from twotowers.root import ROOT

NONE, TRUE = "none", "true"
"""No weights, and the examination probabilities of the simulated user."""
Clip = Annotated[float, Field(ge=1, le=1e9)]
"""The largest weight of a click."""


def weighed(task: Task, propensities: str) -> Task:
    """The task with clicks divided by propensities of positions (see `propensities_of`)."""
    logs = range(len(task.splits["train"].counts.impressions))
    theta = np.stack([propensities_of(task, log, propensities) for log in logs])
    return replace(task, splits={name: _weighed(each, theta) for name, each in task.splits.items()})


def _weighed(split: Split, theta: np.ndarray) -> Split:
    counts = split.counts
    if counts.listed:
        at = np.stack([own[position] for own, position in zip(theta, counts.position, strict=True)])
    else:
        at = theta[:, None, None, : counts.clicks.shape[-1]]
    clicks = (counts.clicks / at).astype(np.float32)
    return replace(split, counts=replace(counts, clicks=clicks), sessions=None)


def propensities_of(task: Task, log: int, propensities: str) -> np.ndarray:
    """[positions] propensities of one log.

    Args:
        task: its users and data.
        log: number of the log.
        propensities: "true" takes the examination probabilities of the simulated user. An
            estimator of `twotowers.methods.harvesting` takes those of the training log. Else the
            path of a csv file with the columns position (from 1) and propensity, in (0, 1]. A
            relative path starts at the project's folder.
    """
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
