"""The optimisers of Optax that a training may name, and their options.

This module does not import Optax, so a configuration is checked before heavy imports. Each
optimiser treats each number alone: a lane's parameters are one vector without layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

from twotowers.errors import InputError, check_choice, nearest

ADAM = ("b1", "b2", "eps", "eps_root", "nesterov")

OPTIMIZERS: dict[str, tuple[str, ...]] = {
    "adagrad": ("initial_accumulator_value", "eps"),
    "adam": ADAM,
    "adamw": ADAM,
    "sgd": ("momentum", "nesterov"),
}
"""Function of Optax -> its options besides `learning_rate` and `weight_decay`."""

DECAYING = {"adamw": 1e-4}
"""Optimiser with a weight decay -> Optax's default of it."""


@dataclass(frozen=True)
class Optimizer:
    """An optimiser by name.

    Attributes:
        name: one of `OPTIMIZERS`.
        options: (name, value) of each option that a configuration sets.

    Example:
        >>> Optimizer.read({"name": "sgd", "momentum": 0.9})
        Optimizer(name='sgd', options=(('momentum', 0.9),))
    """

    name: str = "adamw"
    options: tuple[tuple[str, float | bool], ...] = ()

    @classmethod
    def read(cls, given: str | Mapping | Optimizer, *, field: str = "optimizer") -> Optimizer:
        """The optimiser that a configuration gives: a name, or a mapping of `name` and options.

        Args:
            given: the name or mapping, or an `Optimizer`, which is returned.
            field: its key in messages.
        """
        if isinstance(given, Optimizer):
            return given
        said = {"name": given} if isinstance(given, str) else dict(given)
        name = said.pop("name", None)
        check_choice(name, OPTIMIZERS, field=f"{field}.name")
        for option, value in said.items():
            if option in ("learning_rate", "weight_decay"):
                raise InputError(
                    f"{option!r} is no option of an optimiser",
                    field=field,
                    expected=f"{option!r} as a key of the training, beside 'optimizer'",
                )
            if option not in OPTIMIZERS[name]:
                raise InputError(
                    f"{name!r} has no option {option!r}",
                    field=field,
                    expected=nearest(str(option), OPTIMIZERS[name]),
                )
            if not isinstance(value, Real):
                raise InputError(
                    f"{value!r} is no number",
                    field=f"{field}.{option}",
                    expected="one number; it cannot differ between lanes",
                )
        return cls(name, tuple(sorted(said.items())))


def check_decay(optimizer: Optimizer, decay: float | None) -> None:
    """Raise InputError for a weight decay if the optimiser has none."""
    if optimizer.name not in DECAYING and decay not in (None, 0):
        raise InputError(
            f"{optimizer.name!r} has no weight decay",
            field="weight_decay",
            expected=f"0, or one of the optimisers {', '.join(DECAYING)}",
        )
