"""Counts of successes and trials: all that a model without hidden events needs from a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from twotowers.fitting.pages import PagesEstimate, shares
from twotowers.models.page import PageModel


@dataclass(frozen=True)
class Totals:
    """What a log has of each probability of a model with `counts`.

    Attributes:
        model: the click model.
        successes, trials, impressions: part -> [size] of each of its probabilities.
    """

    model: PageModel
    successes: Mapping[str, np.ndarray]
    trials: Mapping[str, np.ndarray]
    impressions: Mapping[str, np.ndarray]

    @property
    def sizes(self) -> dict[str, int]:
        """Part -> number of its probabilities."""
        return {part: len(trials) for part, trials in self.trials.items()}

    def fit(self, *, prior: tuple[float, float] = (0.0, 0.0)) -> PagesEstimate:
        """The estimate of `twotowers.fitting.pages.fit_counts`, without its log-likelihood."""
        found = {
            part: shares(self.successes[part], trials, prior)
            for part, trials in self.trials.items()
        }
        return PagesEstimate(found, dict(self.trials), np.empty(0))
