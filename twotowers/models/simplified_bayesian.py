"""The simplified dynamic Bayesian network: whoever is not satisfied always goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from twotowers.models.chances import certain
from twotowers.models.dynamic_bayesian import DynamicBayesian, satisfaction_of
from twotowers.models.page import ChainModel, attraction_of
from twotowers.models.protocol import PER_DOCUMENT


@dataclass(frozen=True)
class SimplifiedBayesian(ChainModel):
    """after_click = 1 - s, after_none = 1: `DynamicBayesian` with lambda = 1 (SDBN).

    This is the full model: that the last click satisfied is hidden. `SimplifiedBayesianCounted`
    counts instead. The thesis prints no formula of it.

    Attributes:
        satisfied, noise, highest: as a user, see `DynamicBayesian`.
    """

    parts: ClassVar[Mapping[str, str]] = {
        "attraction": PER_DOCUMENT,
        "satisfaction": PER_DOCUMENT,
    }

    satisfied: float = 0.8
    noise: float = 0.1
    highest: float = 4.0

    relevance = DynamicBayesian.relevance

    def continuation(self, parts):
        return ~parts["satisfaction"], certain(parts["attraction"].log)

    def credit(self, chances, clicked, skipped, examined, clicks):
        went_on, stopped = clicked
        return {
            "attraction": (clicks, examined),
            "satisfaction": (stopped, went_on + stopped),
        }

    def truth(self, relevance, positions):
        return {
            "attraction": attraction_of(relevance, self.noise, self.highest),
            "satisfaction": satisfaction_of(relevance, self.satisfied, self.highest),
        }
