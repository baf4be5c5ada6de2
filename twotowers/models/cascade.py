"""The cascade model: the user clicks the first attractive document, and stops."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from twotowers.errors import check_range
from twotowers.models.chances import numbers_of
from twotowers.models.page import ChainModel, attraction_of
from twotowers.models.protocol import PER_DOCUMENT


@dataclass(frozen=True)
class Cascade(ChainModel):
    """after_click = 0, after_none = 1 (CM; Craswell et al. 2008; Eqs. 5.23 and 5.24).

    The model allows one click per page, and gives probability 0 to a page with two. As in CLAX,
    each click below the first has probability `floor` instead, so likelihoods stay finite.

    Attributes:
        floor: probability of a click below the first, in [1e-300, 1].
        noise, highest: of the simulated user; see `PositionBased`.

    Example:
        >>> from twotowers.models.chances import Chance
        >>> Cascade().marginal({"attraction": Chance.of(np.array([0.5, 0.5]))}).value.round(3)
        array([0.5 , 0.25])
    """

    parts: ClassVar[Mapping[str, str]] = {"attraction": PER_DOCUMENT}

    floor: float = 1e-8
    noise: float = 0.1
    highest: float = 4.0

    def __post_init__(self):
        check_range(self.floor, field="floor", low=1e-300, high=1)

    def continuation(self, parts):
        always = parts["attraction"].always
        return ~always, always

    def conditional(self, parts, clicks):
        chance = super().conditional(parts, clicks)
        above = numbers_of(clicks).cumsum(clicks, axis=-1) > clicks
        return type(chance).of(self.floor).broadcast(above.shape).where(above, chance)

    def possible(self, clicks, where):
        # The user stops after the first click, so documents below it were not examined.
        return where & ~(np.cumsum(clicks, axis=-1) > clicks)

    def counts(self, clicks, where):
        examined = self.possible(clicks, where)
        return {"attraction": (clicks & examined, examined)}

    def truth(self, relevance, positions):
        return {"attraction": attraction_of(relevance, self.noise, self.highest)}
