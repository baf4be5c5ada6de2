"""The dependent click model: P(going on after a click) depends on the position."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.models.page import ChainModel, attraction_of
from twotowers.models.protocol import PER_DOCUMENT, PER_POSITION


@dataclass(frozen=True)
class DependentClick(ChainModel):
    """after_click_k = lambda_k, after_none = 1 (DCM; Guo et al. 2009; Eqs. 5.27 and 5.28).

    This is the full model: whether the user stopped after the last click is hidden, and EM infers
    it. `DependentClickSimplified` assumes that the user stopped there, and counts.

    Attributes:
        steepness: the simulated user has lambda_k = most k^-steepness; 0 or more.
        most: lambda_1 of the simulated user, in (0, 1).
        noise, highest: of the simulated user; see `PositionBased`.

    Example:
        >>> from twotowers.models.chances import Chance
        >>> half = Chance.of(np.array([0.5, 0.5]))
        >>> DependentClick().marginal({"attraction": half, "continuation": half}).value.round(3)
        array([0.5  , 0.375])
    """

    parts: ClassVar[Mapping[str, str]] = {"attraction": PER_DOCUMENT, "continuation": PER_POSITION}

    steepness: float = 0.3
    most: float = 0.7
    noise: float = 0.1
    highest: float = 4.0

    def continuation(self, parts):
        return parts["continuation"], parts["attraction"].always

    def credit_clicked(self, chances, went_on, stopped):
        return {"continuation": (went_on, went_on + stopped)}

    def truth(self, relevance, positions):
        falls = self.most * np.arange(1.0, positions + 1) ** -self.steepness
        return {
            "attraction": attraction_of(relevance, self.noise, self.highest),
            "continuation": logit(falls),
        }
