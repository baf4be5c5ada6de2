"""The click-through rate of each position, whatever the document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.errors import check_range
from twotowers.models.protocol import PER_POSITION, CellModel


@dataclass(frozen=True)
class RankRate(CellModel):
    """P(click) = sigmoid(theta_k), whatever the document (RCTR; Eq. 5.20).

    Attributes:
        first: as a user, P(click) at the first position, in (0, 1).
        eta: as a user, how steeply it falls: P(click) = first k^-eta; 0 or more.
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
