"""The formats that a click log may come in, and the settings of each, by their syntax trees.

A configuration is checked where nothing heavy is imported, so readers are not: `formats.py` says
which function reads a format, and the function's parameters are the settings.
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
"""Parameters that nobody sets for a data set: its log is one part, and has no lanes."""


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
"""From a parameter's annotation to what a configuration may say there, and that in words."""


def check_settings(format: str, settings: Any, field: str) -> None:
    """Raise InputError unless `settings` are some that the reader of a format has.

    Which values are in range, the reader says when it starts.

    Args:
        format: of a log, or any other, which has none.
        settings: as a configuration has them.
        field: whose they are, for messages.
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
    """Per format the settings that a data set may give its reader, each with its annotation."""
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
    """The parameters of a function of a module; of the table's own if None."""
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
