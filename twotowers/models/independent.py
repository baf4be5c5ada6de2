"""Adapters that give a `CellModel` the interface of a `PageModel`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from twotowers.models import page
from twotowers.models.chances import Chance, certain
from twotowers.models.protocol import CellModel


@dataclass(frozen=True)
class IndependentClicks(page.PageModel):
    """A `CellModel` as a `PageModel`: no click depends on another click of the page.

    Attributes:
        of: the model of cells.
    """

    of: CellModel

    statistics = page.CELLS

    @property
    def parts(self) -> Mapping[str, str]:
        return self.of.parts

    def conditional(self, parts, clicks):
        return self.marginal(parts).broadcast(clicks.shape)

    def marginal(self, parts):
        logits = {name: chance.logits for name, chance in parts.items()}
        return Chance.from_logits(self.of.click_logit(**logits))

    def of_cells(self, parts):
        return self.marginal(parts)

    def examination(self, parts):
        if "examination" in self.parts:
            return parts["examination"]
        return certain(next(iter(parts.values())).log)

    def truth(self, relevance, positions):
        return self.of.truth(relevance, positions)


class _Counted(IndependentClicks):
    """A model with one part, whose probability is P(click): clicks can be counted."""

    def counts(self, clicks, where):
        return dict.fromkeys(self.parts, (clicks & where, where))


class _Explained(IndependentClicks):
    """A model with `expectations`, which gives each part's posterior: EM can fit it."""

    def expectations(self, chances, clicks, where):
        with np.errstate(divide="ignore", invalid="ignore"):
            given = self.of.expectations(**chances)
        return {
            name: (np.where(clicks, *given[name]) * where, where.astype(float)) for name in given
        }


def as_pages(model: CellModel | page.PageModel) -> page.PageModel:
    """The model itself if it is a `PageModel`, else a `PageModel` around it."""
    if isinstance(model, page.PageModel):
        return model
    if len(model.parts) == 1:
        return _Counted(model)
    return (_Explained if hasattr(model, "expectations") else IndependentClicks)(model)
