"""The formats of click logs and the settings of each, read from syntax trees.

A configuration is checked without importing anything heavy, so the readers are not imported.
`formats.py` says which function reads a format. The function's parameters are the settings.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from twotowers import ROOT
from twotowers.errors import InputError, nearest

TABLE = Path(__file__).with_name("formats.py")
NAME = "FORMATS"
NOT_OF_A_DATA_SET = ("path", "split", "lanes")
"""Parameters that a data set cannot set: its log is one part and has no lanes."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(map(_is_text, values))


KINDS = {
    "str": (_is_text, "text"),
    "int": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a number"),
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
    known = log_formats().get(format, {})
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


@cache
def log_formats() -> dict[str, dict[str, str]]:
    """For each format the settings of its reader, with their annotations."""
    tree = ast.parse(TABLE.read_text(encoding="utf-8"), filename=str(TABLE))
    modules = {
        alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (table,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == NAME
    )
    found = {}
    for key, value in zip(table.keys, table.values, strict=True):
        reader = value.args[0].id
        found[key.value] = _parameters(reader, modules.get(reader))
    return found


def _parameters(function: str, module: str | None) -> dict[str, str]:
    """The parameters of a function of a module (None: of `formats.py`)."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py") if module else TABLE
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    (found,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function
    )
    return {
        argument.arg: ast.unparse(argument.annotation) if argument.annotation else ""
        for argument in [*found.args.args, *found.args.kwonlyargs]
        if argument.arg not in NOT_OF_A_DATA_SET
    }
