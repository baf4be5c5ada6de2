"""The optimisers of Optax that a training may name.

This module does not import Optax, so a configuration is checked before heavy imports. Each
optimiser treats each number alone: a lane's parameters are one vector without layers.
"""

from __future__ import annotations

from twotowers.errors import InputError

DECAYING = {"adamw": 1e-4}
"""Optimiser with a weight decay -> Optax's default of it."""


def check_decay(optimizer: str, decay: float | None) -> None:
    """Raise InputError for a weight decay if the optimiser has none."""
    if optimizer not in DECAYING and decay not in (None, 0):
        raise InputError(
            f"{optimizer!r} has no weight decay",
            field="weight_decay",
            expected=f"0, or one of the optimisers {', '.join(DECAYING)}",
        )
