"""What methods for click models of pages share: sufficient statistics, priors and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.pages import PagesEstimate
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.methods.task import Fitted, Split, Table, Task, cells
from twotowers.models.chances import Chance
from twotowers.models.independent import as_pages
from twotowers.models.page import PageModel, lay_out, losses
from twotowers.models.protocol import of_documents

SMALLEST = 1e-6
"""Fitted probabilities are clipped to this distance from 0 and 1 before they predict, so held-out
clicks have a finite loss."""

CHUNK = 50_000
"""Pages evaluated at a time, which bounds memory."""

PRIOR = {"prior": 1.0, "prior_mean": 0.5}
"""The Beta prior of every probability, as lanes. It adds `prior` - 1 successes among
(`prior` - 1) / `prior_mean` trials. So `prior` is 1 or more, and 1 is no prior. PyClick has
`prior: 2` with `prior_mean` 1/2. CLAX's baseline has `prior_mean` 1/9."""


def imagined(prior: float, prior_mean: float) -> tuple[float, float]:
    """The successes and failures that a prior adds; see `PRIOR`.

    Raises:
        InputError: `prior` is below 1, or `prior_mean` is not in (0, 1).

    Example:
        >>> imagined(2, 0.5)
        (1, 1.0)
    """
    if not (prior >= 1 and 0 < prior_mean < 1):
        raise InputError(
            f"prior {prior}, prior_mean {prior_mean}", field="prior",
            expected="1 or more, and a mean between 0 and 1",
        )  # fmt: skip
    return prior - 1, (prior - 1) * (1 - prior_mean) / prior_mean


def check_by_pair(task: Task) -> None:
    """Raise InputError unless the tower is "embedding", a parameter per query-document pair."""
    if task.tower != "embedding":
        raise InputError(
            f"tower {task.tower!r} is fitted by gradient descent only", field="model.tower",
            expected="'embedding': a parameter per query-document pair",
        )  # fmt: skip


def statistics_of(task: Task, log: int) -> Statistics:
    """The training data of a log, reduced to the model's sufficient statistics."""
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
    """The `Fitted` of an estimate.

    Args:
        task: its model was fitted.
        log: index of the log.
        estimate: the fitted probabilities.
        prior: (successes, failures), added to those of every probability.
    """
    model, unknown = as_pages(task.model), unknown_of(estimate, prior)
    parameters = {
        part: np.where(np.isnan(values), unknown[part], values)
        for part, values in estimate.parameters.items()
    }
    scored = of_documents(model.parts)

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
    """Part -> the value of probabilities without data.

    It is the mean of the prior, or, without a prior, the mean of the part's other probabilities,
    weighted by trials.
    """
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
    """The function `page_losses` of `Fitted`, for the pages of one log."""
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
    """The chance of fitted probabilities, clipped to [SMALLEST, 1 - SMALLEST]."""
    return Chance.of(np.clip(values, SMALLEST, 1 - SMALLEST))


def _shape(kind: str, values: np.ndarray) -> tuple[int, ...]:
    if kind == "jump":
        side = round(len(values) ** 0.5)
        return side, side
    return () if kind == "once" else values.shape
