"""The click chain model: a clicked document satisfies with its probability of attraction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.models.page import ChainModel, attraction_of
from twotowers.models.protocol import ONCE, PER_DOCUMENT


@dataclass(frozen=True)
class ClickChain(ChainModel):
    """after_click = g t3 + (1 - g) t2, after_none = t1 (CCM; Guo et al. 2009b; Eqs. 5.29, 5.30).

    A clicked document satisfies with the probability g with which it attracts. t1, t2 and t3 are
    the probabilities of going on after no click, a dissatisfying click and a satisfying click.
    The parts `after_none`, `after_dissatisfied` and `after_satisfied` hold them.

    Attributes:
        t1, t2, t3: of the simulated user, in (0, 1).
        noise, highest: of the simulated user; see `PositionBased`.

    Example:
        >>> from twotowers.models.chances import Chance
        >>> parts = {
        ...     "attraction": Chance.of(np.array([0.5, 0.5])),
        ...     "after_none": Chance.of(0.9),
        ...     "after_dissatisfied": Chance.of(0.7),
        ...     "after_satisfied": Chance.of(0.3),
        ... }
        >>> ClickChain().marginal(parts).value.round(3)
        array([0.5 , 0.35])
    """

    parts: ClassVar[Mapping[str, str]] = {
        "attraction": PER_DOCUMENT,
        "after_none": ONCE,
        "after_dissatisfied": ONCE,
        "after_satisfied": ONCE,
    }

    t1: float = 0.9
    t2: float = 0.7
    t3: float = 0.3
    noise: float = 0.1
    highest: float = 4.0

    def continuation(self, parts):
        after_click = parts["attraction"].mix(parts["after_satisfied"], parts["after_dissatisfied"])
        return after_click, parts["after_none"]

    def credit_clicked(self, chances, went_on, stopped):
        satisfying = chances["attraction"]
        t2, t3 = chances["after_dissatisfied"], chances["after_satisfied"]
        on_satisfied = went_on * _share(satisfying * t3, (1 - satisfying) * t2)
        off_satisfied = stopped * _share(satisfying * (1 - t3), (1 - satisfying) * (1 - t2))
        on, off = went_on - on_satisfied, stopped - off_satisfied
        return {
            # A clicked document satisfies or not, with the probability with which it attracts.
            "attraction": (on_satisfied + off_satisfied, went_on + stopped),
            "after_dissatisfied": (on, on + off),
            "after_satisfied": (on_satisfied, on_satisfied + off_satisfied),
        }

    def credit_skipped(self, chances, went_on, stopped):
        return {"after_none": (went_on, went_on + stopped)}

    def truth(self, relevance, positions):
        once = {"after_none": self.t1, "after_dissatisfied": self.t2, "after_satisfied": self.t3}
        return {
            "attraction": attraction_of(relevance, self.noise, self.highest),
            **{name: logit(np.asarray(value)) for name, value in once.items()},
        }


def _share(one: np.ndarray, another: np.ndarray) -> np.ndarray:
    """one / (one + another), or 0 where both are 0."""
    total = one + another
    return np.divide(one, total, out=np.zeros_like(total), where=total > 0)
