"""The rank-based click-through rate: one rate per position, for all documents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.errors import check_range
from twotowers.models.protocol import PER_POSITION, CellModel


@dataclass(frozen=True)
class RankRate(CellModel):
    """P(click) = sigmoid(theta_k) for every document (RCTR; Hager 2026, Eq. 5.20).

    The simulated user has P(click) = first k^-eta.

    Attributes:
        first: P(click) of the simulated user at position 1, in (0, 1).
        eta: how steeply it falls, in [0, 100].

    Example:
        >>> RankRate(first=0.4, eta=1.0).chance(np.array([0.0]), positions=2).round(3)
        array([[0.4, 0.2]])
    """

    parts: ClassVar[Mapping[str, str]] = {"examination": PER_POSITION}

    first: float = 0.4
    eta: float = 1.0

    def __post_init__(self):
        check_range(self.first, field="first", low=1e-6, high=1 - 1e-6)
        check_range(self.eta, field="eta", low=0, high=100)

    def click_logit(self, examination):
        return examination

    def truth(self, relevance, positions):
        place = np.arange(1.0, positions + 1)
        return {"examination": logit(self.first * place**-self.eta)}
