"""Models, methods, towers, heads, drawings and studies, found by the names of their files.

    family    folder of twotowers/, of a paper   what a file holds
    models    models/, models/                   a class derived from `CellModel` or `PageModel`
    methods   methods/, methods/                 a function `fit(task, *, ...)`
    towers    towers/, towers/                   a class derived from `Tower`
    heads     towers/, heads/                    a class derived from `Head`
    drawings  report/drawings/, items/           functions `table`, and `draw` or `tex`
    studies   none, studies/                     a function `run(inputs, *, seed, ...)`

No list is kept: a new file is a new kind. A paper's file must not have the name of one of the
library's. Callers from Python may give the class or function itself (`kind_of`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from twotowers.errors import InputError, check_choice, nearest
from twotowers.models.names import MODELS
from twotowers.root import ROOT
from twotowers.towers.lane import Lane

FOLDERS = {
    "models": ("models", "models"),
    "methods": ("methods", "methods"),
    "towers": ("towers", "towers"),
    "heads": ("towers", "heads"),
    "drawings": ("report/drawings", "items"),
    "studies": ("studies", "studies"),
}
"""The folder of each family: below twotowers/ (which has no studies), and below a paper."""
BASES = {
    "models": ("twotowers.models.protocol", ("ClickModel", "CellModel", "PageModel")),
    "towers": ("twotowers.towers.parts", ("Tower",)),
    "heads": ("twotowers.towers.head", ("Head",)),
}
"""The module and names of the base classes of a family, which are no kinds themselves. They are
imported when they are needed: click models do not need JAX."""
FUNCTIONS = {"methods": ("fit",), "studies": ("run",)}
"""What a file of a family holds, if it is no class."""
MADE_BY = {"figure": "draw", "table": "tex"}
"""The function of a drawing that makes an item of each kind from its table."""
FILLED_IN = ("seed", "rngs")
"""Parameters that no configuration gives."""
EXTRAS = ("jax", "flax", "optax", "lightgbm", "sklearn", "matplotlib", "seaborn")
"""Packages that only some kinds need, and that a base installation lacks."""
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Kind:
    """A click model, method, tower, head, drawing or study, as its file declares it.

    Attributes:
        family: a key of FOLDERS.
        name: the file's name, without its ending.
        module: the file's module.
        holds: the class or function. Of a drawing: `draw` or `tex`.
    """

    family: str
    name: str
    module: ModuleType
    holds: Any

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.module.__file__)

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The default of each parameter, REQUIRED where there is none."""
        if self.family == "models":
            return {each.name: each.default for each in fields(self.holds)}
        functions = [self.holds]
        if self.family == "drawings":
            functions.insert(0, self.module.table)
        found = {}
        for function in functions:
            found |= {name: each.default for name, each in _keywords(function).items()}
        return {name: default for name, default in found.items() if name not in FILLED_IN}

    @cached_property
    def lanes(self) -> tuple[str, ...]:
        """The parameters that may differ between lanes."""
        if self.family == "models":
            return tuple(self.parameters)
        return tuple(name for name, types in self._types.items() if Lane in types)

    @cached_property
    def lists(self) -> tuple[str, ...]:
        """Parameters that take a list as one value: only a list of lists makes lanes."""
        return tuple(
            name
            for name, types in self._types.items()
            if any((get_origin(each) or each) in (list, tuple, Sequence) for each in types)
        )

    @cached_property
    def choices(self) -> Mapping[str, tuple]:
        """The allowed values of parameters that are annotated with a `Literal`."""
        return {
            name: get_args(each)
            for name, types in self._types.items()
            for each in types
            if get_origin(each) is Literal
        }

    @cached_property
    def _types(self) -> Mapping[str, tuple]:
        """The types that each parameter may have, as it is annotated."""
        start = self.holds.__init__ if inspect.isclass(self.holds) else self.holds
        return {
            name: get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
            for name, hint in get_type_hints(start).items()
        }

    @property
    def trains(self) -> bool:
        """Whether a method trains towers by gradient descent."""
        return getattr(self.module, "TRAINS", False)

    @property
    def factors(self) -> bool:
        """Whether a method fits bias factors that are not positions."""
        return getattr(self.module, "FACTORS", False)

    @property
    def bias_features(self) -> bool:
        """Whether a method fits towers of examination that read bias features of pages."""
        return getattr(self.module, "BIAS_FEATURES", False)

    @property
    def bias_alone(self) -> bool:
        """Whether a method estimates bias only, so that documents get no scores."""
        return getattr(self.module, "BIAS_ALONE", False)

    @property
    def pages(self) -> bool:
        """Whether a click model needs whole pages. The others need cells only."""
        return not issubclass(self.holds, import_module("twotowers.models.protocol").CellModel)

    @property
    def by_pair(self) -> bool:
        """Whether a tower reads numbers of query-document pairs, and not features."""
        return self.holds.BY_PAIR

    def check(self, given: Mapping[str, Any], at: str = "") -> None:
        """Raise InputError for an unknown, missing or impossible parameter.

        Args:
            given: the parameters. A list is one value, or lanes.
            at: the key that holds them, for messages.
        """
        for name in given:
            if name not in self.parameters:
                raise InputError(
                    f"{self.name!r} has no parameter {name!r}",
                    field=f"{at}.{name}" if at else name,
                    expected=nearest(name, self.parameters) if self.parameters else "none",
                )
        for name, default in self.parameters.items():
            if default is REQUIRED and name not in given:
                raise InputError(f"{self.name!r} needs {name!r}", field=at or None)
        for name, value in given.items():
            inner = f"{at}.{name}" if at else name
            several = isinstance(value, list | tuple)
            if self.family in ("drawings", "studies"):
                pass  # They look at their lists themselves.
            elif several and name not in (*self.lanes, *self.lists):
                may = ", ".join(self.lanes) or "none of its own"
                raise InputError(
                    f"{name!r} is {list(value)!r}, and cannot differ between lanes of one program",
                    field=inner,
                    expected=f"one value per setting; {self.name!r} takes lists for {may}",
                )
            elif name in self.lists and not several:
                raise InputError(f"{value!r} is not allowed", field=inner, expected="a list")
            if choices := self.choices.get(name):
                for each in value if several else [value]:
                    check_choice(each, choices, field=inner)


