"""Mixtures of click models that are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module

from twotowers.errors import InputError
from twotowers.models.mixing import MixtureModel
from twotowers.models.names import MODELS
from twotowers.models.protocol import ClickModel


@dataclass(frozen=True)
class Mixed(MixtureModel):
    """A mixture of some of the ten click models: `pbm+dbn` for short (Hager 2026, Listing 5.5).

    Attributes:
        models: their names, two or more.
        shared: names of parts that are the same for all models which have them.

    Example:
        >>> list(Mixed(["pbm", "dbn"]).parts)
        ['attraction', 'examination', 'satisfaction', 'continuation', 'share_1']
        >>> list(Mixed(["pbm", "dctr"], shared=[]).parts)
        ['attraction_1', 'examination', 'attraction_2', 'share_1']
    """

    models: Sequence[str]
    shared: Sequence[str] = field(  # pyrefly: ignore[bad-override]
        default=("attraction",), kw_only=True
    )

    def __post_init__(self) -> None:
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
        super().__post_init__()

    @cached_property
    def components(self) -> tuple[ClickModel, ...]:  # pyrefly: ignore[bad-override]
        """The models."""
        return tuple(map(_model, self.models))


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
