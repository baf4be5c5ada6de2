"""Mixtures of click models: each session comes from one of several kinds of user."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module

from twotowers.errors import InputError
from twotowers.models.chances import Chance, certain, log_sum_over, numbers_of
from twotowers.models.names import MODELS
from twotowers.models.protocol import ONCE, ClickModel, PageModel


@dataclass(frozen=True)
class Mixed(PageModel):
    """P(clicks) = sum over m of P(m) P(clicks | model m) (Hager 2026, Eq. 5.12 with temperature 1).

    The models are of the ten click models: `pbm+dbn` for short. The parts `share_1`, `share_2`, ...
    give P(m): `share_m` is the probability of model m if it is none of those before it, so P(2) =
    (1 - share_1) share_2, and the last model has the rest. The temperature of Eq. 5.12 divides the
    models' log-likelihoods. With any value other than 1 the sum is no likelihood and gives no click
    probability, so it is 1 here. A part that several models have and do not share is one per model:
    model m has `examination_m`.

    Attributes:
        models: their names, two or more.
        shared: names of parts that are the same for all models which have them; () if none is.

    Example:
        >>> list(Mixed(["dcm", "dbn"]).parts)
        ['attraction', 'continuation_1', 'satisfaction', 'continuation_2', 'share_1']
        >>> list(Mixed(["pbm", "dctr"], shared=[]).parts)
        ['attraction_1', 'examination', 'attraction_2', 'share_1']
    """

    models: Sequence[str]
    shared: Sequence[str] = field(default=("attraction",), kw_only=True)

    def __post_init__(self):
        known = {**MODELS, **{name: name for name in MODELS.values()}}
        if len(self.models) < 2 or not {*self.models} <= {*known}:
            raise InputError(
                f"{list(self.models)}",
                field="models",
                expected=f"two or more of {', '.join(MODELS)}",
            )
        # JSON and YAML have lists, and a model is compared by its hash.
        for name in ("models", "shared"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for part in self.shared:
            kinds = {model.parts[part] for model in self.components if part in model.parts}
            if len(kinds) != 1:
                raise InputError(
                    f"{part} is {' and '.join(f'one per {kind}' for kind in sorted(kinds))}"
                    if kinds
                    else f"no model has the part {part}",
                    field="shared",
                    expected="parts that the models have in one kind",
                )

    @cached_property
    def components(self) -> tuple[ClickModel, ...]:
        """The models."""
        return tuple(map(_model, self.models))

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts of all models, and the shares."""
        kinds = {}
        for model, names in zip(self.components, self._names(), strict=True):
            kinds |= {names[part]: kind for part, kind in model.parts.items()}
        return kinds | {f"share_{m}": ONCE for m in range(1, len(self.components))}

    @property
    def gaps(self) -> bool:
        """Whether all models allow gaps."""
        return all(model.gaps for model in self.components)

    def _names(self) -> list[dict[str, str]]:
        """For each model, its own name of a part -> the mixture's."""
        models = Counter(part for model in self.components for part in model.parts)
        return [
            {
                part: part if part in self.shared or models[part] == 1 else f"{part}_{number}"
                for part in model.parts
            }
            for number, model in enumerate(self.components, start=1)
        ]

    def conditional(self, parts, clicks):
        numbers, chances, weights = numbers_of(clicks), [], []
        for weight, model, own in self._each(parts):
            chance = model.conditional(own, clicks).broadcast(clicks.shape)
            observed = numbers.where(clicks, chance.log, chance.other)
            # Not `cumsum - observed`: what is impossible would swamp what is above it.
            first = numbers.zeros_like(observed[..., :1])
            above = numbers.cumsum(observed[..., :-1], axis=-1)
            above = numbers.concatenate([first, above], axis=-1)
            chances.append(chance)
            weights.append(weight + above)
        return _mean(chances, weights)

    def marginal(self, parts):
        return self._mean_of(parts, lambda model, own: model.marginal(own))

    def examination(self, parts):
        return self._mean_of(parts, lambda model, own: model.examination(own))

    def relevance(self, parts):
        """Log-odds of attraction. If models do not share it, of its mean over those that have one,
        weighted by P(m)."""
        if "attraction" in parts:
            return parts["attraction"].logits
        return self._mean_of(parts, lambda model, own: own.get("attraction")).logits

    def _mean_of(self, parts, chance: Callable) -> Chance:
        """The mean of a chance, weighted by P(m), over the models that have it."""
        weighted = [(chance(model, own), weight) for weight, model, own in self._each(parts)]
        return _mean(*zip(*(each for each in weighted if each[0] is not None), strict=True))

    def _each(self, parts):
        """ln P(m), model and the model's parts, for each m."""
        left = certain(parts["share_1"].log)
        for number, names in enumerate(self._names(), start=1):
            model = self.components[number - 1]
            own = {part: parts[name] for part, name in names.items()}
            share = parts.get(f"share_{number}")
            yield (left.log if share is None else left.log + share.log), model, own
            if share is not None:
                left = left & ~share


def _mean(chances: Sequence[Chance], weights: Sequence) -> Chance:
    """The weighted mean of chances, from the logarithms of weights that need not sum to 1."""
    numbers = numbers_of(weights[0])

    def stacked(each) -> object:
        return numbers.stack(numbers.broadcast_arrays(*each), axis=-1)

    total = log_sum_over(stacked(weights))
    sums = (
        log_sum_over(stacked([w + log for w, log in zip(weights, column, strict=True)])) - total
        for column in zip(*chances, strict=True)
    )
    return Chance(*sums)


def _model(name: str) -> ClickModel:
    module = import_module(f"twotowers.models.{MODELS.get(name, name)}")
    (kind,) = (
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, ClickModel)
        and each.__module__ == module.__name__
    )
    return kind()
