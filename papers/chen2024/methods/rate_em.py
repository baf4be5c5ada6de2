"""Regression EM as Chen et al. (2024) have it in their code, with a parameter per document.

Its E-step takes c / o for the former relevance, and so collapses: the new r is the mean of c / o.
Examination o is updated from the r of the same step, before it is clipped.
"""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from twotowers.methods.alternation import Rule, alternate, fitted_of, rates_of, starts_of
from twotowers.methods.task import Fitted, Task

EPSILON = 1e-8
"""What the published code adds to denominators."""

FACTORS = True


class CollapsedEM(Rule):
    """r = mean(c / o) per feature vector; o as in EM, from that r before it is clipped."""

    def relevance(self, cells, o):
        """The mean of c / (o + 1e-8), not clipped."""
        return (cells.clicks / (o + EPSILON)).sum(1) / (cells.weight.sum(1) + EPSILON)

    def change(self, cells, o, r):
        """Sum of P(examined | c) - o = (c - o r) (1 - o) / (1 - o r) over the cell's rows."""
        unclicked = 1 - o * r
        unclicked = jnp.where(unclicked == 0, 1, unclicked)
        return (cells.clicks - cells.weight * o * r) * (1 - o) / unclicked


def fit(task: Task, *, steps: int = 100_000, starts: int = 1) -> list[Fitted]:
    """Fit every lane's training log from random examinations, U(0, 1).

    One step is r = mean(c / o) per document, then o = mean(P(examined | c)) per bias factor, with
    P = c + (1 - c) o (1 - r) / (1 - o r), clipped to [0, 1].

    An o that is clipped to 1 stays there, and such a fit is stuck: it never fits the clicks. Starts
    near 0 lead to that in the first steps, since they make r large before it is clipped: about one
    start in ten on the authors' lists of K = 2 (README.md). `stuck` tells how many of the `starts`
    are.

    Args:
        task: see `twotowers.methods.alternation.fit`.
        steps: 20,000 in the paper, 100,000 in its code.
        starts: of each lane. The first gives the fit.
    """
    rates = rates_of(task)
    lanes = len(rates.rate)
    each = np.repeat(np.arange(lanes), starts)
    many = replace(rates, **{of: getattr(rates, of)[each] for of in ("factor", "rate", "weight")})
    measured = alternate(many, starts_of(task, rates, starts=starts), CollapsedEM(), steps=steps)
    seen = np.array([np.isin(np.arange(rates.factors), factor) for factor in many.factor])
    stuck = ((measured.examination == 1) & seen).any(1).reshape(lanes, starts).sum(1)
    first = replace(
        measured, relevance=measured.relevance[::starts], examination=measured.examination[::starts]
    )
    values = {"stuck": stuck, "starts": np.full(lanes, starts)}
    return fitted_of(task, rates, first, values)
