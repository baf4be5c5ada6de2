"""Settings by matrix: one entry of experiment.yaml for each combination of values or parts.

Nothing here needs the classes of settings, so what only reads names of settings imports little.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from twotowers.errors import InputError
from twotowers.files.yamls import line_of, read_yaml
from twotowers.root import ROOT

MATRIX = "matrix"
"""A key of settings: values, or parts of settings by name, each combination of which is one."""


def item_needs(key: str, root: Path = ROOT) -> dict[str, list[str]]:
    """What each item of a paper needs, at whatever scale: a scale may leave some out."""
    path = root / "papers" / key / "experiment.yaml"
    raw = read_yaml(path)
    name_products(raw, path)
    return {name: list(item["needs"]) for name, item in raw["items"].items()}


def expanded(settings: Mapping[str, Any], path: Path | None = None) -> dict[str, Any]:
    """Settings, with a setting for each combination of a `matrix`.

    A key has a list of its values, or parts of settings by name.

    Example:
        >>> expanded({"{log}-fit": {"matrix": {"log": ["a", "b"]}, "training": "t"}})
        {'a-fit': {'training': 't', 'log': 'a'}, 'b-fit': {'training': 't', 'log': 'b'}}
        >>> parts = {"x": {"log": "a", "model": {"tower": "deep"}}}
        >>> expanded({"{of}-fit": {"matrix": {"of": parts}, "model": {"kind": "additive"}}})
        {'x-fit': {'model': {'kind': 'additive', 'tower': 'deep'}, 'log': 'a'}}
    """
    all_settings = {}
    for name, entry in settings.items():
        own = {name: entry}
        if MATRIX in entry:
            own = _product(name, dict(entry), partial(wrong_at, path, "settings", name))
        if twice := own.keys() & all_settings.keys():
            raise wrong_at(
                path, "settings", name, message=f"{sorted(twice)[0]!r} is declared twice"
            )
        all_settings |= own
    return all_settings


def name_products(raw: Mapping, path: Path) -> None:
    """Where an item or a scale names an entry with a matrix, it means all of its settings."""
    products = {
        name: list(expanded({name: entry}, path))
        for name, entry in raw.get("settings", {}).items()
        if MATRIX in entry
    }
    for item in raw["items"].values():
        item["needs"] = [each for need in item["needs"] for each in products.get(need, [need])]
    for scale in raw["scales"].values():
        scale["settings"] = {
            each: change
            for name, change in scale.get("settings", {}).items()
            for each in products.get(name, [name])
        }


def _product(name: str, entry: dict[str, Any], wrong: Callable) -> dict[str, Any]:
    """The settings of an entry with a matrix, by the name of each."""
    lists = entry.pop(MATRIX)
    if not isinstance(lists, Mapping) or not all(map(_are_choices, lists.values())):
        raise wrong(
            MATRIX,
            message=f"{lists!r} is no matrix",
            expected="a list of names or numbers per key, or parts of settings by name",
        )
    keys = " and ".join(f"{{{key}}}" for key in lists)
    if unknown := [key for key in re.findall(r"{(.*?)}", name) if key not in lists]:
        raise wrong(message=f"the name has {unknown[0]!r}, and the matrix has not", expected=keys)
    cells = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    products = {}
    for cell in cells:
        own = re.sub(r"{(.*?)}", lambda key, cell=cell: str(cell[key[1]]), name)
        products[own] = dict(entry)
        for key, value in cell.items():
            choices = lists[key]
            part = choices[value] if isinstance(choices, Mapping) else {key: value}
            products[own] = _joined(products[own], part)
    if len(products) < len(cells):
        raise wrong(message="the name does not tell all settings apart", expected=keys)
    return products


def _are_choices(choices: Any) -> bool:
    """Whether a key of a matrix has values, or parts of settings."""
    if isinstance(choices, Mapping):
        return bool(choices) and all(isinstance(part, Mapping) for part in choices.values())
    known = isinstance(choices, list) and all(isinstance(v, str | int | float) for v in choices)
    return known and bool(choices)


def _joined(entry: Mapping, part: Mapping) -> dict[str, Any]:
    """A setting with a part of one. Options of a model or a method are joined, too."""
    both = {
        key: {**entry[key], **part[key]}
        for key in entry.keys() & part.keys()
        if isinstance(entry[key], Mapping) and isinstance(part[key], Mapping)
    }
    return {**entry, **part, **both}


def wrong_at(
    path: Path | None, *keys: str, message: str, expected: str | None = None
) -> InputError:
    """The error at a key of nested keys."""
    line = line_of(path, keys) if path else None
    return InputError(message, path=path, line=line, field=".".join(keys), expected=expected)
