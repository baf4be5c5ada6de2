"""Exact expectation maximisation with one parameter per query-document pair and per position."""

from __future__ import annotations

import numpy as np
from scipy.special import logit, xlog1py, xlogy

from twotowers.errors import InputError
from twotowers.fitting.em import CellCounts, fit_em
from twotowers.fitting.pages import fit_pages
from twotowers.methods.page_fits import (
    SMALLEST,
    check_by_pair,
    fitted_of,
    imagined,
    page_losses,
    statistics_of,
)
from twotowers.methods.task import Fitted, Split, Table, Task, cells
from twotowers.models.independent import as_pages
from twotowers.models.page import PageModel
from twotowers.models.protocol import PER_DOCUMENT, PER_POSITION

LANES = {"prior": 1.0, "prior_mean": 0.5}
"""Both parameters of a Beta prior on every probability, 1 or more; 1 is none, and 2 adds an
imagined click and an imagined impression without one. See `twotowers.methods.page_fits.PRIOR`."""


def fit(task: Task, *, iterations: int = 1000, tolerance: float = 1e-8) -> list[Fitted]:
    """Fit every lane's training log by EM.

    Models of cells are fitted by `twotowers.fitting.em`, with the prior on attraction alone; models
    of pages by `twotowers.fitting.pages`, with the prior on all that they have, as PyClick does.

    Args:
        task: its model must have `expectations`, and its tower be "embedding".
        iterations: at most this many.
        tolerance: EM is over when an iteration gains no more than this share of the likelihood.

    Raises:
        InputError: the model cannot be fitted by EM, or the tower is not "embedding".
    """
    name, model = type(task.model).__name__, task.model
    if not hasattr(model, "expectations") or hasattr(model, "counts"):
        other = "'counting'" if hasattr(as_pages(model), "counts") else "'likelihood'"
        raise InputError(
            f"{name} has no expectations",
            field="method",
            expected=f"a model that says what its parts are given a click, or method {other}",
        )
    check_by_pair(task)
    one = _fitted_pages if isinstance(model, PageModel) else _fitted
    return [one(task, log, iterations, tolerance, **_prior(values)) for log, values in task.lanes]


def _prior(values) -> dict[str, float]:
    return {name: values.get(name, default) for name, default in LANES.items()}


def _fitted_pages(
    task: Task, log: int, iterations: int, tolerance: float, prior: float, prior_mean: float
) -> Fitted:
    smoothing = imagined(prior, prior_mean)
    estimate = fit_pages(
        statistics_of(task, log), prior=smoothing, iterations=iterations, tolerance=tolerance
    )
    return fitted_of(task, log, estimate, smoothing)


def _fitted(
    task: Task, log: int, iterations: int, tolerance: float, prior: float, prior_mean: float
) -> Fitted:
    parts, train = task.model.parts, task.splits["train"]
    smoothing = imagined(prior, prior_mean)
    pair, position, shown, clicked = cells(train, log)
    counts = CellCounts(pair, position, shown, clicked)
    found = fit_em(
        counts,
        task.model,
        # Where the scale is open, the first position is examined for sure, and stays so.
        start={"examination": np.append(1.0, np.full(counts.positions - 1, 0.5))}
        if "examination" in parts
        else None,
        prior={"attraction": (prior, 1 + smoothing[1])},
        iterations=iterations,
        tolerance=tolerance,
    )
    # Pairs that were never shown while training are as attractive as pairs are on average.
    attraction = np.full(task.pairs, np.nan)
    seen = np.unique(pair)
    attraction[seen] = found.parameters["attraction"][seen]
    known = {**found.parameters, "attraction": attraction}
    attraction = np.where(np.isnan(attraction), np.nanmean(attraction), attraction)
    chances = {**found.parameters, "attraction": attraction}
    bias = None
    if "examination" in parts:
        # So are positions behind the last one that was shown; their bias is unknown.
        examination, behind = chances["examination"], task.positions - counts.positions
        log_odds = np.asarray(task.model.position_bias(logit(examination)))
        bias = np.append(log_odds, np.full(behind, np.nan))
        known["examination"] = np.append(examination, np.full(behind, np.nan))
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
        page_losses=None
        if train.sessions is None
        else page_losses(as_pages(task.model), chances, log),
        values={"iterations": found.iterations, "converged": float(found.converged)},
        table=Table(known, {"attraction": smoothing}),
    )
