"""What a configuration may name, found by its file: models, methods, towers, heads and drawings.

A click model is a file of `twotowers/models/`, or of a paper's `models/`, that holds a class
derived from `CellModel`; a method is a file of `methods/` that holds a function
`fit(task, *, ...)`. Towers and heads are files of `towers/` and `heads/`, each with a class derived
from `Tower` or `Head`. A drawing is a file of `report/drawings/`, or of a paper's `items/`, with
functions `table` and `draw` or `tex`. The file's name is the name to be used. What a file holds is
read from its syntax tree, so that a Snakefile can check a configuration before anything heavy is
imported: its parameters, and which of them may differ between lanes.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from inspect import signature
from pathlib import Path

from twotowers import ROOT
from twotowers.errors import InputError, nearest

FOLDERS = {
    "models": ("models", "models"),
    "methods": ("methods", "methods"),
    "towers": ("towers", "towers"),
    "heads": ("heads", "heads"),
    "drawings": ("report/drawings", "items"),
}
"""Where each family lies: below twotowers/, and below a paper's folder."""
BASES = {"models": "CellModel", "towers": "Tower", "heads": "Head"}
"""What the class of each family derives from."""
MADE_BY = {"figure": "draw", "table": "tex"}
"""A drawing's function that makes an item of each kind from what its `table` gives."""
LANES = "LANES"
"""Where a module names the parameters that may differ between lanes; a method's, with defaults."""
CHOICES = "CHOICES"
"""Where it names the only values of a parameter."""
TRAINS = "TRAINS"
"""Where a method says, with True, that it trains towers by gradient descent: it needs training
settings, and numbers of these and of its towers may differ between lanes."""


@dataclass(frozen=True)
class Kind:
    """A click model, method, tower, head or drawing, as its file declares it.

    Attributes:
        name: the file's name, without its ending.
        path: the file, relative to the project.
        holds: the class or function; of a drawing, the one that makes the item.
        parameters: from each parameter to its default, as text; None where it has none.
        lanes: the parameters that may differ between lanes.
        choices: from a parameter to its only values, where those are few.
        lists: the parameters whose one value is a list.
        trains: of a method, whether it trains towers by gradient descent.
    """

    name: str
    path: Path
    holds: str
    parameters: Mapping[str, str | None]
    lanes: tuple[str, ...]
    choices: Mapping[str, tuple]
    lists: tuple[str, ...] = ()
    trains: bool = False

    @property
    def module(self) -> str:
        return ".".join(self.path.with_suffix("").parts)

    def load(self):
        """The class or function itself."""
        return getattr(import_module(self.module), self.holds)


class Drawing:
    """A drawing with its parameters: `table(results, published)`; `draw(table)` or `tex(table)`.

    Each of these functions is given those of the parameters that it names.
    """

    def __init__(self, kind: Kind, parameters: Mapping):
        module = import_module(kind.module)
        for name in ("table", kind.holds):
            function = getattr(module, name)
            own = parameters.keys() & signature(function).parameters
            setattr(self, name, partial(function, **{key: parameters[key] for key in own}))


def kinds(family: str, paper: str | None = None, root: Path = ROOT) -> dict[str, Kind]:
    """The models, methods, towers, heads or drawings to choose from, by name.

    Args:
        family: of FOLDERS.
        paper: whose own are included; the library's only if None.
        root: the project's folder.
    """
    ours, theirs = FOLDERS[family]
    folders = [Path("twotowers") / ours]
    if paper is not None:
        folders.append(Path("papers") / paper / theirs)
    found = {}
    for folder in folders:
        for path in sorted((root / folder).glob("*.py")):
            kind = _read(family, path.relative_to(root), root)
            if kind is not None:
                found[kind.name] = kind
    return found


def find(family: str, name: str, paper: str | None = None, root: Path = ROOT, **where) -> Kind:
    """The model, method, tower, head or drawing of that name.

    Raises:
        InputError: there is none; the nearest name is offered. `where` (path, field) says whose
            setting it is.
    """
    known = kinds(family, paper, root)
    if not isinstance(name, str) or name not in known:
        where.setdefault("field", family.removesuffix("s"))
        raise InputError(f"{name!r} is unknown", expected=nearest(str(name), known), **where)
    return known[name]


def build_model(name: str, paper: str | None = None, **constants):
    """A click model with the given constants.

    Raises:
        InputError: the name or a constant is unknown, or a constant is out of range.
    """
    kind = find("models", name, paper)
    check_parameters(kind, constants)
    return kind.load()(**constants)


def build_drawing(name: str, paper: str, **parameters) -> Drawing:
    """A drawing with the given parameters.

    Raises:
        InputError: the name or a parameter is unknown, or one that it needs is missing.
    """
    kind = find("drawings", name, paper)
    check_parameters(kind, parameters)
    return Drawing(kind, parameters)


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
        if family == "models" and isinstance(node, ast.ClassDef) and _derives(node, family):
            parameters = {
                item.target.id: ast.unparse(item.value) if item.value else None
                for item in node.body
                if isinstance(item, ast.AnnAssign)
                and "ClassVar" not in ast.unparse(item.annotation)
            }
            return Kind(path.stem, path, node.name, parameters, tuple(parameters), {})
        if (
            family in ("towers", "heads")
            and isinstance(node, ast.ClassDef)
            and _derives(node, family)
        ):
            return _module(tree, node, path)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if family == "methods" and "fit" in functions:
        lanes = {key: repr(value) for key, value in _constant(tree, LANES).items()}
        return Kind(
            path.stem,
            path,
            "fit",
            _keywords(functions["fit"]) | lanes,
            tuple(lanes),
            _constant(tree, CHOICES),
            trains=bool(_constant(tree, TRAINS)),
        )
    if family == "drawings" and "table" in functions:
        for name in MADE_BY.values():
            if name in functions:
                parameters = _keywords(functions["table"]) | _keywords(functions[name])
                return Kind(path.stem, path, name, parameters, (), {})
    return None


def _module(tree: ast.Module, node: ast.ClassDef, path: Path) -> Kind:
    """A tower or head: its parameters are the keywords of its `__init__`, but for `rngs`."""
    starts = (
        each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"
    )
    start = next(starts, None)
    parameters = _keywords(start) if start else {}
    parameters.pop("rngs", None)
    lists = tuple(
        argument.arg
        for argument in (start.args.kwonlyargs if start else [])
        if argument.annotation and ast.unparse(argument.annotation).startswith("Sequence")
    )
    lanes, choices = tuple(_constant(tree, LANES)), _constant(tree, CHOICES)
    return Kind(path.stem, path, node.name, parameters, lanes, choices, lists)


def _keywords(node: ast.FunctionDef) -> dict[str, str | None]:
    """The keyword-only parameters of a function, with their defaults as text."""
    arguments = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return {
        argument.arg: ast.unparse(default) if default else None for argument, default in arguments
    }


def _derives(node: ast.ClassDef, family: str) -> bool:
    return any(isinstance(base, ast.Name) and base.id == BASES[family] for base in node.bases)


def _constant(tree: ast.Module, name: str):
    """What a module's constant of that name holds, of plain values; {} without."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            return ast.literal_eval(node.value)
    return {}
