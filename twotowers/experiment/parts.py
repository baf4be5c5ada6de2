"""Parts of an experiment that are kinds with options: users, towers, examination, methods, heads.

A part is the name of its kind, alone or with options. Options that its kind allows may be lists,
which are lanes. Their column is named after the part and the option: `tower_dropout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from typing import Annotated, Any

import jax
from flax import nnx
from pydantic import BeforeValidator, InstanceOf, PlainSerializer, ValidationInfo, WithJsonSchema

from twotowers.errors import InputError, check_range, nearest
from twotowers.experiment.fields import as_tuple, refused, repeats, several, values_of
from twotowers.experiment.kinds import Kind, find, kind_of, kinds
from twotowers.models.protocol import ClickModel
from twotowers.root import ROOT
from twotowers.towers.lane import KNOWN, Lane
from twotowers.towers.two_towers import TOWERS

TABLE = "table"
"""Examination with a parameter per position."""
USER_LANE = "user_kind"
"""The column that tells users of several kinds apart."""


def _where(info: ValidationInfo) -> dict[str, Any]:
    """The paper whose kinds count, and the folder that holds it."""
    context = info.context or {}
    return {"paper": context.get("paper"), "root": context.get("root", ROOT)}


def with_kind(value: str | Callable | Mapping) -> dict[str, Any]:
    """The part as a mapping. A name, class or function alone is that kind with its defaults."""
    return dict(value) if isinstance(value, Mapping) else {"kind": value}


@dataclass(frozen=True)
class Part:
    """A kind with its options.

    Attributes:
        kind: the kind.
        options: its options. A list is one value or lanes, as the kind has it.
    """

    kind: Kind
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the kind."""
        return self.kind.name

    def lanes(self, part: str) -> dict[str, list]:
        """The values of each option that is lanes, by column: `<part>_<option>`."""
        return {
            f"{part}_{option}": values_of(value)
            for option, value in self.options.items()
            if option in self.kind.lanes and several(value)
        }

    def builder(self, part: str) -> Callable:
        """A function that builds the tower or head from its remaining arguments."""
        return partial(self.kind.holds, **_with_lanes(self.options, self.kind.lanes, part))

    def plain(self) -> str | dict[str, Any]:
        """The part as YAML has it: its kind, alone or with options."""
        return {"kind": self.name, **_plain(self.options)} if self.options else self.name


def _plain(options: Any) -> Any:
    if isinstance(options, Mapping):
        return {name: _plain(value) for name, value in options.items()}
    return [_plain(each) for each in options] if isinstance(options, list | tuple) else options


def _with_lanes(options: Mapping, may: Sequence[str], part: str) -> dict[str, Any]:
    """The options, with a `Lane` for each list that is lanes."""
    return {
        name: Lane(f"{part}_{name}", tuple(value)) if name in may and several(value) else value
        for name, value in options.items()
    }


def read_part(family: str) -> Callable:
    def read(given: Any, info: ValidationInfo) -> Part:
        if isinstance(given, Part):
            return given
        if not (isinstance(given, str | Mapping) or callable(given)):
            raise refused(f"{given!r} is not allowed", "a kind, alone or with its options")
        options = with_kind(given)
        if "kind" not in options:
            raise refused("'kind' is missing")
        kind = find(family, options.pop("kind"), **_where(info))
        kind.check(options)
        if family in ("towers", "heads"):
            _try(kind, repr(sorted(options.items())), options)
        for name, value in options.items():
            if name in kind.lanes:
                _differ(name, value)
        return Part(kind, options)

    return read


def _differ(name: str, value: Any) -> None:
    """Raise an error for lanes without values, or with the same value twice."""
    if isinstance(value, list) and (not value or repeats(value)):
        raise refused(f"{name!r} is {value!r}", "one value, or a list of different values", name)


_TRIED: dict[tuple, InputError | None] = {}


def _try(kind: Kind, key: str, options: Mapping) -> None:
    """Build a small tower or head without its numbers, which checks the range of its options."""
    if (kind.holds, key) not in _TRIED:
        options = _with_lanes(options, kind.lanes, kind.name)
        try:
            nnx.eval_shape(lambda: kind.holds(2, **options, rngs=nnx.Rngs(0)))
            _TRIED[kind.holds, key] = None
        except InputError as error:
            _TRIED[kind.holds, key] = error
        except jax.errors.JAXTypeError:  # It needs numbers. Its job will tell.
            _TRIED[kind.holds, key] = None
        except (TypeError, ValueError) as error:
            _TRIED[kind.holds, key] = InputError(str(error))
    if (error := _TRIED[kind.holds, key]) is not None:
        raise error


KIND_OR_OPTIONS = WithJsonSchema({"type": ["string", "object"], "required": ["kind"]})
"""What an editor knows of a part: the name of its kind, alone or with options."""
Tower = Annotated[
    InstanceOf[Part],
    BeforeValidator(read_part("towers")),
    PlainSerializer(Part.plain),
    KIND_OR_OPTIONS,
]
"""A tower with its options."""


# Users


