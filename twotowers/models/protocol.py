"""The interface of click models whose clicks are independent, and names shared by all models.

A click model is a frozen dataclass. Its fields are constants. Its parameters come from outside, as
logits of its parts: attraction (one per query-document pair) and examination (one per position).
Towers, tables and a simulated user all give such logits. So the class that simulates clicks as a
user also explains them as a model.

The formulas accept NumPy and JAX arrays, and keep their precision.
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
"""The kinds of parts: one probability per query-document pair, one per position, a single one, or
one per jump. A jump is a position and the position of the last click above it (0 for none)."""


def of_documents(parts: Mapping[str, str]) -> list[str]:
    """The names of the parts that have a probability per query-document pair.

    Example:
        >>> of_documents({"attraction": PER_DOCUMENT, "examination": PER_POSITION})
        ['attraction']
    """
    return [part for part, kind in parts.items() if kind == PER_DOCUMENT]


@dataclass(frozen=True)
class CellModel:
    """A click model whose clicks are independent, given documents and positions.

    Counts of cells (query, document, position) are its sufficient statistics. A subclass gives
    `click_logit`. It gives `truth` if it can be a simulated user, and `expectations` if EM can fit
    it (see `twotowers.fitting.em`). Its file's name is its name in a configuration.

    Attributes:
        parts: part -> its kind, such as `PER_DOCUMENT`.

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
        """Log-odds of a click, in the shape that the parts' logits broadcast to."""
        raise NotImplementedError

    def click_probability(self, **parts: np.ndarray) -> np.ndarray:
        """P(click) in [0, 1], in the shape that the parts' logits broadcast to."""
        return expit(self.click_logit(**parts))

    def probability(self, **chances: np.ndarray) -> np.ndarray:
        """P(click) in [0, 1], from the parts' probabilities instead of their logits."""
        return self.click_probability(**{name: logit(value) for name, value in chances.items()})

    def truth(self, relevance: np.ndarray, positions: int) -> dict[str, np.ndarray]:
        """The logits of each part for a simulated user.

        Args:
            relevance: [...] graded relevance in [0, 4].
            positions: number of positions on the page.

        Returns:
            part -> logits, in the shape of `relevance` for a part per document, [positions] for
            a part per position, and so on.
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
        """Draw clicks with the given probabilities: bool, in the same shape."""
        return rng.random(chance.shape) < chance

    def position_bias(self, examination: Array) -> Array:
        """[positions] what the data identify up to one constant, from the examination logits.

        Here: ln P(examined | k). If P(click) is a product, the data identify its factors up to
        one scale, so the logarithm up to one constant. A model that adds logits gives the logits.
        """
        return log_sigmoid(examination)


def log_sigmoid(logits: Array) -> Array:
    """ln sigmoid(z) of NumPy or JAX arrays, without underflow."""
    numbers = logits.__array_namespace__()
    return -numbers.logaddexp(numbers.zeros_like(logits), -logits)


def odds_of(log_probability: Array) -> Array:
    """Log-odds from the logarithm of a probability: ln p - ln(1 - p)."""
    numbers = log_probability.__array_namespace__()
    # Keeps the log-odds of p = 1 finite, because 0 x infinity in a loss is NaN.
    below_one = numbers.minimum(log_probability, -numbers.finfo(log_probability.dtype).tiny)
    return below_one - numbers.log(-numbers.expm1(below_one))
