"""Alternation on click rates: relevance per document and examination per bias factor, in turn.

It fits the position-based model. `twotowers.fitting.alternating` has the rules. Methods of a paper
with rules of their own use `by_rule`, or `rates_of` and `fitted_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from twotowers.fitting.alternating import LeastSquares, RateEstimate, Rule, alternate, click_mse
from twotowers.fitting.tiles import ClickRates
from twotowers.methods.page_fits import SMALLEST
from twotowers.methods.task import Fitted, Split, Task, cells
from twotowers.randomness import stream

FACTORS = True
NEEDS = ("embedding", "position_based")


def fit(
    task: Task,
    *,
    start: Literal["random", "ones"] = "random",
    steps: Annotated[int, Field(ge=1)] = 1000,
) -> list[Fitted]:
    """Fit every lane's training log by least squares.

    Args:
        task: its model must be position-based, and its tower "embedding".
        start: of examination: drawn from U(0, 1), or 1 for all bias factors.
        steps: largest number of steps.
    """
    return by_rule(task, LeastSquares(), start=start, steps=steps)


def by_rule(task: Task, rule: Rule, *, start: str = "random", steps: int) -> list[Fitted]:
    """The same by another rule."""
    rates = rates_of(task)
    starts = starts_of(task, rates)
    starts = np.ones_like(starts) if start == "ones" else starts
    estimate = alternate(rates, starts, rule, steps=steps)
    return fitted_of(task, rates, estimate)


def starts_of(
    task: Task, rates: ClickRates, *, starts: int = 1, draw: str = "random"
) -> np.ndarray:
    """[lanes x starts, factors] where fits start: U(0, 1), or another law of the generator.

    A lane's starts do not depend on which other lanes are fitted.
    """
    named = [stream("start", task.seed, *task.logs[log].values()) for log, _ in task.lanes]
    return np.concatenate([getattr(rng, draw)((starts, rates.factors)) for rng in named])


def rates_of(task: Task) -> ClickRates:
    """Click rates of the cells of the training log: a row per cell, weighted by impressions.

    The mean weight of the cells that a lane shows is 1.
    """
    train = task.splits["train"]
    rows = [cells(train, log, all_cells=True) for log, _ in task.lanes]
    pair, position = rows[0][:2]
    factor = [place for _, place, _, _ in rows]
    if train.factors is not None:
        factor = [_factors(train.factors[log], position) for log, _ in task.lanes]
    shown, clicked = (np.stack([row[part] for row in rows]).astype(float) for part in (2, 3))
    mean = shown.sum(1, keepdims=True) / (shown > 0).sum(1, keepdims=True)
    return ClickRates(
        feature=pair,
        factor=np.stack(factor),
        rate=np.divide(clicked, shown, out=np.zeros_like(shown), where=shown > 0),
        weight=shown / mean,
        features=task.pairs,
        factors=int(np.max(factor)) + 1,
    )


def _factors(factors: np.ndarray, position: np.ndarray) -> np.ndarray:
    """[cells] the bias factor of each cell. The cells of a query follow each other."""
    query = np.repeat(np.arange(len(factors)), position.size // len(factors))
    return factors[query, position]


def fitted_of(
    task: Task,
    rates: ClickRates,
    estimate: RateEstimate,
    values: Mapping[str, np.ndarray] | None = None,
) -> list[Fitted]:
    """What a fit found. Its values have the mean over rows of (r o - c)^2, and how many bias
    factors a lane shows.

    Args:
        task, rates: see `rates_of`.
        estimate: of all lanes.
        values: further results, [lanes] by name.
    """
    shown = rates.weight > 0
    values = {
        "click_mse": click_mse(rates, estimate),
        "bias_factors": [
            len(np.unique(own[seen])) for own, seen in zip(rates.factor, shown, strict=True)
        ],
        **(values or {}),
    }
    train, fitted = task.splits["train"], []
    for lane, (log, _) in enumerate(task.lanes):
        relevance, examined = estimate.relevance[lane], estimate.examination[lane]
        at = np.arange(task.positions) if train.factors is None else _of_positions(train, log)
        fitted.append(
            Fitted(
                scores=lambda inputs, relevance=relevance: relevance[np.asarray(inputs)],
                bias=None if at is None else np.log(np.maximum(examined[at], SMALLEST)),
                values={name: each[lane] for name, each in values.items()},
                examined=None if train.factors is None else examined[train.factors[log]],
            )
        )
    return fitted


def _of_positions(train: Split, log: int) -> np.ndarray | None:
    """[positions] the bias factor of each; None if lists differ in the factor of a position."""
    shown = train.counts.of_log(log).impressions > 0
    factors = train.factors[log]
    first = factors[shown.argmax(0), np.arange(factors.shape[1])]
    return first if ((factors == first) | ~shown).all() else None
