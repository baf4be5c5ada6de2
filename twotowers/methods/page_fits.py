"""What methods for click models of pages share: sufficient statistics, priors and results."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import logit

from twotowers.fitting.em import Estimate
from twotowers.fitting.prior import pseudo_counts
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.methods.task import Fitted, Split, Task, cells
from twotowers.models.chances import Chance
from twotowers.models.page import lay_out
from twotowers.models.protocol import (
    CELLS,
    ONCE,
    PER_DOCUMENT,
    PER_POSITION,
    CellModel,
    ClickModel,
    losses,
    of_documents,
)
from twotowers.towers.lane import Lane

SMALLEST = 1e-6
"""Fitted probabilities are clipped to this distance from 0 and 1 before they predict, so held-out
clicks have a finite loss."""

CHUNK = 50_000
"""Pages evaluated at a time, which bounds memory."""


def fit_lanes(
    task: Task,
    estimator: Callable[..., Estimate],
    prior: float | Lane,
    prior_mean: float | Lane,
    **how,
) -> list[Fitted]:
    """Fit every lane's training log, with the prior that the lane says (`pseudo_counts`).

    The task's tower must be "embedding"; the estimator is `fit_counts` or `fit_em`, with arguments
    `how`.
    """
    fitted = []
    priors = zip(task.each(prior), task.each(prior_mean), strict=True)
    for (log, _), own in zip(task.lanes, priors, strict=True):
        estimate = estimator(statistics_of(task, log), prior=pseudo_counts(*own), **how)
        # Statistics are made again where they are asked for, so that lanes do not keep them.
        estimate = replace(estimate, source=partial(statistics_of, task, log))
        fitted.append(fitted_of(task, log, estimate))
    return fitted


def statistics_of(task: Task, log: int) -> Statistics:
    """The training data of a log, reduced to the model's sufficient statistics."""
    split, model = task.splits["train"], task.model
    if split.sessions is None or model.statistics == CELLS:
        pair, position, shown, clicked = cells(split, log)
        return Statistics.of_cells(
            model, pair, position, shown, clicked, pairs=task.pairs, positions=task.positions
        )
    pages = split.sessions[log]
    pair = pair_of(split, log)
    distinct = distinct_pages(pair, pages.clicks, pages.where, pairs=task.pairs)
    return Statistics.of_pages(model, distinct)


def pair_of(split: Split, log: int) -> np.ndarray:
    """[sessions, K] number of the pair at each position of a log's pages."""
    pages = split.sessions[log]
    return np.asarray(split.inputs)[pages.query[:, None], pages.documents]


def fitted_of(task: Task, log: int, estimate: Estimate) -> Fitted:
    """The `Fitted` of an estimate."""
    model, parameters, bias = task.model, estimate.filled(), None
    scored = of_documents(model.parts)

    def scores(inputs):
        chances = {part: chance_of(parameters[part][np.asarray(inputs)]) for part in scored}
        return np.asarray(model.relevance(chances))

    cells_alone = isinstance(model, CellModel)
    if cells_alone and scored and "examination" in model.parts:
        examined = np.asarray(model.position_bias(logit(parameters["examination"])))
        bias = np.where(estimate.trials["examination"] > 0, examined, np.nan)
    sessions = task.splits["train"].sessions is not None
    return Fitted(
        scores=scores if scored else None,
        bias=bias,
        cell_losses=partial(_cell_losses, model, parameters, log) if cells_alone else None,
        page_losses=page_losses(model, parameters, log) if sessions else None,
        values={
            "log_likelihood": estimate.history[-1],
            "iterations": estimate.iterations,
            "converged": float(estimate.converged),
        },
        estimate=estimate,
    )


def _cell_losses(
    model: CellModel, parameters: Mapping[str, np.ndarray], log: int, split: Split
) -> np.ndarray:
    pair, position, shown, clicked = cells(split, log, all_cells=True)
    at = {PER_DOCUMENT: pair, PER_POSITION: position, ONCE: position * 0}
    click = model.marginal(
        {part: chance_of(parameters[part][at[kind]]) for part, kind in model.parts.items()}
    )
    losses = -(clicked * click.log + (shown - clicked) * click.other)
    return losses.reshape(split.counts.of_log(log).impressions.shape)


def page_losses(
    model: ClickModel, parameters: Mapping[str, np.ndarray], log: int
) -> Callable[[Split], tuple[np.ndarray, np.ndarray]]:
    """The function `page_losses` of `Fitted`, for the pages of one log."""

    def of_split(split: Split) -> tuple[np.ndarray, np.ndarray]:
        pages = split.sessions[log]
        pair = pair_of(split, log)
        return losses_of_pages(model, parameters, pair, pages.clicks, pages.where)

    return of_split


def losses_of_pages(
    model: ClickModel,
    parameters: Mapping[str, np.ndarray],
    pair: np.ndarray,
    clicks: np.ndarray,
    where: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """[pages, K] losses of each click, alone and given those above it, by fitted probabilities."""
    parts = []
    for rows, chances in _chances(model, parameters, pair):
        clicked, shown = clicks[rows], where[rows]
        alone = model.marginal(chances).broadcast(clicked.shape)
        given = model.conditional(chances, clicked)
        parts.append([losses(chance, clicked, shown) for chance in (alone, given)])
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def clicks_of_pages(
    model: ClickModel,
    parameters: Mapping[str, np.ndarray],
    pair: np.ndarray,
    where: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """[pages, K] clicks drawn by fitted probabilities."""
    drawn = (
        model.sample(chances, where[rows], rng=rng)["clicks"]
        for rows, chances in _chances(model, parameters, pair)
    )
    return np.concatenate([*drawn])


def _chances(
    model: ClickModel, parameters: Mapping[str, np.ndarray], pair: np.ndarray
) -> Iterator[tuple[slice, dict[str, Chance]]]:
    """Some pages at a time, and the chances of each part of the model there."""
    length = {part: _shape(kind, parameters[part]) for part, kind in model.parts.items()}
    tables = {part: parameters[part].reshape(length[part]) for part in parameters}
    for start in range(0, len(pair), CHUNK):
        rows = slice(start, start + CHUNK)
        values = lay_out(tables, model.parts, pair[rows])
        yield rows, {part: chance_of(each) for part, each in values.items()}


def chance_of(values: np.ndarray) -> Chance:
    """The chance of fitted probabilities, clipped to [SMALLEST, 1 - SMALLEST]."""
    return Chance.of(np.clip(values, SMALLEST, 1 - SMALLEST))


def _shape(kind: str, values: np.ndarray) -> tuple[int, ...]:
    if kind == "jump":
        side = round(len(values) ** 0.5)
        return side, side
    return () if kind == "once" else values.shape
