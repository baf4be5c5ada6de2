"""Models, methods, towers, heads, drawings and studies, found by the names of their files.

    family    folder of twotowers/, of a paper   what a file holds
    models    models/, models/                   a class derived from `CellModel` or `PageModel`
    methods   methods/, methods/                 a function `fit(task, *, ...)`
    towers    towers/, towers/                   a class derived from `Tower`
    heads     heads/, heads/                     a class derived from `Head`
    drawings  report/drawings/, items/           functions `table`, and `draw` or `tex`
    studies   none, studies/                     a function `run(inputs, *, seed, ...)`

The parameters of a kind, and which of them may differ between lanes, are read from the file's
syntax tree. So a Snakefile can check a configuration without importing anything heavy.
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
    "studies": ("studies", "studies"),
}
"""The folder of each family: below twotowers/ (which has no studies), and below a paper."""
BASES = {
    "models": ("CellModel", "PageModel", "ChainModel", "SimplifiedModel", "MixtureModel"),
    "towers": ("Tower",),
    "heads": ("Head",),
}
"""The base classes of each family. They are not kinds themselves."""
OF_CELLS = "CellModel"
"""The base class of click models whose sufficient statistics are the counts of cells."""
MADE_BY = {"figure": "draw", "table": "tex"}
"""The function of a drawing that makes an item of each kind from its table."""
LANES = "LANES"
"""A module's constant: the parameters that may differ between lanes. A method gives defaults."""
CHOICES = "CHOICES"
"""A module's constant: the allowed values of a parameter."""
TRAINS = "TRAINS"
FACTORS = "FACTORS"
"""A method's constant: True if it trains towers by gradient descent. It then needs training
settings, whose numbers may differ between lanes, as those of its towers may."""


READS = "READS"
"""Where a tower says, with "pairs", that it reads numbers of query-document pairs, not features."""


@dataclass(frozen=True)
class Kind:
    """A click model, method, tower, head, drawing or study, as its file declares it.

    Attributes:
        name: the file's name, without its ending.
        path: the file, relative to the project.
        holds: the name of the class or function. For a drawing, `draw` or `tex`.
        parameters: the default of each parameter, as text; None if it has none.
        lanes: the parameters that may differ between lanes.
        choices: the allowed values of some parameters.
        lists: the parameters whose single value is a list.
        trains: whether a method trains towers by gradient descent.
        factors: whether a method fits bias factors that are not positions.
        pages: whether a click model needs whole pages. The others need cells only.
        reads: "pairs" if a tower reads numbers of query-document pairs; else None.
    """

    name: str
    path: Path
    holds: str
    parameters: Mapping[str, str | None]
    lanes: tuple[str, ...]
    choices: Mapping[str, tuple]
    lists: tuple[str, ...] = ()
    trains: bool = False
    factors: bool = False
    pages: bool = False
    reads: str | None = None

    @property
    def module(self) -> str:
        return ".".join(self.path.with_suffix("").parts)

    def load(self):
        """The class or function itself."""
        return getattr(import_module(self.module), self.holds)


class Drawing:
    """A drawing with its parameters: `table(results, published)`; `draw(table)` or `tex(table)`.

    Each function gets the parameters that it names.
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
        family: a key of FOLDERS.
        paper: the paper whose own are included; None for the library's only.
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
        InputError: the name is unknown; the nearest one is offered. `where` (path, field) says
            where the name stands.
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
        InputError: the name or a parameter is unknown, or a required one is missing.
    """
    kind = find("drawings", name, paper)
    check_parameters(kind, parameters)
    return Drawing(kind, parameters)


def check_parameters(kind: Kind, given: Mapping, **where) -> None:
    """Raise InputError for an unknown, missing or wrong parameter."""
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
            pages = not any(isinstance(b, ast.Name) and b.id == OF_CELLS for b in node.bases)
            lanes = tuple(parameters)
            return Kind(path.stem, path, node.name, parameters, lanes, {}, pages=pages)
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
            factors=bool(_constant(tree, FACTORS)),
        )
    if family == "studies" and "run" in functions:
        parameters = _keywords(functions["run"])
        parameters.pop("seed", None)
        return Kind(path.stem, path, "run", parameters, (), {})
    if family == "drawings" and "table" in functions:
        for name in MADE_BY.values():
            if name in functions:
                parameters = _keywords(functions["table"]) | _keywords(functions[name])
                return Kind(path.stem, path, name, parameters, (), {})
    return None


def _module(tree: ast.Module, node: ast.ClassDef, path: Path) -> Kind:
    """A tower or head. Its parameters are the keywords of its `__init__`, without `rngs`."""
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
    reads = _constant(tree, READS) or None
    return Kind(path.stem, path, node.name, parameters, lanes, choices, lists, reads=reads)


def _keywords(node: ast.FunctionDef) -> dict[str, str | None]:
    """The keyword-only parameters of a function, with their defaults as text."""
    arguments = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return {
        argument.arg: ast.unparse(default) if default else None for argument, default in arguments
    }


def _derives(node: ast.ClassDef, family: str) -> bool:
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return node.name not in BASES[family] and any(base in BASES[family] for base in bases)


def _constant(tree: ast.Module, name: str):
    """The plain value of a module's constant, or {} if the module has none of that name."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            return ast.literal_eval(node.value)
    return {}
