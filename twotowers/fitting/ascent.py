"""Maximises a likelihood by EM steps, or by SQUAREM cycles, until it hardly grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twotowers.errors import InputError
from twotowers.files.blocks import blocks, in_order

if TYPE_CHECKING:
    from twotowers.fitting.steps import EMState

ROUNDING = 1e-10
"""Largest relative fall of a log-likelihood that counts as rounding."""


def run_em(
    problem: EMState,
    start: np.ndarray,
    *,
    iterations: int,
    tolerance: float,
    accelerate: bool,
    name: str,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Repeat EM steps, or SQUAREM cycles if `accelerate` (`twotowers.fitting.em.fit_em`).

    The vector; [iterations + 1] the objective, which no EM step may lower, at the start and after
    each iteration; whether the last iteration gained less than the tolerance.
    """
    now = start
    following, value = problem.measured_step(now)
    history = [value]
    converged = False
    while not converged and len(history) <= iterations:
        if accelerate:
            new, following, value = squarem_step(problem, now, following)
        else:
            new = following
            following, value = problem.measured_step(new)
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


def squarem_step(
    problem: EMState, vector: np.ndarray, once: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """A SQUAREM cycle (Varadhan and Roland, 2008): extrapolate two EM steps, then do a third.

    If the result has a lower objective than the first EM step, it is the second EM step instead.
    `once` is an EM step from `vector`. Returns where the cycle ends, an EM step from there, and the
    objective there.
    """
    twice, safe = problem.measured_step(once)
    parts = blocks(len(vector))

    def of_block(block: slice) -> np.ndarray:
        moved, bent = _differences(vector[block], once[block], twice[block])
        weighed = problem.often[block] * np.stack([moved, bent])
        return (weighed * [moved, bent]).sum(1)

    squares = sum(in_order(of_block, parts))
    if squares[1]:
        length, far = max(np.sqrt(squares[0] / squares[1]), 1), np.empty_like(vector)

        def extrapolate(block: slice) -> None:
            moved, bent = _differences(vector[block], once[block], twice[block])
            away = vector[block] + 2 * length * moved + length**2 * bent
            # EM cannot leave 0 or 1. So a value extrapolated to or past them takes EM's own value.
            far[block] = np.where((away > 0) & (away < 1), away, twice[block])

        list(in_order(extrapolate, parts))
        far = problem.step(far)
        following, reached = problem.measured_step(far)
        if reached >= safe:
            return far, following, reached
    return twice, *problem.measured_step(twice)


def _differences(vector, once, twice) -> tuple[np.ndarray, np.ndarray]:
    """The first EM step, and by how much the second differs from it."""
    moved = once - vector
    return moved, twice - once - moved
