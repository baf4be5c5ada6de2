"""What tells whether a fit has learnt: docs/verdicts.md, "Gates of fits".

Held-out clicks are reduced to their number at each position, or of each pair, so that trivial
predictors cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from scipy.special import xlogy

from twotowers.methods.page_fits import pair_of
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.protocol import PER_JUMP, PER_POSITION, CellModel, ClickModel, of_documents
from twotowers.results.gates import CONSTANT, DOCUMENTS, FALL, GAIN, RANKS

OF_PAGES, OF_CELLS = "log_likelihood_pyclick", "nll"
"""The metrics that are (minus) the loss, where a fit reports them."""
LAST = 10
"""A fit at its limit is asked how much its loss fell in the last 1 / LAST of its epochs."""


def gates(
    fitted: Fitted, task: Task, log: int, measured: Mapping[str, float]
) -> Iterator[tuple[str, None, float]]:
    """The loss on held-out clicks, the gain over each trivial predictor, and the fall at the limit.

    Args:
        fitted: one lane.
        task: the lane's model and splits.
        log: the lane's log.
        measured: what `twotowers.jobs.measures.measure` found of the lane, by metric.
    """
    train, test = task.splits["train"], task.splits["test"]
    by_page = OF_PAGES in measured
    loss = -measured[OF_PAGES] if by_page else measured.get(OF_CELLS)
    if loss is None and fitted.cell_losses is not None:
        loss = _mean_loss(fitted.cell_losses(test), test, log)
    if loss is not None:
        yield "held_out_loss", None, loss
    if loss is not None and fitted.learns:
        if fitted.dropped_losses is not None:
            loss, by_page = _mean_loss(fitted.dropped_losses(test), test, log), False
        trivial = partial(trivial_loss, train, test, log, by_page=by_page)
        for name in compared(task.model, by_pair=train.inputs.ndim == 2):
            # Where its score is dropped, a position tells nothing.
            rate = fitted.dropout if name == RANKS else 0.0
            expected = (1 - rate) * trivial(name) + (rate and rate * trivial(CONSTANT))
            yield GAIN + name, None, expected - loss
    fall = fall_at_limit(fitted)
    if fall is not None:
        yield FALL, None, fall


def compared(model: ClickModel, *, by_pair: bool) -> list[str]:
    """The trivial predictors that know less than a model.

    Args:
        model: the click model.
        by_pair: whether it has a parameter for every pair.

    Example:
        >>> from twotowers.models.position_based import PositionBased
        >>> from twotowers.models.rank_rate import RankRate
        >>> compared(PositionBased(), by_pair=False), compared(RankRate(), by_pair=True)
        (['constant', 'ranks'], ['constant'])
    """
    if not isinstance(model, CellModel):
        positions = documents = True  # A page's clicks depend on those above.
    else:
        positions = bool({PER_POSITION, PER_JUMP} & {*model.parts.values()})
        documents = bool(of_documents(model.parts))
    if positions and documents:
        return [CONSTANT, RANKS, DOCUMENTS] if by_pair else [CONSTANT, RANKS]
    return [CONSTANT] if positions or documents else []


def trivial_loss(train: Split, test: Split, log: int, name: str, *, by_page: bool = False) -> float:
    """The loss of a trivial predictor on held-out clicks, fitted to the training split.

    Args:
        train, test: the splits.
        log: which of their logs.
        name: CONSTANT, RANKS or DOCUMENTS.
        by_page: whether the loss is taken page by page, or from counts.
    """
    shown, clicked = _totals(train, log, name)
    constant = clicked.sum() / max(shown.sum(), 1)
    rate = (clicked + constant) / (shown + 1)
    weight = _pages(test, log) if by_page else _queries(test, log)
    shown, clicked = _totals(test, log, name, weight, len(rate))
    rate = np.pad(rate, (0, len(shown) - len(rate)), constant_values=constant)
    # A click where the rate is 0 costs infinitely much; no click there costs nothing.
    return float(-(xlogy(clicked, rate) + xlogy(shown - clicked, 1 - rate)).sum())


def _totals(
    split: Split, log: int, name: str, weight: np.ndarray | None = None, size: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Impressions and clicks of each position, each pair, or all, times the weights of the loss.

    Args:
        split, log, name: see `trivial_loss`.
        weight: [sessions, K] or [queries]; 1 if None.
        size: the least number of positions or pairs.
    """
    if weight is not None and weight.ndim == 2:
        pages = split.sessions[log]
        shown, clicked = weight, np.where(pages.clicks, weight, 0)
        place = np.arange(weight.shape[1])
        pair = pair_of(split, log) if name == DOCUMENTS else None
    else:
        counts = split.counts.of_log(log)
        weights = counts.spread(np.ones(len(split.where)) if weight is None else weight)
        shown, clicked = counts.impressions * weights, counts.clicks * weights
        place = counts.place
        pair = counts.of_documents(split.inputs) if name == DOCUMENTS else None
    at = {CONSTANT: np.zeros(1, int), RANKS: place, DOCUMENTS: pair}[name]
    at = np.broadcast_to(at, shown.shape).ravel()
    size = max(size, int(at.max(initial=0)) + 1)
    return np.bincount(at, shown.ravel(), size), np.bincount(at, clicked.ravel(), size)


def _mean_loss(losses: np.ndarray, split: Split, log: int) -> float:
    """The loss of held-out clicks, from the loss of each cell."""
    return float((split.counts.of_log(log).total(losses) * _queries(split, log)).sum())


def _queries(split: Split, log: int) -> np.ndarray:
    """[queries] weight of an impression in the loss: 1 / (documents of a session x sessions)."""
    counts = split.counts.of_log(log)
    visits, shown = counts.sessions.astype(float), counts.shown
    return np.where(shown > 0, visits / np.maximum(shown, 1), 0) / max(visits.sum(), 1)


def _pages(split: Split, log: int) -> np.ndarray:
    """[sessions, K] the same for each document of each page; 0 behind the end of a page."""
    where = split.sessions[log].where
    return where / np.maximum(where.sum(1, keepdims=True), 1) / max(len(where), 1)


def fall_at_limit(fitted: Fitted) -> float | None:
    """By what share the loss still fell during the last epochs, or iterations, of a fit.

    It is 0 if the fit stopped by itself; None if it has no limit, or a single epoch.
    """
    if fitted.history is not None:
        losses, stopped = fitted.history, np.isnan(fitted.history[-1])
    elif fitted.estimate is not None and len(fitted.estimate.history) > 1:
        losses, stopped = -fitted.estimate.history, fitted.estimate.converged
    else:
        return None
    if stopped:
        return 0.0
    if len(losses) < 2:
        return None
    last = max(1, len(losses) // LAST)
    before, after = losses[:-last].min(), losses[-last:].min()
    return float(max(before - after, 0) / max(abs(before), np.finfo(float).tiny))
