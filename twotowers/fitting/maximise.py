"""Newton's method with backtracking, for log-likelihoods that are concave."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from twotowers.errors import InputError

ITERATIONS = 200
TOLERANCE = 1e-16
"""Of the square of what is left to go, in standard errors."""
ROUNDING = 1e-12
"""Largest relative fall of a log-likelihood that counts as rounding."""

CUT = 20
"""A step that is halved so often moves a millionth of its length: it ends at an edge."""


class Step(NamedTuple):
    """Newton's step from a point.

    Attributes:
        move: [parameters] what it adds.
        decrement: score @ move, the square of its length in standard errors.
        reach: by how much it changes a logarithm or a logit at most.
    """

    move: np.ndarray
    decrement: float
    reach: float


class Point(NamedTuple):
    """The log-likelihood of some parameters, Newton's step from there, and what else is known."""

    likelihood: float
    step: Callable[[], Step]
    known: Any = None


def maximise(
    point: Callable[[np.ndarray], Point], start: np.ndarray, *, longest: float = np.inf
) -> tuple[np.ndarray, Point]:
    """The parameters of highest likelihood, and the point there.

    A step is halved until the likelihood does not fall, and shortened to the reach `longest`. The
    square of the distance that a step leaves, in standard errors, is about its own times the square
    of its reach. The search ends by that, since likelihoods of many clicks have no digits left for
    the last steps; or at the edge of what is allowed, such as a chance of 1, where steps are cut to
    nothing.

    Example:
        >>> def poisson(theta):  # of mean exp(theta), with 7 clicks
        ...     mean = np.exp(theta[0])
        ...     move = (7 - mean) / mean
        ...     step = Step(np.array([move]), (7 - mean) * move, abs(move))
        ...     return Point(7 * theta[0] - mean, lambda: step)
        >>> np.exp(maximise(poisson, np.zeros(1))[0]).round(6).item()
        7.0
    """
    at, here = start, point(start)
    for _ in range(ITERATIONS):
        move, decrement, reach = here.step()
        move = move * min(1, longest / max(reach, 1e-300))
        for halving in range(40):
            moved = at + move / 2**halving
            reached = point(moved)
            if reached.likelihood >= here.likelihood - ROUNDING * abs(here.likelihood):
                break
        at, here = moved, reached
        if halving >= CUT or decrement * min(reach, 1) ** 2 < TOLERANCE:
            return at, here
    raise InputError(
        f"no optimum after {ITERATIONS} Newton steps", field="clicks", expected="a finite optimum"
    )
