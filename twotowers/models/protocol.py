"""What every click model says, whether it simulates clicks (a user) or explains them (a model).

A click model is a frozen dataclass. Its fields are the constants of the model; its parameters
come from outside, as logits of its parts: attraction (one per query-document pair) and
examination (one per position). Towers, tables and a simulated truth all give such logits, so a
user and a model of the same kind are the same class.

The formulas work on NumPy and on JAX arrays alike, in the precision of what they are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

Array = Any
"""A NumPy or a JAX array."""

PER_DOCUMENT, PER_POSITION = "document", "position"
ONCE, PER_JUMP = "once", "jump"
"""A part may also have one probability in all, or one per position and position of the last click
above it (0 where there is none)."""


@dataclass(frozen=True)
class CellModel:
    """A click model in which clicks of a page are independent, given its documents and positions.

    Counts of cells (query, document, position) are its sufficient statistics.
    A subclass gives `click_logit`; `truth` if it can be a user; and `expectations` if it can be
    fitted by EM (see `twotowers.fitting.em`). It lies in a file of its own,
    whose name is the name of the model in a configuration.

    Attributes:
        parts: from the name of each part to what it belongs to, a document or a position.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Additive(CellModel):
        ...     def click_logit(self, attraction, examination):
        ...         return attraction + examination
        >>> float(Additive().click_probability(attraction=np.array(0.0), examination=np.array(0.0)))
        0.5
    """

    parts: ClassVar[Mapping[str, str]] = {
        "attraction": PER_DOCUMENT,
        "examination": PER_POSITION,
    }

    def click_logit(self, **parts: Array) -> Array:
        """Log-odds of a click, of the shape that the parts' logits broadcast to."""
        raise NotImplementedError

    def click_probability(self, **parts: np.ndarray) -> np.ndarray:
        """P(click) in [0, 1], of the shape that the parts' logits broadcast to."""
        return expit(self.click_logit(**parts))

    def probability(self, **chances: np.ndarray) -> np.ndarray:
        """P(click) in [0, 1] from the parts' probabilities instead of their logits."""
        return self.click_probability(**{name: logit(value) for name, value in chances.items()})

    def truth(self, relevance: np.ndarray, positions: int) -> dict[str, np.ndarray]:
        """The logits of each part for a simulated user.

        Args:
            relevance: [...] graded relevance in [0, 4].
            positions: positions on the page.

        Returns:
            per part an array of the shape of `relevance`, or [positions].
        """
        raise NotImplementedError

    def chance(self, relevance: np.ndarray, positions: int) -> np.ndarray:
        """P(click) of the simulated user: [..., documents] -> [..., documents, positions]."""
        truth = self.truth(np.asarray(relevance), positions)
        parts = {
            name: values[..., None] if self.parts[name] == PER_DOCUMENT else values
            for name, values in truth.items()
        }
        chance = self.click_probability(**parts)
        return np.broadcast_to(chance, (*np.shape(relevance), positions))

    def sample(self, chance: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        """Clicks of pages whose cells have the given probabilities: bool of the same shape."""
        return rng.random(chance.shape) < chance

    def position_bias(self, examination: Array) -> Array:
        """Per position, what the data identify up to one constant; logits of examination here."""
        return examination


def log_sigmoid(logits: Array) -> Array:
    """ln s(z) of NumPy or JAX arrays, without underflow."""
    numbers = logits.__array_namespace__()
    return -numbers.logaddexp(numbers.zeros_like(logits), -logits)


def odds_of(log_probability: Array) -> Array:
    """Log-odds of a probability given as its logarithm: ln p - ln(1 - p)."""
    numbers = log_probability.__array_namespace__()
    # Certain clicks have finite log-odds, too, so that none of them meets a 0 as infinity.
    below_one = numbers.minimum(log_probability, -numbers.finfo(log_probability.dtype).tiny)
    return below_one - numbers.log(-numbers.expm1(below_one))
