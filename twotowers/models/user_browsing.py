"""The user browsing model: examination depends on the position and on that of the last click."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.models.chances import NEVER, Chance, log_sum_over, numbers_of, over_positions
from twotowers.models.page import JUMPS, PageModel, attraction_of, last_clicks
from twotowers.models.protocol import PER_DOCUMENT, PER_JUMP


@dataclass(frozen=True)
class UserBrowsing(PageModel):
    """P(C_k | clicks above) = theta_{k,k'} g_k, k' the last click above k, or 0 (UBM; Dupret and
    Piwowarski 2008; Eqs. 5.25 and 5.26).

    Attributes:
        distance: as a user, theta_{k,k'} = (k - k')^-distance for a click at k' above k.
        eta: as a user, theta_{k,0} = k^-eta.
        noise, highest: as a user, see `PositionBased`.
    """

    parts: ClassVar[Mapping[str, str]] = {
        "attraction": PER_DOCUMENT,
        "examination": PER_JUMP,
    }
    statistics: ClassVar[str] = JUMPS

    distance: float = 0.7
    eta: float = 1.0
    noise: float = 0.1
    highest: float = 4.0

    def conditional(self, parts, clicks):
        place = numbers_of(clicks).arange(clicks.shape[-1])
        jumps = parts["examination"].at((place, last_clicks(clicks)))
        return self.of_cells({**parts, "examination": jumps})

    def of_cells(self, parts):
        return parts["examination"] & parts["attraction"]

    def marginal(self, parts):
        return self._paths(parts)[0]

    def examination(self, parts):
        return self._paths(parts)[1]

    def _paths(self, parts) -> tuple[Chance, Chance]:
        """P(C_k) and P(E_k), over all positions that the last click above k may have."""
        attraction, jumps = parts["attraction"], parts["examination"]
        numbers = numbers_of(attraction.log)
        length = attraction.log.shape[-1]
        behind = numbers.arange(length)

        def step(last, column):
            # ln P(the last click above k was at k'), k' from 0.
            attractive, seen, place = column
            click = seen & Chance(*(log[..., None] for log in attractive))
            found = [Chance(*(log_sum_over(log + last) for log in each)) for each in (click, seen)]
            last = last + click.other
            return numbers.where(behind == place + 1, found[0].log[..., None], last), tuple(found)

        start = numbers.where(behind == 0, 0.0, NEVER) + numbers.zeros_like(attraction.log)
        # The row of each position, and its number.
        rows = Chance(*(log.T for log in jumps))
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
    """Of a click that needs an examined position and an attractive document.

    Only what is examined is tried: P(examined | no click) = e (1 - g) / (1 - e g) trials of the
    document's attraction that fail.
    """
    examination, attraction = chances["examination"], chances["attraction"]
    none = 1 - examination * attraction
    hidden = np.divide(
        examination * (1 - attraction), none, out=np.zeros_like(none), where=none > 0
    )
    examined = np.where(clicks, 1.0, hidden) * where
    return {"attraction": (clicks & where, examined), "examination": (examined, where)}
