"""The document-based click-through rate: the naive model, without position bias."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from twotowers.models.protocol import PER_DOCUMENT, Array, CellModel


@dataclass(frozen=True)
class DocumentRate(CellModel):
    """P(click) = sigmoid(gamma_qd) at every position (DCTR; Chuklin et al. 2015, Section 3.2).

    Attributes:
        centre: the relevance with P(click) = 1/2, for the simulated user.

    Example:
        >>> DocumentRate().chance(np.array([2.0]), positions=2)
        array([[0.5, 0.5]])
    """

    parts: ClassVar[Mapping[str, str]] = {"attraction": PER_DOCUMENT}

    centre: float = 2.0

    def click_logit(self, attraction: Array) -> Array:
        return attraction

    def truth(self, relevance: np.ndarray, positions: int) -> dict[str, np.ndarray]:
        return {"attraction": relevance - self.centre}
