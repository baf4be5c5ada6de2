"""How sure a fit is of its probabilities, and how often its intervals hold the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.special import expit

from twotowers.errors import InputError
from twotowers.fitting.information import holds_scale
from twotowers.methods.task import Fitted, Task
from twotowers.models.protocol import PER_DOCUMENT


def of_uncertainty(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """What the intervals of a lane's probabilities are worth, by part (`fitting.information`).

    `intervals` is their number, of those that the clicks tell something of. `standard_error` and
    `impressions` are their medians. Where the log's user is of the model's kind, `coverage` is the
    share that holds the truth; the truth is above the share `too_low`, and below the share
    `too_high`. A log of another user has no truth for this model: nothing is measured there.
    """
    user = task.users[log] if task.users else None
    if user is not None and type(user) is not type(task.model):
        return
    if fitted.estimate is None:
        raise InputError(
            "this fit has no probability for every pair",
            field="measure",
            expected="'uncertainty' of method 'em' or 'counting', or of a tower per pair",
        )
    found, parameters, truth = fitted.estimate.intervals, fitted.estimate.parameters, {}
    if user is not None:
        truth = _truth(task, user)
        if holds_scale(task.model):
            # As the fit has it: what examination lacks, attraction has.
            scale = parameters["examination"][0] / truth["examination"][0]
            truth["examination"] = truth["examination"] * scale
            truth["attraction"] = truth["attraction"] / scale
    for part, each in found.items():
        known = ~np.isnan(each.error)
        measured = {"intervals": known.sum()}
        if known.any():
            measured["standard_error"] = np.median(each.error[known])
            measured["impressions"] = np.median(each.impressions[known])
        if known.any() and truth:
            low, high = (each.high < truth[part])[known], (each.low > truth[part])[known]
            measured |= {"too_low": low.mean(), "too_high": high.mean()}
            measured["coverage"] = 1 - measured["too_low"] - measured["too_high"]
        yield from (
            {"metric": name, "part": part, "value": value} for name, value in measured.items()
        )


def _truth(task: Task, user) -> Mapping[str, np.ndarray]:
    """Per part [size] the user's own probabilities."""
    split, found = task.splits["train"], {}
    for part, logits in user.truth(split.relevance, task.positions).items():
        chances = expit(np.asarray(logits, float))
        if task.model.parts[part] == PER_DOCUMENT:
            found[part] = np.full(task.pairs, np.nan)
            found[part][split.inputs[split.where]] = chances[split.where]
        else:
            found[part] = chances.ravel()
    return found
