"""The users of Chen et al. (2024): examination by position as eye-tracking measured it."""

from dataclasses import dataclass

import numpy as np

from twotowers.errors import InputError
from twotowers.models.position_based import PositionBased
from twotowers.models.protocol import CellModel

POSITIONS = 10
EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
"""By position."""
WEIGHTS = np.array(
    [
        -0.13390555877443555,
        0.1988461661157539,
        -0.026005814485797307,
        -0.14176620063529133,
        -0.38422296795127564,
        0.06025565950422718,
        -0.35635814410370004,
        0.5520136349350745,
        0.6957929543729735,
        -0.46464952897752965,
    ]
)
"""w of Appendix C.2."""


# The base is named again, because models are found by it.
@dataclass(frozen=True)
class EyeTracking(PositionBased, CellModel):
    """P(click) = P(examined | k) P(attractive), with P(examined | k) of the authors' simulation.

    P(attractive) = noise + (1 - noise) (2^y - 1) / (2^highest - 1), as Eq. C.1 has it, with
    labels y from 0 to 4 and y_max = 5, which no label reaches.

    Attributes:
        noise: P(attractive) of a document of relevance 0, in [0, 1].
        highest: y_max.

    Example:
        >>> EyeTracking().examined(3)
        array([0.68, 0.61, 0.48])
    """

    noise: float = 0.1
    highest: float = 5.0

    def examined(self, positions: int) -> np.ndarray:
        """[positions] P(examined | k)."""
        if positions > len(EXAMINATION):
            raise InputError(
                f"examination of position {positions} is unknown",
                field="positions",
                expected=f"{len(EXAMINATION)} at most",
            )
        return EXAMINATION[:positions]
