"""The dynamic Bayesian network: attraction and satisfaction are separate parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.models.page import ChainModel, attraction_of
from twotowers.models.protocol import ONCE, PER_DOCUMENT


@dataclass(frozen=True)
class DynamicBayesian(ChainModel):
    """after_click = lambda (1 - s), after_none = lambda (DBN; Chapelle and Zhang 2009).

    s is P(satisfied | clicked), and lambda is P(going on | not satisfied). These are Eqs. 5.31 and
    5.32 of the thesis, with the bracket of the second corrected (see `ChainModel`).

    Attributes:
        patience: lambda of the simulated user, in (0, 1).
        satisfied: s of the simulated user for the highest relevance, in (0, 1).
        noise, highest: of the simulated user; see `PositionBased`.

    Example:
        >>> from twotowers.models.chances import Chance
        >>> half = Chance.of(np.array([0.5, 0.5]))
        >>> parts = {"attraction": half, "satisfaction": half, "continuation": Chance.of(0.8)}
        >>> DynamicBayesian().marginal(parts).value.round(3)
        array([0.5, 0.3])
    """

    parts: ClassVar[Mapping[str, str]] = {
        "attraction": PER_DOCUMENT,
        "satisfaction": PER_DOCUMENT,
        "continuation": ONCE,
    }

    patience: float = 0.9
    satisfied: float = 0.8
    noise: float = 0.1
    highest: float = 4.0

    def continuation(self, parts):
        return parts["continuation"] & ~parts["satisfaction"], parts["continuation"]

    def credit_clicked(self, chances, went_on, stopped):
        satisfying, patience = chances["satisfaction"], chances["continuation"]
        left = 1 - patience * (1 - satisfying)  # P(stopped | clicked)
        satisfied = stopped * np.divide(satisfying, left, out=np.zeros_like(left), where=left > 0)
        tried = went_on + stopped
        return {"satisfaction": (satisfied, tried), "continuation": (went_on, tried - satisfied)}

    def credit_skipped(self, chances, went_on, stopped):
        return {"continuation": (went_on, went_on + stopped)}

    def relevance(self, parts):
        """ln(attraction x satisfaction) of each document (Chapelle and Zhang 2009)."""
        return parts["attraction"].log + parts["satisfaction"].log

    def truth(self, relevance, positions):
        return {
            "attraction": attraction_of(relevance, self.noise, self.highest),
            "satisfaction": satisfaction_of(relevance, self.satisfied, self.highest),
            "continuation": logit(np.asarray(self.patience)),
        }


def satisfaction_of(relevance: np.ndarray, satisfied: float, highest: float) -> np.ndarray:
    """Logits of P(satisfied | clicked) = satisfied (1 + y) / (1 + highest)."""
    return logit(satisfied * (1 + relevance) / (1 + highest))
