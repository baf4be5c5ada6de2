"""Tables of refused values: `path.of.keys: value -> words | words` on a line."""

from __future__ import annotations

import re

import yaml


def refusals(table: str) -> list[tuple]:
    """Keys, value and words of each row.

    A value is YAML, and None removes the key. '^' in the words is the path of the keys.
    """
    rows = re.findall(r"^([^\s#]+): ([^\n]*?)\s+-> (.*)$", table, re.MULTILINE)
    return [
        (path.split("."), yaml.safe_load(value), words.replace("^", path).split(" | "))
        for path, value, words in rows
    ]
