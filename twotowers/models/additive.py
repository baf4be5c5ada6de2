"""The additive two-tower model: a click's logit is relevance plus position bias."""

from dataclasses import dataclass

import numpy as np

from twotowers.models.protocol import Array, CellModel


def inverse_rank(positions: int) -> np.ndarray:
    """Examination logits -ln k of positions k = 1..positions: [positions] float64."""
    return -np.log(np.arange(1, positions + 1))


@dataclass(frozen=True)
class Additive(CellModel):
    """P(click) = sigmoid(theta_k + gamma_qd) (Hager et al. 2025, Eq. 1).

    The simulated user has theta_k = -ln k and gamma = relevance - `centre` (Section 7). The centre
    keeps relevance in [0, 4] from saturating the sigmoid.

    Attributes:
        centre: the relevance with P(click) = 1/2 at position 1, for the simulated user.

    Example:
        >>> Additive().chance(np.array([2.0]), positions=3).round(3)
        array([[0.5  , 0.333, 0.25 ]])
    """

    centre: float = 2.0

    def click_logit(self, attraction: Array, examination: Array) -> Array:
        return attraction + examination

    def truth(self, relevance: np.ndarray, positions: int) -> dict[str, np.ndarray]:
        return {"attraction": relevance - self.centre, "examination": inverse_rank(positions)}

    def position_bias(self, examination: Array) -> Array:
        """The logits theta themselves: the data identify the sum up to one constant."""
        return examination