def find(family: str, name: Any, paper: str | None = None, root: Path = ROOT) -> Kind:
    """The model, method, tower, head, drawing or study of that name.

    A class or function in the place of the name is the kind itself: see `kind_of`.
    """
    if callable(name):
        return kind_of(family, name)
    known = files(family, paper, root)
    kind = _kind(family, known[name]) if isinstance(name, str) and name in known else None
    if kind is None:
        expected = nearest(str(name), kinds(family, paper, root))
        if family == "models" and name in MODELS:
            expected = f"{MODELS[name]!r}, its full name"
        raise InputError(f"{name!r} is unknown", expected=expected)
    return kind


def kind_of(family: str, holds: Any) -> Kind:
    """The kind that a class or function is. One of a user's own has its name.

    Constants of a method, such as `TRAINS`, are those of the module that defines the function.
    """
    if family in BASES and not (inspect.isclass(holds) and issubclass(holds, _bases(family))):
        expected = " or ".join(base.__name__ for base in _bases(family))
        raise InputError(f"{holds!r} is not allowed", expected=f"a class derived from {expected}")
    *above, file = holds.__module__.split(".")
    name = file if above and above[0] in ("twotowers", "papers") else holds.__name__
    return Kind(family, name, sys.modules[holds.__module__], holds)


def kinds(family: str, paper: str | None = None, root: Path = ROOT) -> dict[str, Kind]:
    """The models, methods, towers, heads, drawings or studies to choose from, by name."""
    found = {name: _kind(family, path) for name, path in files(family, paper, root).items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def files(family: str, paper: str | None, root: Path) -> dict[str, Path]:
    """The files that may hold a kind, by name."""
    ours, theirs = FOLDERS[family]
    # A paper outside the project (`root`) uses the library's kinds, too.
    found = {path.stem: path for path in sorted((ROOT / "twotowers" / ours).glob("[!_]*.py"))}
    if paper is not None:
        for path in sorted((root / "papers" / paper / theirs).glob("[!_]*.py")):
            if path.stem in found and _kind(family, found[path.stem]):
                raise InputError(
                    f"{path.stem!r} is one of the library's {family}",
                    path=path,
                    expected="another name of the file",
                )
            found[path.stem] = path
    return found


@cache
def _kind(family: str, path: Path) -> Kind | None:
    """What a file holds; None if it holds nothing of the family, or what it needs is absent."""
    try:
        module = _module(path)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in EXTRAS:
            return None
        raise
    if family in BASES:
        bases = _bases(family)
        for value in vars(module).values():
            if (
                inspect.isclass(value)
                and value.__module__ == module.__name__
                and issubclass(value, bases)
                and not (value.__name__.startswith("_") or vars(value).get("ABSTRACT"))
                and value not in bases
            ):
                return Kind(family, path.stem, module, value)
        return None
    if family == "drawings" and not hasattr(module, "table"):
        return None
    for name in MADE_BY.values() if family == "drawings" else FUNCTIONS[family]:
        if hasattr(module, name):
            return Kind(family, path.stem, module, getattr(module, name))
    return None


@cache
def _bases(family: str) -> tuple[type, ...]:
    module, names = BASES[family]
    return tuple(getattr(import_module(module), name) for name in names)


@cache
def _module(path: Path) -> ModuleType:
    """The module of a file below a folder of the search path, or of a project elsewhere."""
    parts = path.with_suffix("").parts
    place = max(place for place, part in enumerate(parts) if part in ("twotowers", "papers"))
    folder = str(Path(*parts[:place]))
    if folder not in (*sys.path, str(ROOT)):
        sys.path.append(folder)
    return import_module(".".join(parts[place:]))


def _keywords(function: Any) -> Mapping[str, inspect.Parameter]:
    """The keyword-only parameters of a function, or of a class's start."""
    start = function.__init__ if inspect.isclass(function) else function
    parameters = inspect.signature(start).parameters
    return {name: each for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}


class Drawing:
    """A drawing with its parameters: `table(results, published)`; `draw(table)` or `tex(table)`.

    Each function gets the parameters that it names.
    """

    def __init__(self, kind: Kind, parameters: Mapping):
        for function in (kind.module.table, kind.holds):
            own = parameters.keys() & inspect.signature(function).parameters
            filled = partial(function, **{key: parameters[key] for key in own})
            setattr(self, function.__name__, filled)


def build_model(name: str | type, paper: str | None = None, **constants: float):
    """A click model with the given constants."""
    kind = find("models", name, paper)
    kind.check(constants)
    return kind.holds(**constants)


def build_drawing(name: str, paper: str, **parameters: Any) -> Drawing:
    """A drawing with the given parameters."""
    kind = find("drawings", name, paper)
    kind.check(parameters)
    return Drawing(kind, parameters)


def sources(found: Sequence[Kind], root: Path = ROOT) -> list[str]:
    """The files of some kinds, relative to the project, each once."""
    paths = [kind.path for kind in found]
    # A paper outside the project uses the library's kinds, too.
    homes = [ROOT if path.is_relative_to(ROOT) else root for path in paths]
    relative = (path.relative_to(home) for path, home in zip(paths, homes, strict=True))
    return list(dict.fromkeys(map(str, relative)))
