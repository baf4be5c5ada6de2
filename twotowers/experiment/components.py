"""Models, methods, towers, heads, drawings and studies, found by the names of their files.

No list is kept: a new file is a new component. Its options are its keyword-only parameters, or the
fields of a click model, and their annotations say what they may be. A paper's file must not have
the name of one of the library's. Callers from Python may give the class or function itself.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from twotowers.errors import InputError, nearest
from twotowers.models.names import MODELS
from twotowers.root import ROOT, relative

if TYPE_CHECKING:
    from twotowers.experiment.fields import Config


class Family(NamedTuple):
    """Where components of a family are, and what their files hold."""

    ours: str
    """The folder below twotowers/ (which has no studies)."""
    theirs: str
    """The folder below a paper."""
    module: str = ""
    """The module of the base classes, which is imported when it is needed: click models do not need
    JAX."""
    bases: tuple[str, ...] = ()
    """The base classes, which are no components themselves."""
    functions: tuple[str, ...] = ()
    """What a file holds, if it is no class."""
    filled_in: tuple[str, ...] = ()
    """Keyword-only parameters that are no options."""


FAMILIES = {
    "models": Family(
        "models", "models", "models.protocol", bases=("ClickModel", "CellModel", "PageModel")
    ),
    "methods": Family("methods", "methods", functions=("fit",)),
    "towers": Family("towers", "towers", "towers.parts", bases=("Tower",), filled_in=("rngs",)),
    "heads": Family("towers", "heads", "towers.head", bases=("Head",), filled_in=("rngs",)),
    "drawings": Family("report/drawings", "items", functions=("draw", "tex")),
    "studies": Family("studies", "studies", functions=("run",), filled_in=("seed",)),
}
MADE_BY = {"figure": "draw", "table": "tex"}
"""The function of a drawing that makes an item of each kind from its table."""
EXTRAS = ("jax", "flax", "optax", "lightgbm", "sklearn", "matplotlib", "seaborn")
"""Packages that only some components need, and that a base installation lacks."""


@dataclass(frozen=True)
class Component:
    """A click model, method, tower, head, drawing or study, as its file declares it.

    Attributes:
        family: a key of FAMILIES.
        name: the file's name, without its ending.
        module: the file's module.
        holds: the class or function. Of a drawing: `draw` or `tex`.
    """

    family: str
    name: str
    module: ModuleType
    holds: Any

    def source(self, root: Path = ROOT) -> str:
        """The file, relative to the project."""
        return relative(Path(self.module.__file__ or ""), root)

    @cached_property
    def options(self) -> type[Config]:
        """The class of its options, made from its annotations."""
        return self._options(several=False)

    @cached_property
    def options_of_user(self) -> type[Config]:
        """The class of a click model's constants, each of which may be lanes."""
        return self._options(several=True)

    def _options(self, several: bool) -> type[Config]:
        # A base installation, which finds click models, has no pydantic.
        from pydantic import create_model

        from twotowers.experiment.fields import Options
        from twotowers.towers.lane import Lanes

        model, filled_in = self.family == "models", FAMILIES[self.family].filled_in
        options: dict[str, Any] = {}
        for function in [*([self.module.table] if self.family == "drawings" else []), self.holds]:
            start = function.__init__ if inspect.isclass(function) and not model else function
            types = get_type_hints(start, include_extras=True)
            for name, each in inspect.signature(start).parameters.items():
                named = self.family == "methods" and each.default is not each.empty
                named |= model or each.kind is each.KEYWORD_ONLY
                if name not in filled_in and named:
                    own = types.get(name, Any)
                    default = ... if each.default is each.empty else each.default
                    options[name] = (Lanes[own] if several else own), default  # pyrefly: ignore
        return create_model(self.name, __base__=Options, **options)


def find(family: str, name: Any, paper: str | None = None, root: Path = ROOT) -> Component:
    """The model, method, tower, head, drawing or study of that name.

    A class or function in the place of the name is the component itself.
    """
    if callable(name):
        return component_of(family, name)
    known = files(family, paper, root)
    own = _component(family, known[name]) if isinstance(name, str) and name in known else None
    if own is None:
        expected = nearest(str(name), components(family, paper, root))
        if family == "models" and name in MODELS:
            expected = f"{MODELS[name]!r}, its full name"
        raise InputError(f"{name!r} is unknown", expected=expected)
    return own


def component_of(family: str, holds: Any) -> Component:
    """The component that a class or function is. One of a user's own has its name.

    Constants of a method, such as `TRAINS`, are those of the module that defines the function.
    """
    if _bases(family) and not (inspect.isclass(holds) and issubclass(holds, _bases(family))):
        expected = " or ".join(base.__name__ for base in _bases(family))
        raise InputError(f"{holds!r} is not allowed", expected=f"a class derived from {expected}")
    *above, file = holds.__module__.split(".")
    name = file if above and above[0] in ("twotowers", "papers") else holds.__name__
    return Component(family, name, sys.modules[holds.__module__], holds)


def components(family: str, paper: str | None = None, root: Path = ROOT) -> dict[str, Component]:
    """The models, methods, towers, heads, drawings or studies to choose from, by name."""
    every = {name: _component(family, path) for name, path in files(family, paper, root).items()}
    return {name: each for name, each in every.items() if each is not None}


def files(family: str, paper: str | None, root: Path) -> dict[str, Path]:
    """The files that may hold a component, by name."""
    ours, theirs, *_ = FAMILIES[family]
    # A paper outside the project (`root`) uses the library's components, too.
    paths = {path.stem: path for path in sorted((ROOT / "twotowers" / ours).glob("[!_]*.py"))}
    if paper is not None:
        for path in sorted((root / "papers" / paper / theirs).glob("[!_]*.py")):
            if path.stem in paths and _component(family, paths[path.stem]):
                raise InputError(
                    f"{path.stem!r} is one of the library's {family}",
                    path=path,
                    expected="another name of the file",
                )
            paths[path.stem] = path
    return paths


@cache
def _component(family: str, path: Path) -> Component | None:
    """What a file holds; None if it holds nothing of the family, or what it needs is absent."""
    try:
        module = _module(path)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in EXTRAS:
            return None
        raise
    if _bases(family):
        held = [
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            and value.__module__ == module.__name__
            and issubclass(value, _bases(family))
            and not (value.__name__.startswith("_") or vars(value).get("ABSTRACT"))
            and value not in _bases(family)
        ]
    elif family == "drawings" and not hasattr(module, "table"):
        held = []
    else:
        functions = FAMILIES[family].functions
        held = [getattr(module, name) for name in functions if hasattr(module, name)]
    return Component(family, path.stem, module, held[0]) if held else None


@cache
def _bases(family: str) -> tuple[type, ...]:
    own = FAMILIES[family]
    return tuple(getattr(import_module(f"twotowers.{own.module}"), name) for name in own.bases)


@cache
def _module(path: Path) -> ModuleType:
    """The module of a file below a folder of the search path, or of a project elsewhere."""
    parts = path.with_suffix("").parts
    place = max(place for place, part in enumerate(parts) if part in ("twotowers", "papers"))
    folder = str(Path(*parts[:place]))
    if folder not in (*sys.path, str(ROOT)):
        sys.path.append(folder)
    return import_module(".".join(parts[place:]))


def build_model(name: Any) -> Any:
    """A click model, by its name or class, with its defaults."""
    own = find("models", name)
    for parameter, each in inspect.signature(own.holds).parameters.items():
        if each.default is each.empty:
            raise InputError(f"{own.name!r} needs {parameter!r}")
    return own.holds()
