"""What a fit of a click model imagines beside the clicks, and the shares that follow.

>>> Prior(1, 5).of("attraction"), Prior(parts={"attraction": (1, 2)}).of("examination")
((1, 5), (0.0, 0.0))
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from twotowers.errors import InputError

MOST = 1e9
"""Of a prior, as an option gives it."""


@dataclass(frozen=True)
class Prior:
    """What a fit imagines beside the clicks: trials of every probability, and their successes.

    This is a Beta prior with mode successes / trials. The fit is then the mode of the posterior.
    The default is no imagined count.

    Attributes:
        successes, trials: of every probability of all parts that `parts` does not name, with
            0 <= successes <= trials.
        parts: part -> successes and trials of its own.
    """

    successes: float = 0.0
    trials: float = 0.0
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def of(self, part: str) -> tuple[float, float]:
        """The imagined successes and trials of each probability of a part."""
        return self.parts.get(part, (self.successes, self.trials))


NOTHING = Prior()


def pseudo_counts(prior: float, prior_mean: float) -> Prior:
    """The Beta prior of every probability, as an option gives it.

    It adds `prior` - 1 successes among (`prior` - 1) / `prior_mean` trials, where `prior` is in [1,
    MOST] and `prior_mean` in (0, 1). So 1 is no prior, and 2 adds a success and a failure if the
    mean is 1/2. PyClick has `prior: 2` with `prior_mean` 1/2. CLAX's baseline has `prior_mean` 1/9.

    Example:
        >>> pseudo_counts(2, 0.5)
        Prior(successes=1, trials=2.0, parts={})
    """
    if not (1 <= prior <= MOST and 0 < prior_mean < 1):
        raise InputError(
            f"prior {prior}, prior_mean {prior_mean}",
            field="prior",
            expected=f"1 to {MOST:g}, and a mean between 0 and 1",
        )
    return Prior(prior - 1, (prior - 1) / prior_mean)


def shares_of(
    successes: np.ndarray, trials: np.ndarray, before: np.ndarray | float = np.nan
) -> np.ndarray:
    """[size] shares of successes. A probability without trials keeps its value in `before`."""
    shares = np.minimum(successes / np.where(trials > 0, trials, 1), 1)
    return np.where(trials > 0, shares, before)
