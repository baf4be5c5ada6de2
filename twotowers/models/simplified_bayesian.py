"""The simplified dynamic Bayesian network: a user who is not satisfied always goes on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from twotowers.models.dynamic_bayesian import DynamicBayesian, satisfaction_of
from twotowers.models.page import ChainModel, attraction_of
from twotowers.models.protocol import PER_DOCUMENT


@dataclass(frozen=True)
class SimplifiedBayesian(ChainModel):
    """after_click = 1 - s, after_none = 1: `DynamicBayesian` with lambda = 1 (SDBN).

    This is the full model: whether the last click satisfied is hidden, and EM infers it.
    `SimplifiedBayesianCounted` assumes that it satisfied, and counts. The thesis prints no formula
    for this model.

    Attributes:
        satisfied, noise, highest: of the simulated user; see `DynamicBayesian`.

    Example:
        >>> import numpy as np
        >>> from twotowers.models.chances import Chance
        >>> half = Chance.of(np.array([0.5, 0.5]))
        >>> parts = {"attraction": half, "satisfaction": half}
        >>> SimplifiedBayesian().marginal(parts).value.round(3)
        array([0.5  , 0.375])
    """

    parts: ClassVar[Mapping[str, str]] = {"attraction": PER_DOCUMENT, "satisfaction": PER_DOCUMENT}

    satisfied: float = 0.8
    noise: float = 0.1
    highest: float = 4.0

    relevance = DynamicBayesian.relevance

    def continuation(self, parts):
        return ~parts["satisfaction"], parts["attraction"].always

    def credit_clicked(self, chances, went_on, stopped):
        return {"satisfaction": (stopped, went_on + stopped)}

    def truth(self, relevance, positions):
        return {
            "attraction": attraction_of(relevance, self.noise, self.highest),
            "satisfaction": satisfaction_of(relevance, self.satisfied, self.highest),
        }
