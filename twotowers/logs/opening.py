"""The formats of click logs, each a file of `twotowers/logs/formats/`, and logs opened by them.

A format's file has a function `read(path, *, ...)`, whose parameters are its settings. Its constant
`LAYOUT` says in words what a row of such a log is, and `COUNTED = True` that it is a cell. No list
is kept: a new file is a new format.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from twotowers.errors import InputError, check_choice, nearest
from twotowers.files.frames import Source
from twotowers.logs.seen_rule import further_of, only_seen
from twotowers.logs.sessions import Stream

FOLDER = Path(__file__).with_name("formats")
NOT_OF_A_DATA_SET = ("path", "split", "lanes")
"""Parameters that a data set cannot set: its log is one part and has no lanes."""


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
        read: path, settings -> a `Stream` of pages, or of cells.
        layout: a row of the file, in words.
        counted: whether a file holds cells instead of pages.
    """

    read: Callable[..., Stream]
    layout: str
    counted: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """The annotation of each setting of the reader. Formats of pages also have `seen`."""
        parameters = inspect.signature(self.read).parameters.values()
        hints = {each.name: each.annotation for each in parameters if each.name != "path"}
        hints |= {} if self.counted else {"seen": "str"}
        return {
            name: hint if isinstance(hint, str) else inspect.formatannotation(hint)
            for name, hint in hints.items()
        }


def _found(name: str) -> Format:
    module = import_module(f"twotowers.logs.formats.{name}")
    return Format(module.read, module.LAYOUT, getattr(module, "COUNTED", False))


FORMATS = {path.stem: _found(path.stem) for path in sorted(FOLDER.glob("[!_]*.py"))}


def open_log(path: Source, format: str, **settings: Any) -> Stream:
    """A log in any format, as a stream of batches.

    Args:
        path: the file.
        format: one of `FORMATS`.
        settings: of its reader; and for pages `seen`, the rule that `twotowers.logs.seen_rule`
            describes. None is the default.
    """
    check_choice(format, FORMATS, field="format")
    known = FORMATS[format].settings
    settings = {name: value for name, value in settings.items() if value is not None}
    for name in settings:
        if name not in known:
            raise InputError(
                f"format {format!r} has no such setting",
                field=name,
                expected=", ".join(known) or "none",
            )
    if "seen" not in settings:
        return FORMATS[format].read(path, **settings)
    further = further_of(settings.pop("seen"))
    return only_seen(FORMATS[format].read(path, **settings), further)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(map(_is_text, values))


KINDS = {
    "str": (_is_text, "text"),
    "int": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a number"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "Sequence[str]": (_are_texts, "a list of names"),
    "Mapping[str, str]": (
        lambda value: isinstance(value, Mapping) and _are_texts([*value, *value.values()]),
        "a mapping, our name: the file's",
    ),
}
"""For each annotation of a parameter: the check of a value, and what is expected, in words."""


def check_settings(format: str, settings: Any, field: str) -> None:
    """Raise InputError for a setting that the reader of a format does not have.

    The reader itself checks the range of values.

    Args:
        format: the format of a data set. Formats that are not of logs have no settings.
        settings: as in the configuration.
        field: the place of the settings, for messages.
    """
    hints = FORMATS[format].settings if format in FORMATS else {}
    known = {name: hint for name, hint in hints.items() if name not in NOT_OF_A_DATA_SET}
    if not isinstance(settings, Mapping):
        expected = ", ".join(known) or "none"
        raise InputError(f"{settings!r} is not a mapping", field=field, expected=expected)
    for name, value in settings.items():
        if name not in known:
            raise InputError(
                f"format {format!r} has no setting {name!r}",
                field=field,
                expected=nearest(str(name), known) if known else "none",
            )
        fits, expected = KINDS.get(known[name].removesuffix(" | None"), (lambda _: True, ""))
        if value is not None and not fits(value):
            raise InputError(
                f"{value!r} is not allowed", field=f"{field}: {name}", expected=expected
            )
    if settings.get("seen") is not None:
        further_of(settings["seen"])
