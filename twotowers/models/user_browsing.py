"""The user browsing model: examination depends on the position and the last click above it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.models.chances import NEVER, Chance, log_sum_over, numbers_of, over_positions
from twotowers.models.page import attraction_of, last_clicks
from twotowers.models.protocol import JUMPS, PER_DOCUMENT, PER_JUMP, PageModel


@dataclass(frozen=True)
class UserBrowsing(PageModel):
    """P(C_k = 1 | clicks above) = theta_{k,k'} g_k (UBM; Dupret and Piwowarski 2008).

    theta_{k,k'} is the examination of position k, and g_k the attraction of the document there. k'
    is the position of the last click above k, or 0. These are Eqs. 5.25 and 5.26 of the thesis.

    Attributes:
        distance: the simulated user has theta_{k,k'} = (k - k')^-distance for k' > 0.
        eta: the simulated user has theta_{k,0} = k^-eta.
        noise, highest: of the simulated user; see `PositionBased`.

    Example:
        >>> attraction = Chance.of(np.array([0.5, 0.5]))
        >>> examination = Chance.of(np.array([[1, 0], [0.2, 0.8]]))  # theta_{1,0}; theta_{2,0..1}
        >>> parts = {"attraction": attraction, "examination": examination}
        >>> UserBrowsing().conditional(parts, np.array([True, False])).value.round(3)
        array([0.5, 0.4])
    """

    parts: ClassVar[Mapping[str, str]] = {"attraction": PER_DOCUMENT, "examination": PER_JUMP}
    statistics: ClassVar[str] = JUMPS

    distance: float = 0.7
    eta: float = 1.0
    noise: float = 0.1
    highest: float = 4.0

    def conditional(self, parts, clicks):
        # Of each page its own, if towers of examination read what a page shows.
        own = numbers_of(clicks).arange(clicks.shape[-1]), last_clicks(clicks)
        if parts["examination"].other.ndim > 2:
            own = (*numbers_of(clicks).indices(clicks.shape, sparse=True)[:-1], *own)
        jumps = parts["examination"].at(own)
        return self.of_cells({**parts, "examination": jumps})

    def of_cells(self, parts):
        return parts["examination"] & parts["attraction"]

    def marginal(self, parts):
        return self._paths(parts)[0]

    def examination(self, parts):
        return self._paths(parts)[1]

    def _paths(self, parts) -> tuple[Chance, Chance]:
        """P(C_k = 1) and P(E_k = 1), summed over the positions of the last click above k."""
        attraction, jumps = parts["attraction"], parts["examination"]
        numbers = numbers_of(attraction.log)
        length = attraction.log.shape[-1]
        behind = numbers.arange(length)

        def step(last, column):
            # `last` is ln P(the last click above k is at k'), for k' from 0.
            attractive, seen, place = column
            click = seen & Chance(*(log[..., None] for log in attractive))
            paths = [Chance(*(log_sum_over(log + last) for log in each)) for each in (click, seen)]
            last = last + click.other
            return numbers.where(behind == place + 1, paths[0].log[..., None], last), tuple(paths)

        start = numbers.where(behind == 0, 0.0, NEVER) + numbers.zeros_like(attraction.log)
        # Scanning goes along the last axis, so positions must be there.
        rows = Chance(*(log.swapaxes(-1, -2) for log in jumps))
        columns = attraction, rows, behind
        return over_positions(step, start, columns)

    def expectations(self, chances, clicks, where):
        return product_credits(chances, clicks, where)

    def truth(self, relevance, positions):
        place = np.arange(1.0, positions + 1)
        apart = np.maximum(place[:, None] - np.arange(positions), 1)
        jumps = apart**-self.distance
        jumps[:, 0] = place**-self.eta
        return {
            "attraction": attraction_of(relevance, self.noise, self.highest),
            "examination": logit(jumps),
        }


def product_credits(chances, clicks, where) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Expected successes and trials if a click takes an examined position (e) and attraction (g).

    Attraction has a trial only if the position is examined. So no click counts as
    P(examined | no click) = e (1 - g) / (1 - e g) failed trials of attraction.
    """
    examination, attraction = chances["examination"], chances["attraction"]
    none = 1 - examination * attraction
    hidden = np.divide(
        examination * (1 - attraction), none, out=np.zeros_like(none), where=none > 0
    )
    examined = np.where(clicks, 1.0, hidden) * where
    return {"attraction": (clicks & where, examined), "examination": (examined, where)}
