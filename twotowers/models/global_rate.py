"""The global click-through rate: one rate for all documents and positions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.errors import check_range
from twotowers.models.protocol import ONCE, CellModel


@dataclass(frozen=True)
class GlobalRate(CellModel):
    """P(click) = sigmoid(rho) for every document and position (GCTR; Hager 2026, Eq. 5.19).

    Attributes:
        chance_of_click: P(click) of the simulated user, in (0, 1).

    Example:
        >>> GlobalRate(chance_of_click=0.2).chance(np.array([0.0, 4.0]), positions=2).round(3)
        array([[0.2, 0.2],
               [0.2, 0.2]])
    """

    parts: ClassVar[Mapping[str, str]] = {"rate": ONCE}

    chance_of_click: float = 0.2

    def __post_init__(self):
        check_range(self.chance_of_click, field="chance_of_click", low=1e-6, high=1 - 1e-6)

    def click_logit(self, rate):
        return rate

    def truth(self, relevance, positions):
        return {"rate": logit(np.asarray(self.chance_of_click))}
