"""Exact maximum likelihood of a log's counts by Newton's method, for the additive model.

The optimum shows what gradient fits would reach if they did not stop early. The relevance tower
must be "embedding" (a logit per pair) or "linear", because only these make the log-likelihood
concave.
"""

import math
from dataclasses import replace

import numpy as np
from scipy.special import expit

from twotowers.errors import InputError
from twotowers.fitting.newton import AdditiveOptimum, fit_embedding, fit_linear
from twotowers.logs.counts import Counts
from twotowers.methods.task import Fitted, Split, Task, cells

NEEDS = ("additive", "embedding or linear")
MOST_CELLS = 10**8
"""Largest number of pairs x positions. An array of this many float64 takes 0.8 GB."""


def fit(task: Task) -> list[Fitted]:
    """Fit every lane's training log (`twotowers.fitting.newton`).

    The optimum of a pair that was never or always clicked is -inf or inf. Its score is the lowest
    finite score minus 1, or the highest plus 1. A pair that was never shown has score 0.
    """
    return [_fitted(task, log) for log, _ in task.lanes]


def _fitted(task: Task, log: int) -> Fitted:
    train = task.splits["train"]
    # A linear tower reads the features of places, whatever pairs are there.
    places = replace(train, pair=None) if task.tower == "linear" else train
    number, position, *columns = cells(places, log)
    pair, place = np.unique(number, return_inverse=True)
    counts = train.counts.of_log(log)
    size = len(pair), task.positions if counts.listed else counts.impressions.shape[-1]
    if math.prod(size) > MOST_CELLS:
        raise InputError(
            f"{size[0]} pairs x {size[1]} positions are too many for an exact optimum",
            field="method",
            expected=f"at most {MOST_CELLS} cells",
        )
    shown, clicked = tables = np.zeros((2, *size), np.int64)
    for table, column in zip(tables, columns, strict=True):
        np.add.at(table, (place, position), column)
    if task.tower == "linear":
        features = np.asarray(train.inputs).reshape(-1, train.inputs.shape[-1])[pair]
        optimum = fit_linear(features, shown, clicked)

        def scores(inputs):
            return np.asarray(inputs) @ optimum.weights

    else:
        optimum = fit_embedding(shown, clicked)
        logits = np.zeros(task.pairs)
        logits[pair] = finite(optimum)

        def scores(inputs):
            return logits[inputs]

    def cell_losses(split: Split) -> np.ndarray:
        return _cell_losses(scores(split.inputs), optimum.bias, split.counts.of_log(log))

    test = task.splits["test"]
    values = {"nll": _nll(cell_losses(test), test, log)}
    return Fitted(scores, optimum.bias[: task.positions], cell_losses, values)


def finite(optimum: AdditiveOptimum) -> np.ndarray:
    """[documents] relevance, with -inf and inf replaced by 1 beyond the finite values."""
    known = optimum.relevance[np.isfinite(optimum.relevance)]
    return np.clip(optimum.relevance, known.min() - 1, known.max() + 1)


def _cell_losses(scores: np.ndarray, bias: np.ndarray, counts: Counts) -> np.ndarray:
    logits = counts.of_documents(scores) + counts.of_positions(bias)
    chance = np.clip(expit(logits), 1e-300, None), np.clip(expit(-logits), 1e-300, None)
    missed = counts.impressions.astype(float) - counts.clicks
    return -(counts.clicks * np.log(chance[0]) + missed * np.log(chance[1]))


def _nll(losses: np.ndarray, split: Split, log: int) -> float:
    """Mean over a session's documents, then over sessions."""
    counts = split.counts.of_log(log)
    sessions = counts.sessions
    per_document = np.divide(
        counts.total(losses) * sessions, counts.shown, where=sessions > 0, out=np.zeros(len(losses))
    )
    return per_document.sum() / sessions.sum()
