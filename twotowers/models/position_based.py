"""The position-based model: a click takes an examined position and an attractive document."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from twotowers.errors import check_range
from twotowers.models.protocol import Array, CellModel, log_sigmoid, odds_of


@dataclass(frozen=True)
class PositionBased(CellModel):
    """P(click) = P(examined | k) P(attractive | q, d) (Craswell et al. 2008, Section 3.2).

    The simulated user has P(examined | k) = (1 / k)^eta. Graded relevance y gives
    P(attractive) = noise + (1 - noise) (2^y - 1) / (2^highest - 1).

    Attributes:
        eta: how steeply examination falls, in [0, 100]; 0 is no position bias.
        noise: P(attractive) of a document of relevance 0, in [0, 1].
        highest: the highest grade of relevance, in [1e-6, 100].

    Example:
        >>> PositionBased().chance(np.array([4.0, 0.0]), positions=2).round(3)
        array([[1.  , 0.5 ],
               [0.1 , 0.05]])
    """

    eta: float = 1.0
    noise: float = 0.1
    highest: float = 4.0

    def __post_init__(self):
        check_range(self.eta, field="eta", low=0, high=100)
        check_range(self.noise, field="noise", low=0, high=1)
        check_range(self.highest, field="highest", low=1e-6, high=100)

    def click_logit(self, attraction: Array, examination: Array) -> Array:
        return odds_of(log_sigmoid(attraction) + log_sigmoid(examination))

    def click_probability(self, attraction: np.ndarray, examination: np.ndarray) -> np.ndarray:
        return expit(attraction) * expit(examination)

    def examined(self, positions: int) -> np.ndarray:
        """[positions] P(examined | k) of the simulated user: the true propensities."""
        return (1 / np.arange(1, positions + 1)) ** self.eta

    def examined_in(self, contexts: np.ndarray, positions: int) -> np.ndarray:
        """[contexts, positions] P(examined | t, k) in each context. Here contexts change nothing.

        Args:
            contexts: [contexts, width] a vector of each context type.
            positions: of a page.
        """
        return np.tile(self.examined(positions), (len(contexts), 1))

    def attractive(self, relevance: np.ndarray) -> np.ndarray:
        """P(attractive) of documents of graded relevance, in the same shape."""
        gain = (2.0**relevance - 1) / (2**self.highest - 1)
        return self.noise + (1 - self.noise) * gain

    def truth(self, relevance: np.ndarray, positions: int) -> dict[str, np.ndarray]:
        return {
            "attraction": logit(self.attractive(relevance)),
            "examination": logit(self.examined(positions)),
        }

    def probability(self, attraction: np.ndarray, examination: np.ndarray) -> np.ndarray:
        return attraction * examination

    def posteriors(self, attraction: np.ndarray, examination: np.ndarray) -> dict[str, tuple]:
        """P(part | click) and P(part | no click) of each part, for EM (Wang et al. 2018).

        A click needs both parts, so P(part | click) = 1. Without a click,
        P(attraction | no click) = attraction (1 - examination) / (1 - attraction examination),
        and P(examination | no click) is the same with both parts swapped.
        """
        none = 1 - attraction * examination
        return {
            "attraction": (1, attraction * (1 - examination) / none),
            "examination": (1, examination * (1 - attraction) / none),
        }
