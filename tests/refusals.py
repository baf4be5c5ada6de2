"""Other values in nested mappings, and tables of those that are refused."""

import copy
import re

import yaml


def refusals(table: str) -> list[tuple]:
    """Keys, value and words of each row: `path.of.keys: value -> words | words`.

    A value is YAML, which may go on in an indented line, and None removes the key. '^' in the
    words is the path of the keys.
    """
    rows = re.findall(r"^([^\s#]+): ((?:.|\n )*?)\s+-> (.*)$", table, re.MULTILINE)
    return [
        (path, yaml.safe_load(value), words.replace("^", path).split(" | "))
        for path, value, words in rows
    ]


def put(content, path: str, value):
    """A copy with the value of `path.of.keys` changed, or removed if it is None."""
    content = copy.deepcopy(content)
    inner, *keys = content, *path.split(".")
    for key in keys[:-1]:
        inner = inner[key]
    if value is None:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    return content
