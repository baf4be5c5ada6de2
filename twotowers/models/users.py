"""How the simulated user examines and clicks (Hager et al. 2025, Section 7)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

CENTRE = 2.0


def position_bias(positions: int) -> np.ndarray:
    """Examination logits -ln k of positions k = 1..positions: [positions] float64."""
    return -np.log(np.arange(1, positions + 1))


def click_probability(relevance: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The additive two-tower user, sigmoid(theta_k + (gamma_qd - 2)) (Eq. 1).

    Relevance in [0, 4] is centred so that logits do not saturate the sigmoid.

    Args:
        relevance: gamma, any shape that broadcasts against `bias`.
        bias: theta, the examination logit of the position shown at.

    Returns:
        probabilities in (0, 1), of the broadcast shape.
    """
    return expit(bias + (relevance - CENTRE))
