"""Climbing a likelihood by EM's map, or by cycles of SQUAREM, until it hardly grows."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from twotowers.errors import InputError, check_range

ROUNDING = 1e-10
"""By what share of itself rounding may lower a likelihood."""


class Problem(Protocol):
    """EM on one vector that holds all probabilities."""

    def objective(self, vector: np.ndarray) -> float:
        """What is to grow."""

    def step(self, vector: np.ndarray) -> np.ndarray:
        """An E-step and an M-step."""


def climb(
    problem: Problem,
    start: np.ndarray,
    *,
    iterations: int,
    tolerance: float,
    accelerate: bool,
    name: str,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Repeat EM steps, or cycles of SQUAREM.

    Args:
        problem: whose objective an EM step never lowers.
        start: the vector to start from.
        iterations, tolerance, accelerate: see `twotowers.fitting.em.fit_em`.
        name: of the model, for messages.

    Returns:
        the vector; [iterations + 1] the objective at the start and after each iteration; whether
        the last one gained too little to go on.

    Raises:
        InputError: an argument is out of range, the start is impossible, or the objective fell.
    """
    check_range(iterations, field="iterations", low=1, high=10**9, whole=True)
    check_range(tolerance, field="tolerance", low=0, high=1)
    now, history = start, [problem.objective(start)]
    if not np.isfinite(history[0]):
        raise InputError(
            "the clicks are impossible there", field="start", expected="a finite log-likelihood"
        )
    converged = False
    while not converged and len(history) <= iterations:
        new = leap(problem, now) if accelerate else problem.step(now)
        value, size = problem.objective(new), max(abs(history[-1]), 1)
        if not value >= history[-1] - ROUNDING * size:
            raise InputError(
                f"the log-likelihood fell from {history[-1]:.12g} to {value:.12g}",
                field=name,
                expected="expectations that are the posteriors of its own click probability",
            )
        converged = bool(value - history[-1] <= tolerance * size)
        if value >= history[-1]:
            now = new
        history.append(max(value, history[-1]))
    return now, np.array(history), converged


def leap(problem: Problem, vector: np.ndarray) -> np.ndarray:
    """Two EM steps extrapolated, and a third; or the two, where these reach higher."""
    once = problem.step(vector)
    twice = problem.step(once)
    moved, bent = once - vector, twice - 2 * once + vector
    if not bent.any():
        return twice
    length = max(np.linalg.norm(moved) / np.linalg.norm(bent), 1)
    far = vector + 2 * length * moved + length**2 * bent
    # What would leave (0, 1) goes as far as EM goes: from 0 and 1 it would not return.
    far = problem.step(np.where((far > 0) & (far < 1), far, twice))
    return far if problem.objective(far) >= problem.objective(twice) else twice
