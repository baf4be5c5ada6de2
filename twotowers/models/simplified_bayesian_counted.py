"""The simplified dynamic Bayesian network as PyClick fits it: the last click satisfies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from twotowers.models.page import SimplifiedModel
from twotowers.models.simplified_bayesian import SimplifiedBayesian


@dataclass(frozen=True)
class SimplifiedBayesianCounted(SimplifiedModel):
    """`SimplifiedBayesian`, fitted by counting (Chapelle and Zhang 2009, Section 5).

    Satisfaction is the share of a document's clicks that were the last of their page.
    """

    parts: ClassVar[Mapping[str, str]] = SimplifiedBayesian.parts

    continuation = SimplifiedBayesian.continuation
    relevance = SimplifiedBayesian.relevance

    def counted_behind(self, clicks, went_on):
        return {"satisfaction": (clicks & ~went_on, clicks)}
