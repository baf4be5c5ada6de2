"""Exact expectation maximisation with one parameter per query-document pair and per position."""

from __future__ import annotations

import numpy as np
from scipy.special import logit, xlog1py, xlogy

from twotowers.errors import InputError
from twotowers.fitting.em import CellCounts, fit_em
from twotowers.logs.counts import Counts
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.protocol import PER_DOCUMENT, PER_POSITION

LANES = {"prior": 1.0}
"""Both parameters of a Beta prior on every probability, 1 or more; 1 is none, and 2 adds an
imagined click and an imagined impression without one."""

SMALLEST = 1e-6
"""Nearest to 0 and 1 that a fitted click probability counts as: held-out clicks are never
impossible, only unlikely."""


def fit(task: Task, *, iterations: int = 1000, tolerance: float = 1e-8) -> list[Fitted]:
    """Fit every lane's training log by EM (`twotowers.fitting.em`).

    Args:
        task: its model must have `expectations`, and its tower be "embedding".
        iterations: at most this many.
        tolerance: EM is over when an iteration gains no more than this share of the likelihood.

    Raises:
        InputError: the model cannot be fitted by EM, or the tower is not "embedding".
    """
    name = type(task.model).__name__
    if not hasattr(task.model, "expectations"):
        raise InputError(
            f"{name} has no expectations",
            field="method",
            expected="a model that says what its parts are given a click, or method 'likelihood'",
        )
    if task.tower != "embedding":
        raise InputError(
            f"tower {task.tower!r} is not fitted by EM",
            field="model.tower",
            expected="'embedding': a parameter per query-document pair",
        )
    return [_fitted(task, log, iterations, tolerance, **values) for log, values in task.lanes]


def _fitted(task: Task, log: int, iterations: int, tolerance: float, prior: float) -> Fitted:
    parts, train = task.model.parts, task.splits["train"]
    pair, position, shown, clicked = cells(train, log)
    counts = CellCounts(pair, position, shown, clicked)
    found = fit_em(
        counts,
        task.model,
        # Where the scale is open, the first position is examined for sure, and stays so.
        start={"examination": np.append(1.0, np.full(counts.positions - 1, 0.5))}
        if "examination" in parts
        else None,
        prior={"attraction": (prior, prior)},
        iterations=iterations,
        tolerance=tolerance,
    )
    # Pairs that were never shown while training are as attractive as pairs are on average.
    attraction = np.full(train.where.size, np.nan)
    seen = np.unique(pair)
    attraction[seen] = found.parameters["attraction"][seen]
    attraction = np.where(np.isnan(attraction), np.nanmean(attraction), attraction)
    chances = {**found.parameters, "attraction": attraction}
    bias = None
    if "examination" in parts:
        # So are positions behind the last one that was shown; their bias nobody knows.
        examination, behind = chances["examination"], task.positions - counts.positions
        known = np.asarray(task.model.position_bias(logit(examination)))
        bias = np.append(known, np.full(behind, np.nan))
        chances["examination"] = np.append(examination, np.full(behind, examination.mean()))

    def cell_losses(split: Split) -> np.ndarray:
        place = cells(split, log, all_cells=True)
        at = {PER_DOCUMENT: place[0], PER_POSITION: place[1]}
        chosen = {part: chances[part][at[kind]] for part, kind in parts.items()}
        chance = np.clip(task.model.probability(**chosen), SMALLEST, 1 - SMALLEST)
        shown, clicked = place[2:]
        losses = -(xlogy(clicked, chance) + xlog1py(shown - clicked, -chance))
        return losses.reshape(split.counts.of_log(log).impressions.shape)

    return Fitted(
        scores=lambda inputs: attraction[np.asarray(inputs)],
        bias=bias,
        cell_losses=cell_losses,
        values={"iterations": found.iterations, "converged": float(found.converged)},
    )


def cells(split: Split, log: int, *, all_cells: bool = False) -> tuple[np.ndarray, ...]:
    """Pair, position, impressions and clicks of the cells that were shown (or of all)."""
    counts = split.counts.of_log(log)
    queries, documents = split.where.shape
    if isinstance(counts, Counts):
        query, document, position = np.indices(counts.impressions.shape)
    else:
        query = np.broadcast_to(np.arange(queries)[:, None], counts.impressions.shape)
        document, position = counts.document.astype(int), counts.position.astype(int)
    columns = query * documents + document, position, counts.impressions, counts.clicks
    columns = [np.asarray(column, np.int64).ravel() for column in columns]
    keep = slice(None) if all_cells else columns[2] > 0
    return tuple(column[keep] for column in columns)
