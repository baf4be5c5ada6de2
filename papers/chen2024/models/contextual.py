"""The users of Section 5.2 of Chen et al. (2024): context changes how steeply examination falls."""

from dataclasses import dataclass

import numpy as np

from papers.chen2024.models.eye_tracking import WEIGHTS, EyeTracking
from twotowers.errors import InputError
from twotowers.models.protocol import CellModel


# The last base is named again, because models are found by it.
@dataclass(frozen=True)
class Contextual(EyeTracking, CellModel):
    """P(click) = P(examined | t, k) P(attractive), with P(examined | t, k) = o_k^max(w X_t + 1, 0).

    X_t is the vector of context t, and o_k the examination without a context (Appendix C.2).
    P(attractive) is .1, .16, .28, .52 and 1 for labels 0 to 4, as in the authors' click_model.json.

    Example:
        >>> Contextual().examined_in(np.zeros((1, 10)), 3)
        array([[0.68, 0.61, 0.48]])
    """

    highest: float = 4.0

    def examined_in(self, contexts: np.ndarray, positions: int) -> np.ndarray:
        """[contexts, positions] P(examined | t, k)."""
        if contexts.shape[1] != len(WEIGHTS):
            raise InputError(
                f"context vectors have {contexts.shape[1]} elements",
                field="contexts.features",
                expected=f"{len(WEIGHTS)}",
            )
        exponent = np.maximum(contexts @ WEIGHTS + 1, 0)
        return self.examined(positions) ** exponent[:, None]
