"""What a fit of a click model finds: its probabilities, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from twotowers.fitting.information import Intervals, intervals
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics


@dataclass(frozen=True)
class Estimate:
    """The fitted probabilities of a click model.

    Attributes:
        parameters: part -> [size] probabilities, NaN for those without trials and prior. Those of
            documents are in the order of pairs; of jumps, a position after the other.
        trials: part -> [size] number of trials, observed or expected, without those of the prior.
            Empty if the fit does not tell.
        history: log-likelihood in nats (plus the log density of the prior, up to a constant) at
            the start and after each iteration. A fit in closed form gives the final value only.
        converged: whether the last iteration gained less than the tolerance.
        prior: what the fit imagined.
        source: makes the statistics of the log that was fitted. None if they are not at hand.
    """

    parameters: Mapping[str, np.ndarray]
    trials: Mapping[str, np.ndarray] = field(default_factory=dict)
    history: np.ndarray = field(default_factory=lambda: np.empty(0))
    converged: bool = True
    prior: Prior = field(default_factory=Prior)
    source: Callable[[], Statistics] | None = field(default=None, repr=False)

    @property
    def iterations(self) -> int:
        """Number of iterations done."""
        return len(self.history) - 1

    @cached_property
    def intervals(self) -> Mapping[str, Intervals]:
        """Part -> standard errors and intervals (`twotowers.fitting.information`)."""
        return intervals(self.source(), self.parameters, prior=self.prior)

    def unknown(self) -> dict[str, float]:
        """Part -> the value of probabilities without data.

        It is what the prior imagines, or, without a prior, the mean of the part's other
        probabilities, weighted by trials.
        """
        values = {}
        for part, own in self.parameters.items():
            successes, trials = self.prior.of(part)
            weights, known = self.trials[part], ~np.isnan(own)
            if trials > 0:
                values[part] = successes / trials
            elif weights[known].sum() > 0:
                values[part] = np.average(own[known], weights=weights[known])
            else:
                values[part] = 0.5
        return values

    def filled(self) -> dict[str, np.ndarray]:
        """The parameters, with `unknown` in the place of NaN."""
        unknown = self.unknown()
        return {
            part: np.where(np.isnan(own), unknown[part], own)
            for part, own in self.parameters.items()
        }
