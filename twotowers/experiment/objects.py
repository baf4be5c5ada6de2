"""Settings as the plan writes them and a job takes them: the objects themselves, as JSON.

A job makes the objects again and checks nothing. An object is a mapping whose key "!" names its
class; a class or function is such a mapping without "of".
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from twotowers.root import ROOT, relative


def dumped(value: Any) -> Any:
    """An object as JSON has it."""
    if isinstance(value, Mapping):
        return {str(name): dumped(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [dumped(each) for each in value]
    if isinstance(value, BaseModel):
        usual = {name: each.default for name, each in type(value).model_fields.items()}
        own = {name: each for name, each in value if name not in usual or usual[name] != each}
        return {"!": _name(type(value)), "of": dumped(own)}
    if is_dataclass(value) and not isinstance(value, type):
        own = {each.name: getattr(value, each.name) for each in fields(value)}
        return {"!": _name(type(value)), "of": dumped(own)}
    return {"!": _name(value)} if callable(value) else value


def _name(kind: Any) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def loaded(said: Any) -> Any:
    """The object that `dumped` has written."""
    if isinstance(said, list):
        return tuple(map(loaded, said))
    if not isinstance(said, dict):
        return said
    if "!" not in said:
        return {name: loaded(each) for name, each in said.items()}
    module, _, name = said["!"].partition(":")
    kind: Any = getattr(import_module(module), name)
    if "of" not in said:
        return kind
    own = loaded(said["of"])
    if issubclass(kind, BaseModel):
        return kind.model_construct(**own)
    made = object.__new__(kind)
    vars(made).update(own)
    return made


def files_of(said: Any, root: Path = ROOT) -> Iterator[str]:
    """The files of all classes and functions of an object, relative to the project."""
    if isinstance(said, list | dict):
        for each in said.values() if isinstance(said, dict) else said:
            yield from files_of(each, root)
    if isinstance(said, dict) and "!" in said:
        yield relative(Path(sys.modules[said["!"].partition(":")[0]].__file__ or ""), root)


def shown(said: Any) -> Any:
    """A dumped object as a page shows it: without the names of its classes."""
    if isinstance(said, list):
        return [shown(each) for each in said]
    if not isinstance(said, dict):
        return said
    if "!" not in said:
        return {name: shown(each) for name, each in said.items()}
    if "of" not in said:
        return said["!"].partition(":")[2]
    own = {name: shown(each) for name, each in said["of"].items()}
    if "column" in own:  # a Lane
        return own["values"]
    if "holds" in own:  # a Part
        return {"kind": own["name"], **own["options"]} if own["options"] else own["name"]
    return own
