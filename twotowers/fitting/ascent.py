"""Maximises a likelihood by EM steps, or by SQUAREM cycles, until it hardly grows."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from twotowers.errors import InputError, check_range
from twotowers.models.chances import NEVER

ROUNDING = 1e-10
"""Largest relative fall of a log-likelihood that counts as rounding."""


class Problem(Protocol):
    """An EM problem whose parameters are one vector of probabilities.

    Attributes:
        often: how many probabilities each entry of the vector stands for, or 1.
    """

    often: np.ndarray | float

    def objective(self, vector: np.ndarray) -> float:
        """The objective to maximise, such as the log-likelihood."""

    def step(self, vector: np.ndarray) -> np.ndarray:
        """An E-step and an M-step: the new vector."""


def climb(
    problem: Problem,
    start: np.ndarray,
    *,
    iterations: int,
    tolerance: float,
    accelerate: bool,
    name: str,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Repeat EM steps, or SQUAREM cycles if `accelerate`.

    Args:
        problem: an EM step must not lower its objective.
        start: the first vector.
        iterations, tolerance, accelerate: see `twotowers.fitting.em.fit_em`.
        name: name of the model in messages.

    Returns:
        the vector; [iterations + 1] the objective at the start and after each iteration; whether
        the last iteration gained less than the tolerance.

    Raises:
        InputError: an argument is out of range, the clicks are impossible at the start, or the
            objective fell.
    """
    check_range(iterations, field="iterations", low=1, high=10**9, whole=True)
    check_range(tolerance, field="tolerance", low=0, high=1)
    now, history = start, [problem.objective(start)]
    if not history[0] > NEVER / 2:
        raise InputError(
            "the clicks are impossible at it", field="start", expected="a finite log-likelihood"
        )
    converged = False
    while not converged and len(history) <= iterations:
        if accelerate:
            new, value = leap(problem, now)
        else:
            new = problem.step(now)
            value = problem.objective(new)
        size = max(abs(history[-1]), 1)
        if not value >= history[-1] - ROUNDING * size:
            raise InputError(
                f"the log-likelihood fell from {history[-1]:.12g} to {value:.12g}",
                field=name,
                expected="expectations that are the posteriors under the click probability",
            )
        converged = bool(value - history[-1] <= tolerance * size)
        if value >= history[-1]:
            now = new
        history.append(max(value, history[-1]))
    return now, np.array(history), converged


def leap(problem: Problem, vector: np.ndarray) -> tuple[np.ndarray, float]:
    """A SQUAREM cycle (Varadhan and Roland, 2008): extrapolate two EM steps, then do a third.

    If this gives a lower objective than the two EM steps, their result is returned. Its objective
    is returned too.
    """
    once = problem.step(vector)
    twice = problem.step(once)
    moved, bent = once - vector, twice - 2 * once + vector
    if not bent.any():
        return twice, problem.objective(twice)
    squares = [each @ (problem.often * each) for each in (moved, bent)]
    length = max(np.sqrt(squares[0] / squares[1]), 1)
    far = vector + 2 * length * moved + length**2 * bent
    # EM cannot leave 0 or 1. So a value extrapolated to or past them takes EM's own value.
    far = problem.step(np.where((far > 0) & (far < 1), far, twice))
    reached, safe = problem.objective(far), problem.objective(twice)
    return (far, reached) if reached >= safe else (twice, safe)
