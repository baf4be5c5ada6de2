"""Mixtures of click models: each session comes from one of several kinds of user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from twotowers.models import page
from twotowers.models.chances import Chance, certain, log_sum_over, numbers_of
from twotowers.models.independent import as_pages
from twotowers.models.protocol import ONCE, CellModel


@dataclass(frozen=True)
class MixtureModel(page.PageModel):
    """P(clicks) = sum over m of P(m) P(clicks | model m) (thesis, Eq. 5.12 with temperature 1).

    Models share parts of the same name. The parts `share_1`, `share_2`, ... give P(m): `share_1`
    is P(1), and `share_m` is the probability of m among the models from m on. The temperature of
    Eq. 5.12 divides the models' log-likelihoods. With any value other than 1 the sum is no
    likelihood and gives no click probability, so it is 1 here.

    A subclass gives `components`.

    Attributes:
        components: the models that are mixed, two or more.
    """

    ABSTRACT: ClassVar = True
    components: ClassVar[Sequence[CellModel | page.PageModel]]

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts of all models, and the shares."""
        found = {}
        for model in self.components:
            found |= dict(model.parts)
        return found | {f"share_{m}": ONCE for m in range(1, len(self.components))}

    def conditional(self, parts, clicks):
        numbers, chances, weights = numbers_of(clicks), [], []
        for weight, model, own in self._each(parts):
            chance = model.conditional(own, clicks).broadcast(clicks.shape)
            observed = numbers.where(clicks, chance.log, chance.other)
            above = numbers.cumsum(observed, axis=-1) - observed
            chances.append(chance)
            weights.append(weight + above)
        return _mean(chances, weights)

    def marginal(self, parts):
        chances, weights = [], []
        for weight, model, own in self._each(parts):
            chances.append(model.marginal(own))
            weights.append(weight)
        return _mean(chances, weights)

    def examination(self, parts):
        chances, weights = [], []
        for weight, model, own in self._each(parts):
            chances.append(model.examination(own))
            weights.append(weight)
        return _mean(chances, weights)

    def _each(self, parts):
        """ln P(m), model and the model's parts, for each m."""
        left = certain(parts["share_1"].log)
        for number, component in enumerate(self.components, start=1):
            model = as_pages(component)
            own = {part: parts[part] for part in model.parts}
            share = parts.get(f"share_{number}")
            yield (left.log if share is None else left.log + share.log), model, own
            if share is not None:
                left = left & ~share


def _mean(chances: list[Chance], weights: list) -> Chance:
    """The weighted mean of chances, from the logarithms of weights that need not sum to 1."""
    numbers = numbers_of(weights[0])

    def stacked(each) -> object:
        return numbers.stack(numbers.broadcast_arrays(*each), axis=-1)

    total = log_sum_over(stacked(weights))
    found = (
        log_sum_over(stacked([w + log for w, log in zip(weights, column, strict=True)])) - total
        for column in zip(*chances, strict=True)
    )
    return Chance(*found)
