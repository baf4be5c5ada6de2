"""What the methods for click models of pages share: their data, and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.pages import PagesEstimate, Statistics, distinct_pages
from twotowers.methods.task import Fitted, Split, Table, Task, cells
from twotowers.models.chances import Chance
from twotowers.models.independent import as_pages
from twotowers.models.page import PageModel, lay_out, losses
from twotowers.models.protocol import PER_DOCUMENT

SMALLEST = 1e-6
"""Nearest to 0 and 1 that a fitted probability counts as: held-out clicks are never impossible,
only unlikely."""

CHUNK = 50_000
"""Pages whose chances are in memory at a time."""

PRIOR = {"prior": 1.0, "prior_mean": 0.5}
"""What every probability is smoothed by, as lanes: the first parameter of a Beta prior, 1 or more,
and the mean of what it imagines. It imagines prior - 1 successes among (prior - 1) / prior_mean
trials: 1 is no prior; PyClick's has `prior: 2` and `prior_mean` 1/2, and 1/9 in CLAX's baseline."""


def imagined(prior: float, prior_mean: float) -> tuple[float, float]:
    """Successes and failures that a prior imagines.

    Raises:
        InputError: a value is out of range.
    """
    if not (prior >= 1 and 0 < prior_mean < 1):
        raise InputError(
            f"prior {prior}, prior_mean {prior_mean}", field="prior",
            expected="1 or more, and a mean between 0 and 1",
        )  # fmt: skip
    return prior - 1, (prior - 1) * (1 - prior_mean) / prior_mean


def check_by_pair(task: Task) -> None:
    """Raise InputError unless documents are to have a parameter each."""
    if task.tower != "embedding":
        raise InputError(
            f"tower {task.tower!r} is fitted by gradient descent only", field="model.tower",
            expected="'embedding': a parameter per query-document pair",
        )  # fmt: skip


def statistics_of(task: Task, log: int) -> Statistics:
    """The training log of a lane, reduced to what the model needs."""
    split, model = task.splits["train"], as_pages(task.model)
    if split.sessions is not None:
        pages = split.sessions[log]
        pair = pair_of(split, log)
        distinct = distinct_pages(pair, pages.clicks, pages.where, pairs=task.pairs)
        return Statistics.of_pages(model, distinct)
    pair, position, shown, clicked = cells(split, log)
    return Statistics.of_cells(
        model, pair, position, shown, clicked, pairs=task.pairs, positions=task.positions
    )


def pair_of(split: Split, log: int) -> np.ndarray:
    """[sessions, K] number of the pair at each position of a log's pages."""
    pages = split.sessions[log]
    return np.asarray(split.inputs)[pages.query[:, None], pages.documents]


def fitted_of(task: Task, log: int, estimate: PagesEstimate, prior: tuple[float, float]) -> Fitted:
    """An estimate as methods give it back.

    Args:
        prior: imagined successes and failures of every probability.
    """
    model, unknown = as_pages(task.model), unknown_of(estimate, prior)
    parameters = {
        part: np.where(np.isnan(values), unknown[part], values)
        for part, values in estimate.parameters.items()
    }
    scored = [part for part, kind in model.parts.items() if kind == PER_DOCUMENT]

    def scores(inputs):
        chances = {part: chance_of(parameters[part][np.asarray(inputs)]) for part in scored}
        return np.asarray(model.relevance(chances))

    return Fitted(
        scores=scores if scored else None,
        page_losses=page_losses(model, parameters, log),
        values={
            "log_likelihood": estimate.history[-1],
            "iterations": len(estimate.history) - 1,
            "converged": float(estimate.converged),
        },
        table=Table(estimate.parameters, dict.fromkeys(estimate.parameters, prior)),
    )


def unknown_of(estimate: PagesEstimate, prior: tuple[float, float]) -> dict[str, float]:
    """What stands for parameters that nothing is known of: the prior's mean, or that of others."""
    if sum(prior) > 0:
        return dict.fromkeys(estimate.parameters, prior[0] / sum(prior))
    rates = {}
    for part, values in estimate.parameters.items():
        trials, known = estimate.trials[part], ~np.isnan(values)
        weighted = trials[known].sum() > 0
        rates[part] = np.average(values[known], weights=trials[known]) if weighted else 0.5
    return rates


def page_losses(
    model: PageModel, parameters: Mapping[str, np.ndarray], log: int
) -> Callable[[Split], tuple[np.ndarray, np.ndarray]]:
    """From a split to the losses of each click of a lane's pages, alone and given those above."""
    length = {part: _shape(kind, parameters[part]) for part, kind in model.parts.items()}
    tables = {part: parameters[part].reshape(length[part]) for part in parameters}

    def of_split(split: Split) -> tuple[np.ndarray, np.ndarray]:
        pages, pair = split.sessions[log], pair_of(split, log)
        found = []
        for start in range(0, len(pair), CHUNK):
            rows = slice(start, start + CHUNK)
            clicks, where = pages.clicks[rows], pages.where[rows]
            values = lay_out(tables, model.parts, pair[rows])
            chances = {part: chance_of(each) for part, each in values.items()}
            alone = model.marginal(chances).broadcast(clicks.shape)
            given = model.conditional(chances, clicks)
            found.append([losses(chance, clicks, where) for chance in (alone, given)])
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))

    return of_split


def chance_of(values: np.ndarray) -> Chance:
    """Fitted probabilities, none of them 0 or 1."""
    return Chance.of(np.clip(values, SMALLEST, 1 - SMALLEST))


def _shape(kind: str, values: np.ndarray) -> tuple[int, ...]:
    if kind == "jump":
        side = round(len(values) ** 0.5)
        return side, side
    return () if kind == "once" else values.shape