@dataclass(frozen=True)
class User:
    """Who clicks: a click model with its constants, or several, which are lanes.

    Attributes:
        kinds: one click model, or several.
        constants: of all of them; a list is lanes.
        several: whether the kinds are lanes.
    """

    kinds: tuple[Kind, ...]
    constants: Mapping[str, Any] = field(default_factory=dict)
    several: bool = False

    @property
    def lanes(self) -> dict[str, list]:
        """The values of each lane column."""
        found = {USER_LANE: [kind.name for kind in self.kinds]} if self.several else {}
        return found | {
            name: [float(each) for each in value]
            for name, value in self.constants.items()
            if several(value)
        }

    def each(self) -> Iterator[tuple[dict[str, Any], ClickModel]]:
        """Each user, with the values of the columns that differ between users."""
        lanes = self.lanes
        for values in product(*lanes.values()):
            own = dict(zip(lanes, values, strict=True))
            yield own, self.of(own)

    def of(self, lane: Mapping[str, Any]) -> ClickModel:
        """The user of a lane."""
        name = lane.get(USER_LANE, self.kinds[0].name)
        (kind,) = (kind for kind in self.kinds if kind.name == name)
        return kind.holds(**{name: lane.get(name, value) for name, value in self.constants.items()})

    def plain(self) -> str | dict[str, Any]:
        """The user as YAML has it."""
        names = [kind.name for kind in self.kinds]
        kind = names if self.several else names[0]
        return {"kind": kind, **_plain(self.constants)} if self.constants or self.several else kind


def _read_user(given: Any, info: ValidationInfo) -> User:
    if isinstance(given, User):
        return given
    where = _where(info)
    if isinstance(given, ClickModel):
        return User((kind_of("models", type(given)),), asdict(given))
    if not (isinstance(given, str | Mapping) or callable(given)):
        raise refused(f"{given!r} is not allowed", "a click model, alone or with its constants")
    constants = with_kind(given)
    if "kind" not in constants:
        raise refused("'kind' is missing")
    names = constants.pop("kind")
    _differ("kind", names)
    found = tuple(find("models", name, **where) for name in values_of(names))
    for kind in found:
        kind.check(constants)
    for name, value in constants.items():
        for number in values_of(value):
            check_range(number, field=name, low=-1e9, high=1e9)
        _differ(name, value)
    user = User(found, constants, several(names))
    for _ in user.each():
        pass  # which checks the range of constants
    return user


UserField = Annotated[
    InstanceOf[User], BeforeValidator(_read_user), PlainSerializer(User.plain), KIND_OR_OPTIONS
]
"""A click model of twotowers/models/ or of the paper's models/, and its constants."""


# Examination


@dataclass(frozen=True)
class Examination:
    """The examination part: a table, what the simulated user has, or a tower of positions.

    Attributes:
        kind: `TABLE`, `KNOWN`, or the tower.
        dropout: of its logits while training, a rate or lanes.
    """

    kind: str | Part = TABLE
    dropout: Any = 0.0

    def lanes(self) -> dict[str, list]:
        """The values of each option that is lanes, by column."""
        own = {"examination_dropout": values_of(self.dropout)} if several(self.dropout) else {}
        return own | (self.kind.lanes("examination") if isinstance(self.kind, Part) else {})

    def arguments(self) -> dict[str, Any]:
        """The examination arguments of `twotowers.towers.two_towers.two_towers`."""
        dropout = _with_lanes({"dropout": self.dropout}, ("dropout",), "examination")
        if isinstance(self.kind, Part):
            return {"examination": self.kind.builder("examination"), **dropout}
        return {"examination": None if self.kind == TABLE else KNOWN, **dropout}

    def plain(self) -> str | dict[str, Any]:
        """The part as YAML has it."""
        plain = self.kind.plain() if isinstance(self.kind, Part) else self.kind
        return {**with_kind(plain), "dropout": _plain(self.dropout)} if self.dropout else plain


def _read_examination(given: Any, info: ValidationInfo) -> Examination:
    if isinstance(given, Examination):
        return given
    if not (isinstance(given, str | Mapping) or callable(given)):
        raise refused(f"{given!r} is not allowed", "a kind, alone or with its options")
    options = with_kind(given)
    dropout = options.pop("dropout", 0.0)
    for rate in values_of(dropout):
        check_range(rate, field="dropout", low=0, high=0.99)
    _differ("dropout", dropout)
    name = options.get("kind")
    if name in (TABLE, KNOWN):
        if unknown := [key for key in options if key != "kind"]:
            raise refused(
                f"{name!r} has no parameter {unknown[0]!r}", nearest(unknown[0], ["dropout"])
            )
        return Examination(name, as_tuple(dropout))
    known = [each for each, kind in kinds("towers", **_where(info)).items() if not kind.by_pair]
    if name not in known and not callable(name):
        raise refused(f"{name!r} is unknown", nearest(str(name), [TABLE, KNOWN, *known]))
    return Examination(read_part("towers")(options, info), as_tuple(dropout))


ExaminationField = Annotated[
    InstanceOf[Examination],
    BeforeValidator(_read_examination),
    PlainSerializer(Examination.plain),
    KIND_OR_OPTIONS,
]
"""A `table` with a parameter per position, a tower of positions, or `known`."""


def relevance_tower(tower: Part) -> str | Callable:
    """The relevance tower of a task: the name of a plain one, or a function that builds it."""
    plain = TOWERS.get(tower.name) is tower.kind.holds and not tower.options
    return tower.name if plain else tower.builder("tower")
