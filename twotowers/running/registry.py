"""The click models and methods that a configuration may name, found by their files.

A click model is a file of `twotowers/models/`, or of a paper's `models/`, that holds a class
derived from `CellModel`; a method is a file of `twotowers/methods/`, or of a paper's `methods/`,
that holds a function `fit(task, *, ...)`. The file's name is the name to be used. What a file
holds is read from its syntax tree, so that a Snakefile can check a configuration before anything
heavy is imported: its parameters, and which of them may differ between lanes.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from twotowers import ROOT
from twotowers.errors import InputError, nearest

BASE = "CellModel"
LANES = "LANES"
"""Where a method's module names the parameters that may differ between lanes, with defaults."""
CHOICES = "CHOICES"
"""Where it names the only values of a parameter."""


@dataclass(frozen=True)
class Kind:
    """A click model or method, as its file declares it.

    Attributes:
        name: the file's name, without its ending.
        path: the file, relative to the project.
        holds: the class or function.
        parameters: from each parameter to its default, as text; None where it has none.
        lanes: the parameters that may differ between lanes.
        choices: from a parameter to its only values, where those are few.
    """

    name: str
    path: Path
    holds: str
    parameters: Mapping[str, str | None]
    lanes: tuple[str, ...]
    choices: Mapping[str, tuple]

    @property
    def module(self) -> str:
        return ".".join(self.path.with_suffix("").parts)

    def load(self):
        """The class or function itself."""
        return getattr(import_module(self.module), self.holds)


def kinds(family: str, paper: str | None = None, root: Path = ROOT) -> dict[str, Kind]:
    """The models or methods to choose from, by name.

    Args:
        family: "models" or "methods".
        paper: whose own are included; the library's only if None.
        root: the project's folder.
    """
    folders = [Path("twotowers") / family]
    if paper is not None:
        folders.append(Path("papers") / paper / family)
    found = {}
    for folder in folders:
        for path in sorted((root / folder).glob("*.py")):
            kind = _read(family, path.relative_to(root), root)
            if kind is not None:
                found[kind.name] = kind
    return found


def find(family: str, name: str, paper: str | None = None, root: Path = ROOT, **where) -> Kind:
    """The model or method of that name.

    Raises:
        InputError: there is none; the nearest name is offered. `where` (path, field) says whose
            setting it is.
    """
    known = kinds(family, paper, root)
    if name not in known:
        where.setdefault("field", family.removesuffix("s"))
        raise InputError(f"{name!r} is unknown", expected=nearest(str(name), known), **where)
    return known[name]


def model_names(paper: str | None = None) -> list[str]:
    """The names of all click models."""
    return list(kinds("models", paper))


def build_model(name: str, paper: str | None = None, **constants):
    """A click model with the given constants.

    Raises:
        InputError: the name or a constant is unknown, or a constant is out of range.
    """
    kind = find("models", name, paper)
    check_parameters(kind, constants)
    return kind.load()(**constants)


def check_parameters(kind: Kind, given: Mapping, **where) -> None:
    """Raise InputError for a parameter that the kind lacks, or that it needs and is not given."""
    field = where.pop("field", kind.name)
    for name in given:
        if name not in kind.parameters:
            raise InputError(
                f"{kind.name!r} has no parameter {name!r}",
                field=field,
                expected=nearest(name, kind.parameters) if kind.parameters else "none",
                **where,
            )
    for name, default in kind.parameters.items():
        if default is None and name not in given:
            raise InputError(f"{kind.name!r} needs {name!r}", field=field, **where)
    for name, choices in kind.choices.items():
        values = given.get(name, choices[0])
        for value in values if isinstance(values, list) else [values]:
            if value not in choices:
                expected = nearest(str(value), choices)
                raise InputError(
                    f"{value!r} is unknown", field=f"{field}.{name}", expected=expected, **where
                )


@cache
def _read(family: str, path: Path, root: Path) -> Kind | None:
    tree = ast.parse((root / path).read_text(encoding="utf-8"), filename=str(path))
    for node in tree.body:
        if family == "models" and isinstance(node, ast.ClassDef) and _derives(node):
            parameters = {
                item.target.id: ast.unparse(item.value) if item.value else None
                for item in node.body
                if isinstance(item, ast.AnnAssign)
                and "ClassVar" not in ast.unparse(item.annotation)
            }
            return Kind(path.stem, path, node.name, parameters, tuple(parameters), {})
        if family == "methods" and isinstance(node, ast.FunctionDef) and node.name == "fit":
            arguments = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            parameters = {
                argument.arg: ast.unparse(default) if default else None
                for argument, default in arguments
            }
            lanes = {key: repr(value) for key, value in _constant(tree, LANES).items()}
            return Kind(
                path.stem,
                path,
                node.name,
                parameters | lanes,
                tuple(lanes),
                _constant(tree, CHOICES),
            )
    return None


def _derives(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == BASE for base in node.bases)


def _constant(tree: ast.Module, name: str) -> dict:
    """What a module's constant of that name holds, a mapping of plain values; {} without."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            return ast.literal_eval(node.value)
    return {}
