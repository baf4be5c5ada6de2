"""The dependent click model as PyClick fits it: the user stops after the last click."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from twotowers.models.dependent_click import DependentClick
from twotowers.models.page import SimplifiedModel


@dataclass(frozen=True)
class DependentClickSimplified(SimplifiedModel):
    """`DependentClick`, fitted by counting (simplified DCM; Chuklin et al. 2015, Section 4.1.3).

    lambda_k is the share of clicks at k that were not the last of their page.
    """

    parts: ClassVar[Mapping[str, str]] = DependentClick.parts

    continuation = DependentClick.continuation

    def counted_behind(self, clicks, went_on):
        return {"continuation": (went_on, clicks)}
