"""Pointwise inverse propensity scoring: clicks, each by its position's propensity, are relevance.

The loss of an impression at position k is -[(c / theta_k) ln s(gamma) + (1 - c / theta_k)
ln(1 - s(gamma))] (Bekker et al. 2019; Saito et al. 2020, Eq. 8). Its expectation over the clicks of
a position-based user is that of relevance itself. Propensities theta are not clipped, so the weight
of "not relevant" may be negative.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from twotowers import ROOT
from twotowers.errors import InputError
from twotowers.logs.counts import Rows
from twotowers.methods import likelihood
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.document_rate import DocumentRate

LANES = {"weighting": "none"}
"""`weighting`: unweighted ("none"); every impression alike ("impressions"); or every query that was
asked alike, by the mean click rates of its documents ("queries"). See
`twotowers.methods.likelihood`."""
CHOICES = {"weighting": ("none", "impressions", "queries")}

TRAINS = True
TRUE = "true"


def fit(task: Task, *, propensities: str = TRUE) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model is not asked what a click is: IPS says so itself.
        propensities: "true", the examination probabilities of the simulated user; or a csv file
            with columns position (from 1) and propensity, in (0, 1], as estimated elsewhere. A
            path that is not absolute is below the project's folder.

    Raises:
        InputError: the user has no examination probabilities, or the file does not hold one per
            position.
    """
    logs = len(task.splits["train"].counts.impressions)
    theta = np.stack([propensities_of(task, log, propensities) for log in range(logs)])
    given = replace(
        task,
        model=DocumentRate(),
        splits={name: weighed(split, theta) for name, split in task.splits.items()},
        lanes=[(log, {**likelihood.LANES, **values}) for log, values in task.lanes],
    )
    return [
        replace(
            found,
            bias=np.log(theta[log]),
            # A score is no click probability.
            cell_losses=None,
            values={"epochs": found.values["epochs"]},
        )
        for found, (log, _) in zip(likelihood.fit(given), task.lanes, strict=True)
    ]


def weighed(split: Split, theta: np.ndarray) -> Split:
    """The split with each click by the inverse of its position's propensity.

    Args:
        split: its counts are of any number of logs.
        theta: [logs, positions] propensities.
    """
    counts = split.counts
    if isinstance(counts, Rows):
        at = np.stack([own[position] for own, position in zip(theta, counts.position, strict=True)])
    else:
        at = theta[:, None, None, : counts.clicks.shape[-1]]
    clicks = (counts.clicks / at).astype(np.float32)
    return replace(split, counts=replace(counts, clicks=clicks), sessions=None)


def propensities_of(task: Task, log: int, propensities: str) -> np.ndarray:
    """[positions] propensities of one log; arguments and errors as of `fit`."""
    if propensities == TRUE:
        user = task.users[log] if task.users else None
        if not hasattr(user, "examined"):
            raise InputError(
                "nobody knows the examination probabilities of this log",
                field="propensities",
                expected="a simulated user that has them, as 'position_based', or a csv file",
            )
        return user.examined(task.positions)
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
            f"{theta[bad[0]]} is the propensity of position {bad[0]}",
            path=path,
            field="propensity",
            expected=f"a number in (0, 1] for each of the positions 1 to {task.positions}",
        )
    return theta.to_numpy(float)
