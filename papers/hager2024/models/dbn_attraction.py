"""The dynamic Bayesian network, where satisfaction does not rank."""

from dataclasses import dataclass

from twotowers.models.dynamic_bayesian import DynamicBayesian


@dataclass(frozen=True)
class RankedByAttraction(DynamicBayesian):
    """Clicks as those of `DynamicBayesian`; documents rank by attraction alone."""

    def relevance(self, parts):
        """ln(attraction) of each document."""
        return parts["attraction"].log
