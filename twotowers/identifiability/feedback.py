"""Do positions follow clicks? A test of what the conditional estimate assumes.

The conditional estimate (`twotowers.fitting.conditional`) is right if what is shown where does not
depend on the pair's own clicks. A ranker that learns from clicks breaks that.

Without feedback, a click is independent of all other positions of its pair, given its own position,
whatever the ranker does by itself: it may drift, or rank at random. So within pair and position the
covariances of a click have mean 0 with

* the positions by which the pair moves up at its next display, and
* its mean position before the click, less that after it, which sees rankers that are retrained once
  a day, or that add up clicks over a long time.

The sums of both over queries are tested together (`twotowers.identifiability.testing.together`).
The test does not see whether a pair comes back because it was clicked.

    >>> rng = np.random.default_rng(1)
    >>> pair, factor = np.repeat(np.arange(400), 20), rng.integers(2, size=8000)
    >>> clicks = rng.random(8000) < .4 / (1 + factor)
    >>> alike = Displays.of_rows(pair, factor, clicks, query=pair // 4)
    >>> moves_after_clicks(alike).p > .05
    True
    >>> for t in range(1, 8000):  # a click puts the document on the first place
    ...     clicks[t] = rng.random() < .4 / (1 + factor[t])
    ...     if t % 20 and clicks[t - 1]:
    ...         factor[t] = 0
    >>> moves_after_clicks(Displays.of_rows(pair, factor, clicks, query=pair // 4)).p < .001
    True
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from twotowers.fitting.sequential import Displays, portions_of
from twotowers.identifiability.testing import Finding, single, together

NAME, UNIT = "moves after clicks", "positions"
LEVEL = 0.05


def moves_after_clicks(displays: Displays | Iterable[Displays]) -> Finding:
    """The F-test that clicks move no pair, from its displays in the order of time.

    The displays may come in portions, each of other queries.

    Positions are the column `position` of the factors' names. The value is how many positions a
    click moves its pair up, the mean after it compared with the mean before it; below 0, down.
    """
    found = [_sums(each) for each in portions_of(displays)]
    products, squares = zip(*found, strict=True)
    steps = np.concatenate(products) / np.maximum(sum(squares), 1e-300)
    values = steps.sum(0)
    test = together(NAME, steps, values)
    size = single(NAME, steps[:, 1], values[1], UNIT)
    return replace(
        test, value=size.value, error=size.error, low=size.low, high=size.high, unit=UNIT
    )


def _sums(displays: Displays) -> tuple[np.ndarray, np.ndarray]:
    """[queries, 2] products of clicks with both moves, and [2] squares of the clicks."""
    position = displays.names["position"].to_numpy(float)[displays.factor]
    pair = displays.pair
    start = np.flatnonzero(np.diff(pair, prepend=-1))
    number = np.diff(np.append(start, len(pair)))
    before = np.arange(len(pair)) - np.repeat(start, number)
    after = np.repeat(number, number) - 1 - before
    total = np.concatenate([[0.0], np.cumsum(position)])
    ends = np.repeat(start + number, number)
    with np.errstate(divide="ignore", invalid="ignore"):
        later = (total[ends] - total[1:]) / after
        earlier = (total[:-1] - np.repeat(total[start], number)) / before
    next_up = np.where(after > 0, position - np.append(position[1:], 0), np.nan)
    products, squares = zip(
        *(_products(displays, up) for up in (next_up, earlier - later)), strict=True
    )
    return np.stack(products, -1), np.array(squares)


def _products(displays: Displays, up: np.ndarray) -> tuple[np.ndarray, float]:
    """[queries] products of `up` with clicks within pair and factor; and the clicks' squares.

    Args:
        up: [rows], NaN where there is no such display.
    """
    rows = np.flatnonzero(np.isfinite(up))
    group = displays.pair[rows].astype(np.int64) * displays.factors + displays.factor[rows]
    _, group, number = np.unique(group, return_inverse=True, return_counts=True)
    click, up = displays.click[rows], up[rows]
    click = click - (np.bincount(group, click) / number)[group]
    queries = int(displays.query.max(initial=-1)) + 1
    return np.bincount(displays.query[rows], click * up, queries), float((click**2).sum())


def follow_clicks(test: Finding) -> bool:
    """Whether positions follow clicks by the test, so that the sequential curve is needed."""
    return test.p < LEVEL
