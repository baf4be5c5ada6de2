"""Parameters that differ between lanes. No JAX, because the plan imports this.

An option of a method, tower or head that may be a list is annotated with `Lanes`, as in
`dropout: Lanes[float] = 0.0`. A list then comes as a `Lane`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

from twotowers.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Lane:
    """A parameter that differs between lanes.

    Attributes:
        column: its column in the results, and its key in the values of each lane
            (`twotowers.methods.task.Task.each`, `varied` of `twotowers.fitting.gradient.fit`).
        values: all of its values.
    """

    column: str
    values: tuple[Any, ...]


class OneOrSeveral:
    """Lets pydantic read a value, or a list of different values, which becomes a `Lane`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        # A base installation, whose fits have no lanes, has no pydantic.
        from pydantic import AfterValidator, Strict

        one: Any = next(each for each in get_args(source) if each is not Lane)
        many = Annotated[tuple[one, ...], Strict(False)]
        return handler.generate_schema(Annotated[one | many, AfterValidator(_as_lane)])


def _as_lane(value: Any, info: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    if not value or repeats(value):
        expected = "one value, or a list of different values"
        raise InputError(f"is {list(value)!r}", expected=expected)
    return Lane(info.field_name or "", value)


Lanes = Annotated[T | Lane, OneOrSeveral()]
"""A T, or several different ones, which are lanes: values of a parameter that one compiled program
fits at once."""


def repeats(values: Sequence) -> bool:
    """Whether a value occurs twice, also as 1 and 1.0."""
    return any(value in values[:place] for place, value in enumerate(values))


def values_of(value: Any) -> list:
    """All values of a `Lanes` field."""
    return list(value.values) if isinstance(value, Lane) else [value]


def lanes_of(given: dict[str, Any]) -> dict[str, list]:
    """The values of each parameter that is lanes, by its column."""
    return {each.column: list(each.values) for each in given.values() if isinstance(each, Lane)}


KNOWN = "known"
"""Setting of examination: it is that of the simulated user, and not trained."""
