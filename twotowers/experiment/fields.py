"""The base of all settings: frozen, typed, no unknown keys; and what its fields may be.

A class of settings derives from `Config`. Its annotations are the types, the text below a field is
its description. Messages, the schemas for editors and the reference of all keys are made from them.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from twotowers.errors import InputError, nearest
from twotowers.files.yamls import file_with, line_of
from twotowers.towers.lane import repeats

T = TypeVar("T")


def config_error(message: str, expected: str | None = None, at: str = "") -> InputError:
    """The error for a value that a validator refuses. Any other InputError will do, too.

    `at` is the key below the validated value, with dots between keys.
    """
    return InputError(message, expected=expected, field=at or None)


@contextmanager
def below(key: str) -> Iterator[None]:
    """Errors of the block, which reads a part of the validated value, are at a key below it."""
    try:
        yield
    except InputError as error:
        at = ".".join(filter(None, [key, error.field]))
        raise config_error(error.message, error.expected, at) from None


class Config(BaseModel):
    """Settings that are checked once, and never change."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        strict=True,
        use_attribute_docstrings=True,
        arbitrary_types_allowed=True,
        populate_by_name=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and cls.model_config["extra"] == "forbid":
            fields = cls.model_fields.items()
            known = {field.alias or name: not field.exclude for name, field in fields}
            for key in given:
                if key not in known:
                    shown = [name for name, is_shown in known.items() if is_shown]
                    expected = nearest(str(key), shown) if shown else "none"
                    raise config_error(f"unknown setting {key!r}", expected, str(key))
        return given

    def plain(self) -> Any:
        """The settings as JSON has them, from which `read` makes them again."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class Options(Config):
    """Options that are made from a signature, which has no text below a field.

    Looking for such texts would take a third of the seconds of a plan.
    """

    model_config = ConfigDict(use_attribute_docstrings=False)


def _different(values: tuple) -> tuple:
    if repeats(values):
        raise config_error(f"is {list(values)!r}", "different values")
    return values


Listed = Annotated[tuple[T, ...], Strict(False)]
"""A list of values, in order."""
Distinct = Annotated[tuple[T, ...], Strict(False), AfterValidator(_different)]
"""A list of different values."""
Positive = Annotated[int, Field(ge=1)]
"""1, 2, ..."""
Seed = Annotated[int, Field(ge=0)]
"""0, 1, 2, ..."""
Seeds = Annotated[Distinct[Seed], Field(min_length=1)]
"""One or more different seeds."""
Share = Annotated[float, Field(ge=0, le=1)]
"""A share, in [0, 1]."""
NotNegative = Annotated[float, Field(ge=0)]
Above0 = Annotated[float, Field(gt=0)]
Scale = Literal["smoke", "laptop", "paper"]


def declare(section: str) -> AfterValidator:
    """Keeps the entries of a section in the validation's context, for `named`."""

    def keep(entries: Any, info: ValidationInfo) -> Any:
        if info.context is not None:
            info.context[section] = entries
        return entries

    return AfterValidator(keep)


def named(section: str) -> BeforeValidator:
    """Takes the entry of a section for its name. A name that the section lacks is refused."""

    def look_up(value: Any, info: ValidationInfo) -> Any:
        known = (info.context or {}).get(section)
        if isinstance(value, Config) or (known is None and not isinstance(value, str)):
            return value
        if not isinstance(value, str) or value not in (known or {}):
            raise config_error(f"{value!r} is not declared", nearest(str(value), known or {}))
        return known[value]

    return BeforeValidator(look_up)


def read(
    kind: Any,
    given: Any,
    *,
    path: str | Path | Sequence[str | Path] | None = None,
    context: dict | None = None,
    line: Callable[[list], int | None] | None = None,
) -> Any:
    """Settings of a kind, which pydantic knows, from plain values, such as those of a YAML file.

    `context` is what validators know besides: paper, root, and the sections that are declared. For
    messages, `path` is the file, or several, later ones of which override; `line` gives the line of
    a key of nested keys, `line_of` of the file if absent.

    Example:
        >>> read(Listed[Positive], [1, 0])
        Traceback (most recent call last):
        twotowers.errors.InputError: 1: 0 is not allowed (expected at least 1)
    """
    try:
        return TypeAdapter(kind).validate_python(given, context=context)
    except ValidationError as error:
        message, expected, keys = _explained(error, given)
    if path is not None and not isinstance(path, str | Path):
        path = file_with(path, keys)
    if line is None and path is not None and Path(path).is_file():
        line = partial(line_of, path)
    raise InputError(
        message,
        path=path,
        line=line(keys) if line else None,
        field=".".join(map(str, keys)) or None,
        expected=expected,
    )


def _explained(error: ValidationError, given: Any) -> tuple[str, str | None, list]:
    """Message, what was expected, and keys of the first error.

    Of alternatives, it is the error of the one that the values come nearest to.
    """
    reported = error.errors(include_url=False)
    # Of the errors at one place, the alternatives of a union, the one that got furthest: it is
    # the longest, and says more than that the type is another.
    errors = [(_keys(given, each["loc"]), each) for each in reported]
    first = errors[0][0]
    size = len(first)
    rivals = [one for one in errors if one[0][:size] == first[: len(one[0])]]
    keys, best = max(
        rivals, key=lambda one: (len(one[0]), not one[1]["type"].endswith("_type"), _fits(one[1]))
    )
    context = best.get("ctx", {})
    kind, value = best["type"], best["input"]
    if isinstance(own := context.get("error"), InputError):
        where = f"{own.path}: " if own.path else ""
        message, expected = f"{where}{own.message}", own.expected
        keys = [*keys, *filter(None, (own.field or "").split("."))]
    elif kind == "union_tag_invalid":
        known = re.findall(r"'([^']+)'", context["expected_tags"])
        message, expected = f"{context['tag']!r} is unknown", nearest(context["tag"], known)
    elif kind == "union_tag_not_found":
        message, expected = f"{context['discriminator']} is missing", None
    elif kind == "missing":
        message, expected = f"{best['loc'][-1]!r} is missing", None
    else:
        shown = list(value) if isinstance(value, tuple) else value
        message = f"{shown!r} is not allowed"
        names = re.findall(r"'([^']+)'", context["expected"]) if kind == "literal_error" else []
        usual = EXPECTED[kind].format(**context) if kind in EXPECTED else best["msg"]
        expected = nearest(str(value), names) if names else usual
    return message, expected, keys


def _keys(given: Any, loc: tuple) -> list:
    """The part of an error's place that are keys of the values; the rest names alternatives."""
    keys, at = [], given
    for key in loc:
        listed = isinstance(at, list | tuple) and isinstance(key, int)
        if listed or (isinstance(at, Mapping) and key in at):
            keys.append(key)
            at = at[key]
        elif isinstance(at, Config) and key in type(at).model_fields:
            keys.append(key)
            at = getattr(at, key)
    return keys


def _fits(error: Mapping) -> bool:
    """Whether an error is of the alternative that the value's type suggests."""
    is_list = isinstance(error["input"], list | tuple)
    return is_list == (error["type"] in ("tuple_type", "list_type"))


EXPECTED = {
    "greater_than_equal": "at least {ge:g}",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "at most {le:g}",
    "less_than": "less than {lt:g}",
    "literal_error": "{expected}",
    "too_short": "at least {min_length} of them",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "string_pattern_mismatch": "text like {pattern}",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
"""What was expected, by pydantic's type of error."""
