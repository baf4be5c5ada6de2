"""YAML files: plain values only, of bounded size, and every complaint with file and line."""

from __future__ import annotations

import math
from pathlib import Path

import yaml

from twotowers.errors import InputError

MOST_VALUES = 100_000
"""In a file, with its aliases written out; ours have some hundreds."""


def read_yaml(path: str | Path) -> dict:
    """The mapping in a YAML file; tags that build objects are refused.

    Raises:
        InputError: the file is not YAML, not a mapping, has a key that is no text, or grows
            beyond MOST_VALUES once its aliases are written out.
    """
    text = Path(path).read_bytes()
    try:
        content = yaml.load(text, _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", error)
        raise InputError(
            f"not YAML: {str(problem)[:200]}", path=path, line=mark.line + 1 if mark else None
        ) from error
    except RecursionError:
        raise InputError("not YAML: nested too deeply", path=path) from None
    if not isinstance(content, dict):
        raise InputError(f"holds a {type(content).__name__}", path=path, expected="a mapping")
    if _values(content, {}, path) > MOST_VALUES:
        raise InputError(
            "has aliases that go round in circles, or multiply",
            path=path,
            expected=f"at most {MOST_VALUES:,} values with aliases written out",
        )
    return content


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, whose every complaint is a YAMLError with a line."""

    def construct_object(self, node, deep=False):
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise yaml.constructor.ConstructorError(
                None, None, f"{str(node.value)[:40]!r} is no {node.tag}", node.start_mark
            ) from error

    def flatten_mapping(self, node):
        super().flatten_mapping(node)
        if len(node.value) > MOST_VALUES:
            raise yaml.constructor.ConstructorError(
                None, None, "merged keys multiply", node.start_mark
            )


def _values(content, known: dict[int, float], path: str | Path) -> float:
    """How many values there are with aliases written out; infinite where one holds itself."""
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in known:
        known[id(content)] = math.inf
        inner = content
        if isinstance(content, dict):
            for key in content:
                if not isinstance(key, str):
                    raise InputError(f"the key {str(key)[:40]} is not text", path=path)
            inner = content.values()
        known[id(content)] = 1 + sum(_values(each, known, path) for each in inner)
    return known[id(content)]
