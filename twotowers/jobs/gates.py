"""What tells whether a fit has learnt: docs/verdicts.md, "Gates of fits".

Held-out clicks are reduced to their number at each position, or of each pair, so that trivial
predictors cost next to nothing.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import product

import numpy as np
from scipy.special import xlogy

from twotowers.claims.gates import BESIDE, CONSTANT, DOCUMENTS, FALL, GAIN, RANKS
from twotowers.fitting.prior import NOTHING, Prior
from twotowers.methods.page_fits import pair_of
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.chances import Chance
from twotowers.models.protocol import (
    ONCE,
    PER_DOCUMENT,
    PER_JUMP,
    PER_POSITION,
    CellModel,
    ClickModel,
    of_documents,
)

OF_PAGES, OF_CELLS = "log_likelihood_pyclick", "nll"
"""The metrics that are (minus) the loss, where a fit reports them."""
LAST = 10
"""A fit at its limit is asked how much its loss fell in the last 1 / LAST of its epochs."""


def gates(
    fitted: Fitted, task: Task, log: int, measured: Mapping[str, float]
) -> Iterator[tuple[str, None, float]]:
    """The loss on held-out clicks, the gain over each trivial predictor, and the fall at the limit.

    `measured` is what `twotowers.jobs.measures.measure` gives of the lane.
    """
    train, test = task.splits["train"], task.splits["test"]
    by_page = OF_PAGES in measured
    loss = -measured[OF_PAGES] if by_page else measured.get(OF_CELLS)
    if loss is None and fitted.cell_losses is not None:
        loss = _mean_loss(fitted.cell_losses(test), test, log)
    possible = task.model.possible if by_page else None
    if by_page and type(task.model).possible is not ClickModel.possible:
        loss = (fitted.page_losses(test)[1] * _pages(test, log, possible)).sum()
    if loss is not None:
        yield "held_out_loss", None, loss
    if loss is not None and fitted.learns:
        if fitted.dropped_losses is not None:
            loss, possible = _mean_loss(fitted.dropped_losses(test), test, log), None
        by_pair = train.inputs.ndim == 2
        # A smaller table has no parameter for every pair, and gives no estimate of it.
        own = by_pair and (task.tower == "embedding" or fitted.estimate is not None)
        prior = fitted.estimate.prior if fitted.estimate else NOTHING
        trivial = partial(trivial_loss, train, test, log, possible=possible, prior=prior)
        for name, contained in compared(task.model, by_pair=by_pair, own=own).items():
            # Where its score is dropped, a position tells nothing.
            rate = fitted.dropout if name == RANKS else 0.0
            expected = (1 - rate) * trivial(name) + (rate and rate * trivial(CONSTANT))
            yield (GAIN if contained else BESIDE) + name, None, expected - loss
    fall = fall_at_limit(fitted)
    if fall is not None:
        yield FALL, None, fall


def compared(model: ClickModel, *, by_pair: bool, own: bool | None = None) -> dict[str, bool]:
    """The trivial predictors that a model is compared with, and whether it contains them.

    `by_pair`: pairs recur, because its table is one of pairs; `own`: it has a parameter for every
    pair, as `by_pair` if None.
    """
    alone = isinstance(model, CellModel)
    positions = not alone or bool({PER_POSITION, PER_JUMP} & {*model.parts.values()})
    documents = not alone or bool(of_documents(model.parts))
    if not (positions and documents):
        return {CONSTANT: True} if positions or documents else {}
    predictors = {CONSTANT: True, RANKS: alone or contains(model, {PER_POSITION, PER_JUMP})}
    if by_pair:
        own = by_pair if own is None else own
        predictors[DOCUMENTS] = own and (alone or contains(model, {PER_DOCUMENT}))
    return predictors


def contains(model: ClickModel, kinds: Collection[str]) -> bool:
    """Whether some parameters of a model of pages make its clicks independent, with rates that are
    one of its parts, such as `PER_DOCUMENT`, so that it predicts no worse than these rates.

    All clicks of a page of three are tried, with one part at three rates and each of the others at
    0 or at 1. A model that has no other part is no more than the rates, and is said to contain
    none.

    Example:
        >>> from twotowers.models.dynamic_bayesian import DynamicBayesian
        >>> contains(DynamicBayesian(), {PER_DOCUMENT}), contains(DynamicBayesian(), {PER_POSITION})
        (True, False)
    """
    clicks = np.array(list(product([False, True], repeat=3)))
    rates = np.array([0.5, 0.3, 0.2])
    shape = {PER_DOCUMENT: clicks.shape, PER_POSITION: (3,), PER_JUMP: (3, 3), ONCE: ()}
    rows = {PER_DOCUMENT: rates, PER_POSITION: rates, PER_JUMP: rates[:, None]}
    for part, kind in model.parts.items():
        others = [name for name in model.parts if name != part]
        for corner in product([0.0, 1.0], repeat=len(others)) if kind in kinds and others else ():
            values = dict(zip(others, corner, strict=True)) | {part: rows[kind]}
            chances = {
                name: Chance.of(np.broadcast_to(values[name], shape[own]))
                for name, own in model.parts.items()
            }
            with np.errstate(all="ignore"):  # An impossible page has no chances.
                predicted = model.conditional(chances, clicks).broadcast(clicks.shape).value
            if np.allclose(predicted, rates):
                return True
    return False


def trivial_loss(
    train: Split,
    test: Split,
    log: int,
    name: str,
    *,
    possible: Callable | None = None,
    prior: Prior = NOTHING,
) -> float:
    """The loss of CONSTANT, RANKS or DOCUMENTS on held-out clicks, fitted to the training split.

    `possible` says which documents of a page count (`ClickModel.possible`), if the loss is taken
    page by page; from counts if None. `prior` is what the fit that it is compared with imagines of
    each rate: an impression at the constant rate, if that is nothing.
    """
    shown, clicked = totals(train, log, name, _kept(train, log, possible))
    constant = clicked.sum() / max(shown.sum(), 1)
    successes, trials = prior.of("attraction")
    successes, trials = (successes, trials) if trials else (constant, 1)
    rate = (clicked + successes) / (shown + trials)
    weight = _pages(test, log, possible) if possible else _queries(test, log)
    shown, clicked = totals(test, log, name, weight, len(rate))
    rate = np.pad(rate, (0, len(shown) - len(rate)), constant_values=successes / trials)
    # A click where the rate is 0 costs infinitely much; no click there costs nothing.
    return float(-(xlogy(clicked, rate) + xlogy(shown - clicked, 1 - rate)).sum())


def totals(
    split: Split, log: int, name: str, weight: np.ndarray | None = None, size: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Impressions and clicks of each position, each pair, or all, times the weights of the loss.

    Weights are [sessions, K] or [queries]; 1 if None. `size` is the least number of positions or
    pairs.
    """
    if weight is not None and weight.ndim == 2:
        pages = split.sessions[log]
        shown, clicked = weight, np.where(pages.clicks, weight, 0)
        place = np.arange(weight.shape[1])
        pair = pair_of(split, log) if name == DOCUMENTS else None
    else:
        counts = split.counts.of_log(log)
        weights = 1 if weight is None else counts.spread(weight)
        shown, clicked = counts.impressions * weights, counts.clicks * weights
        place = counts.place
        pair = counts.of_documents(split.inputs) if name == DOCUMENTS else None
    at = {CONSTANT: np.zeros(1, int), RANKS: place, DOCUMENTS: pair}[name]
    # Axes along which the number is constant are summed over first: that costs less than counting.
    at = at.reshape((1,) * (shown.ndim - at.ndim) + at.shape)
    alike = tuple(axis for axis, length in enumerate(at.shape) if length == 1)
    shown, clicked = (each.sum(axis=alike, keepdims=True) for each in (shown, clicked))
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


def _kept(split: Split, log: int, possible: Callable | None) -> np.ndarray | None:
    """[sessions, K] 1 for each document that counts, 0 for others; None if all do."""
    if possible is None:
        return None
    pages = split.sessions[log]
    return possible(pages.clicks & pages.where, pages.where).astype(float)


def _pages(split: Split, log: int, possible: Callable) -> np.ndarray:
    """[sessions, K] the same for each document of a page that counts; 0 for others."""
    kept = _kept(split, log, possible)
    return kept / np.maximum(kept.sum(1, keepdims=True), 1) / max(len(kept), 1)


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
