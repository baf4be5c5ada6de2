"""Exact EM, with parameters per query-document pair, position and so on instead of towers."""

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
"""The prior on probabilities, 1 or more: see `twotowers.methods.page_fits.PRIOR`. 1 is no prior. 2
adds one success and one failure if `prior_mean` is 1/2."""


def fit(
    task: Task, *, iterations: int = 1000, tolerance: float = 1e-8, accelerate: bool = True
) -> list[Fitted]:
    """Fit every lane's training log by EM.

    `twotowers.fitting.em` fits models of cells, with the prior on attraction only.
    `twotowers.fitting.pages` fits models of pages, with the prior on all probabilities, as PyClick
    does.

    Args:
        task: its model must have `expectations`, and its tower must be "embedding".
        iterations: largest number of iterations.
        tolerance: EM stops when the relative gain of an iteration in log-likelihood is no larger.
        accelerate: whether an iteration is a cycle of SQUAREM, or else a plain step of EM.

    Raises:
        InputError: the model has no `expectations`, the tower is not "embedding", or the model
            needs sessions and the log is recorded as cells.
    """
    name, model = type(task.model).__name__, task.model
    if not hasattr(model, "expectations") or hasattr(model, "counts"):
        other = "'counting'" if hasattr(as_pages(model), "counts") else "'likelihood'"
        raise InputError(
            f"{name} has no expectations",
            field="method",
            expected=f"a model with expectations, or method {other}",
        )
    check_by_pair(task)
    one = _fitted_pages if isinstance(model, PageModel) else _fitted
    how = {"iterations": iterations, "tolerance": tolerance, "accelerate": accelerate}
    return [one(task, log, how, **_prior(values)) for log, values in task.lanes]


def _prior(values) -> dict[str, float]:
    return {name: values.get(name, default) for name, default in LANES.items()}


def _fitted_pages(task: Task, log: int, how: dict, prior: float, prior_mean: float) -> Fitted:
    smoothing = imagined(prior, prior_mean)
    estimate = fit_pages(statistics_of(task, log), prior=smoothing, **how)
    return fitted_of(task, log, estimate, smoothing)


def _fitted(task: Task, log: int, how: dict, prior: float, prior_mean: float) -> Fitted:
    parts, train = task.model.parts, task.splits["train"]
    smoothing = imagined(prior, prior_mean)
    pair, position, shown, clicked = cells(train, log)
    counts = CellCounts(pair, position, shown, clicked)
    found = fit_em(
        counts,
        task.model,
        # The data do not identify the scale. Examination of position 1 starts at 1, and EM keeps
        # it, which fixes the scale.
        start={"examination": np.append(1.0, np.full(counts.positions - 1, 0.5))}
        if "examination" in parts
        else None,
        prior={"attraction": (prior, 1 + smoothing[1])},
        **how,
    )
    # A pair without impressions in training gets the mean attraction of the others.
    attraction = np.full(task.pairs, np.nan)
    seen = np.unique(pair)
    attraction[seen] = found.parameters["attraction"][seen]
    known = {**found.parameters, "attraction": attraction}
    attraction = np.where(np.isnan(attraction), np.nanmean(attraction), attraction)
    chances = {**found.parameters, "attraction": attraction}
    bias = None
    if "examination" in parts:
        # A position below all impressions gets the mean examination. Its bias is NaN (unknown).
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
