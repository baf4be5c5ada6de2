"""Components with their options: users, towers, examination, methods, heads.

A part is the name of its component, alone or with options. An option that may be lanes may be a
list. Its column is named after the part and the option: `tower_dropout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, InstanceOf, ValidationInfo, WithJsonSchema

from twotowers.errors import InputError, nearest
from twotowers.experiment.components import Component, components, find
from twotowers.experiment.fields import Config, below, config_error, read
from twotowers.models.protocol import PER_DOCUMENT, CellModel, ClickModel
from twotowers.root import ROOT
from twotowers.towers.lane import KNOWN, Lane, Lanes, OneOrSeveral, lanes_of, repeats
from twotowers.towers.parts import Rate
from twotowers.towers.two_towers import TOWERS

READS = ("documents", "positions", "both")
"""What a tower of a part may read: features of documents (or the number of the pair), which parts
per document read by default; the position, with further features of the place, which the other
parts do; or both."""
TABLE = "table"
"""Examination with a parameter per position."""
USER_LANE = "user_kind"
"""The column that tells users of several kinds apart."""
TRAITS = ("TRAINS", "GPU", "RESUMES", "FACTORS", "BIAS_ALONE", "BY_PAIR")
"""What a method's module or a tower's class may say of itself (`twotowers.methods.task`)."""
KIND_OR_OPTIONS = WithJsonSchema({"type": ["string", "object"], "required": ["kind"]})
"""What an editor knows of a part: the name of its component, alone or with options."""


def with_kind(given: Any) -> dict[str, Any]:
    """The part as a mapping. A name, class or function alone has its defaults."""
    if not (isinstance(given, str | Mapping) or callable(given)):
        raise config_error(f"{given!r} is not allowed", "a kind, alone or with its options")
    options = dict(given) if isinstance(given, Mapping) else {"kind": given}
    if "kind" not in options:
        raise config_error("'kind' is missing")
    return options


def find_in(family: str, name: Any, info: ValidationInfo) -> Component:
    """The component of that name, for the paper that is read."""
    context = info.context or {}
    return find(family, name, context.get("paper"), context.get("root", ROOT))


@dataclass(frozen=True)
class Part:
    """A component with its options. A call builds the tower or head, or fits the method.

    Attributes:
        name: of the component.
        holds: its class or function.
        options: a `Lane` each where they are lanes.
        traits: those of TRAITS that it has, and what a method needs.
        reads: of a tower of a part of a click model, one of READS.
    """

    name: str
    holds: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    reads: str = ""

    def __call__(self, *inputs: Any, **given: Any) -> Any:
        return self.holds(*inputs, **self.options, **given)

    def has(self, trait: str) -> bool:
        """Whether it has one of TRAITS."""
        return trait in self.traits

    @property
    def lanes(self) -> dict[str, list]:
        """The values of each option that is lanes, by column."""
        return lanes_of(self.options)

    def named(self, prefix: str) -> Part:
        """The part with columns that begin with its place, such as `tower_dropout`."""
        options = {
            name: replace(each, column=f"{prefix}_{name}") if isinstance(each, Lane) else each
            for name, each in self.options.items()
        }
        return replace(self, options=options)


def read_part(family: str, given: Any, info: ValidationInfo) -> Part:
    """A part from its name, class or function, alone or with options.

    Each option of a method that may be lanes is one, also for one value.
    """
    if isinstance(given, Part):
        return given
    options = with_kind(given)
    own = find_in(family, options.pop("kind"), info)
    if "heads" in options and family == "methods":
        with below("heads"):
            options["heads"] = _read_heads(options["heads"], info)
    checked = read(own.options, options, context=info.context)
    said = own.module if family == "methods" else own.holds
    traits = [trait for trait in TRAITS if getattr(said, trait, False)]
    traits += getattr(said, "NEEDS", ())
    fields = own.options.model_fields.items() if family == "methods" else ()
    several = [name for name, each in fields if OneOrSeveral in map(type, each.metadata)]
    named = {name: getattr(checked, name) for name in [*several, *options]}
    for name in several:
        named[name] = named[name] if isinstance(named[name], Lane) else Lane(name, (named[name],))
    return Part(own.name, own.holds, named, tuple(traits))


Tower = Annotated[
    InstanceOf[Part],
    BeforeValidator(lambda given, info: read_part("towers", given, info)),
    KIND_OR_OPTIONS,
]
"""A tower with its options."""


def read_parts(
    given: Mapping[str, Any], model: ClickModel, info: ValidationInfo
) -> dict[str, Part | str]:
    """The parts of a click model, each a tower and what it reads, `TABLE`, or another part."""
    parts: dict[str, Part | str] = {}
    for part, own in given.items():
        if part not in model.parts:
            raise config_error(f"the model has no part {part!r}", nearest(part, model.parts), part)
        kind = model.parts[part]
        if isinstance(own, str) and (own == TABLE or own in model.parts):
            alike = [name for name, each in model.parts.items() if each == kind and name != part]
            alike += [] if kind == PER_DOCUMENT else [TABLE]
            shares = given.get(own)
            if own not in alike or (isinstance(shares, str) and shares in model.parts):
                wrong = f"{own!r} is no {'table' if own == TABLE else 'part'} that it may have"
                raise config_error(wrong, " or ".join([*map(repr, alike), "a tower"]), part)
            parts[part] = own
            continue
        options = with_kind(own)
        usual = READS[0] if kind == PER_DOCUMENT else READS[1]
        reads = options.pop("reads", usual)
        if reads not in READS:
            raise config_error(f"{reads!r} is unknown", nearest(str(reads), READS), f"{part}.reads")
        tower = replace(read_part("towers", options, info).named(part), reads=reads)
        if tower.has("BY_PAIR") and (reads != READS[0] or kind != PER_DOCUMENT):
            wrong = f"tower {tower.name!r} reads numbers of pairs"
            raise config_error(wrong, "a tower of features or positions", part)
        parts[part] = tower
    return parts


# Methods


def _read_heads(given: Any, info: ValidationInfo) -> tuple[Part, ...]:
    """Auxiliary losses of a method by name, with their options."""
    built = []
    for name, options in read(dict[Any, dict[str, Any] | None], given or {}).items():
        with below(str(name)):
            head = read_part("heads", {"kind": name, **(options or {})}, info)
        built.append(head.named(head.name))
    return tuple(built)


Method = Annotated[
    InstanceOf[Part],
    BeforeValidator(lambda given, info: read_part("methods", given, info)),
    KIND_OR_OPTIONS,
]
"""A method with its options and heads."""


# Users


def combinations(lanes: Mapping[str, Sequence]) -> list[dict[str, Any]]:
    """Each lane of the given columns: a value per column."""
    return [dict(zip(lanes, values, strict=True)) for values in product(*lanes.values())]


@dataclass(frozen=True)
class User:
    """Who clicks: a click model with its constants, or several, which are lanes.

    Attributes:
        models: one click model, or several, which are lanes. All have the same options.
    """

    models: tuple[Part, ...]

    @property
    def lanes(self) -> dict[str, list]:
        """The values of each lane column."""
        names = [each.name for each in self.models]
        return ({USER_LANE: names} if len(names) > 1 else {}) | self.models[0].lanes

    def each(self) -> Iterator[tuple[dict[str, Any], ClickModel]]:
        """Each user, with the values of the columns that differ between users."""
        for own in combinations(self.lanes):
            yield own, self.of(own)

    def of(self, lane: Mapping[str, Any]) -> ClickModel:
        """The user of a lane."""
        name = lane.get(USER_LANE, self.models[0].name)
        (model,) = (each for each in self.models if each.name == name)
        return model.holds(**{name: lane.get(name, each) for name, each in model.options.items()})


def _read_user(given: Any, info: ValidationInfo) -> User:
    if isinstance(given, User):
        return given
    if isinstance(given, ClickModel):
        given = {"kind": type(given), **asdict(given)}
    constants = with_kind(given)
    kinds = constants.pop("kind")
    names = kinds if isinstance(kinds, list | tuple) else [kinds]
    if not names or repeats(names):
        raise config_error(f"'kind' is {kinds!r}", "a name, or a list of different ones", "kind")
    models = []
    for name in names:
        own = find_in("models", name, info)
        checked = read(own.options_of_user, constants, context=info.context)
        options = {each: getattr(checked, each) for each in constants}
        pages = not issubclass(own.holds, CellModel)
        models.append(Part(own.name, own.holds, options, ("PAGES",) if pages else ()))
    user = User(tuple(models))
    for _ in user.each():
        pass  # A model may check its constants.
    return user


def truth_of(user: ClickModel, relevance: np.ndarray, positions: int) -> dict[str, np.ndarray]:
    """The logits of each part of a user, as its `truth` has them."""
    try:
        return user.truth(relevance, positions)
    except NotImplementedError as error:
        expected = "a model with a method `truth`, which says how such users click"
        name = type(user).__name__
        raise InputError(f"{name} is no user", field="user", expected=expected) from error


UserField = Annotated[InstanceOf[User], BeforeValidator(_read_user), KIND_OR_OPTIONS]
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
    dropout: float | Lane = 0.0

    @property
    def lanes(self) -> dict[str, list]:
        """The values of each option that is lanes, by column."""
        own = lanes_of({"dropout": self.dropout})
        return own | (self.kind.lanes if isinstance(self.kind, Part) else {})

    def arguments(self) -> dict[str, Any]:
        """The examination arguments of `twotowers.towers.two_towers.two_towers`."""
        return {"examination": None if self.kind == TABLE else self.kind, "dropout": self.dropout}


class _Dropout(Config):
    dropout: Lanes[Rate] = 0.0


def _read_examination(given: Any, info: ValidationInfo) -> Examination:
    if isinstance(given, Examination | Part):
        return given if isinstance(given, Examination) else Examination(given.named("examination"))
    options = with_kind(given)
    own = {name: options.pop(name) for name in ("dropout",) if name in options}
    dropout = read(_Dropout, own).dropout
    if isinstance(dropout, Lane):
        dropout = replace(dropout, column="examination_dropout")
    name = options.get("kind")
    if name in (TABLE, KNOWN):
        if unknown := [key for key in options if key != "kind"]:
            raise config_error(
                f"{name!r} has no parameter {unknown[0]!r}", nearest(unknown[0], ["dropout"])
            )
        return Examination(name, dropout)
    context = info.context or {}
    towers = components("towers", context.get("paper"), context.get("root", ROOT)).items()
    known = [each for each, tower in towers if not tower.holds.BY_PAIR]
    if isinstance(name, str) and name not in known:
        raise config_error(f"{name!r} is unknown", nearest(name, [TABLE, KNOWN, *known]))
    return Examination(read_part("towers", options, info).named("examination"), dropout)


ExaminationField = Annotated[
    InstanceOf[Examination], BeforeValidator(_read_examination), KIND_OR_OPTIONS
]
"""A `table` with a parameter per position, a tower of positions, or `known`."""


def relevance_tower(tower: Part) -> str | Part:
    """The relevance tower of a task: the name of a plain one, or a part that builds it."""
    plain = TOWERS.get(tower.name) is tower.holds and not tower.options
    return tower.name if plain else tower
