"""Optimisers and schedules of Optax, by name or as functions.

Optax is imported where a name is not one of `DECAYS`, so that a configuration is usually checked
before heavy imports. An optimiser sees a lane's parameters as one vector without layers.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from types import FunctionType
from typing import Any

from twotowers.errors import InputError, nearest

DECAYS = {"adagrad": None, "adam": None, "adamw": 1e-4, "sgd": None}
"""Optimiser -> Optax's default of its weight decay, None if it has none."""

Optimizer = str | Callable
"""The name of an optimiser of Optax, or a function of a learning rate that returns one."""


def checked_optimizer(optimizer: Any) -> Optimizer:
    """An optimiser as it was given; InputError if it is none."""
    if callable(optimizer) or optimizer in DECAYS:
        return optimizer
    import optax

    # Those that need a learning rate and nothing else: `lbfgs` wants values of the loss, too.
    known = [
        name
        for name, each in vars(optax).items()
        if isinstance(each, FunctionType | partial) and not name.startswith(("_", "scale_by"))
        if [p.name for p in parameters(each).values() if p.default is p.empty] == ["learning_rate"]
    ]
    if optimizer not in known:
        function = "or a function of the learning rate, such as optax.adam, not optax.adam(1e-3)"
        expected = f"{nearest(str(optimizer), known)}; {function}"
        raise InputError(f"Optax has no optimiser {optimizer!r}", expected=expected)
    return optimizer


def parameters(function: Callable) -> Mapping[str, Any]:
    """Name -> parameter of a function."""
    return signature(function).parameters


def made(optimizer: Optimizer) -> Callable:
    """The function of an optimiser."""
    import optax

    return optimizer if callable(optimizer) else getattr(optax, optimizer)


def decay_of(optimizer: Optimizer) -> float | None:
    """The default of an optimiser's weight decay, None if it has none."""
    if isinstance(optimizer, str) and optimizer in DECAYS:
        return DECAYS[optimizer]
    decay = parameters(made(optimizer)).get("weight_decay")
    return None if decay is None else decay.default


def check_decay(optimizer: Optimizer, decay: float | None) -> None:
    """Raise InputError for a weight decay if the optimiser has none."""
    if decay not in (None, 0) and decay_of(optimizer) is None:
        raise InputError(
            f"{optimizer!r} has no weight decay",
            field="weight_decay",
            expected="0, or an optimiser that has one, such as adamw",
        )


def schedule_of(kind: str, **options: float) -> Callable:
    """The schedule of Optax of this name, a function of the number of steps.

    Its first value is 1, unless `options` say otherwise.

    Example:
        >>> half = schedule_of("linear_schedule", end_value=0.0, transition_steps=10)(5)
        >>> float(half)
        0.5
    """
    import optax

    function = getattr(optax, kind)
    first = {"init_value": 1.0} if "init_value" in parameters(function) else {}
    return function(**first | options)


def checked_schedule(schedule: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schedule as it was given; InputError if it is none."""
    import optax

    kind = schedule.get("kind")
    known = [each for each in vars(optax.schedules) if each.endswith(("_schedule", "_decay"))]
    if kind not in known:
        message = f"Optax has no schedule {kind!r}"
        raise InputError(message, field="kind", expected=nearest(str(kind), known))
    try:
        float(schedule_of(**schedule)(0))
    except (TypeError, ValueError) as error:
        options = ", ".join(parameters(getattr(optax, kind)))
        raise InputError(str(error), expected=f"numbers for {options}") from None
    return schedule
