"""Check configuration files against their schemas, with a helpful message for each error.

Needs PyYAML and jsonschema only.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jsonschema

from twotowers import ROOT
from twotowers.errors import InputError, nearest
from twotowers.files.yamls import read_yaml

RENAMED: dict[str, dict[str, str]] = {
    "schema.yaml": {},
    "experiment.schema.yaml": {
        "logs.*.ranker": "logs.*.policy.ranker",
        "logs.*.strengths": "logs.*.policy.strength",
        "logs.*.temperatures": "logs.*.policy.temperature",
        "settings.*.tower": "settings.*.model.tower",
        "settings.*.features": "settings.*.model.features",
        "settings.*.weightings": "settings.*.method.weighting",
        "settings.*.strengths": "settings.*.lanes.strength",
    },
}
"""Old and new names of keys, by schema: {"settings.*.old": "settings.*.new"}.

`*` is any name. Only the last key of an entry is renamed or moved. The `*` of the new key stand
for the same names in the same order.
"""


def validate(content: dict, schema: str, path: str | Path) -> None:
    """Check what a file holds against a schema of config/.

    Args:
        content: the content of the file.
        schema: the schema's file name.
        path: the file, for messages.

    Raises:
        InputError: a renamed key (with the new name), an unknown key (with the nearest valid
            one), or a wrong type or value.
    """
    _check_renamed(content, RENAMED.get(schema, {}), path)
    error = jsonschema.exceptions.best_match(_validator(schema).iter_errors(content))
    if error is None:
        return
    field = ".".join(map(str, error.absolute_path)) or None
    if error.validator == "additionalProperties" and error.schema.get("properties"):
        valid = error.schema["properties"]
        unknown = next(key for key in error.instance if key not in valid)
        raise InputError(
            f"unknown setting {unknown!r}", path=path, field=field, expected=nearest(unknown, valid)
        )
    expected = {
        "enum": lambda: f"one of {', '.join(map(repr, error.validator_value))}",
        "minimum": lambda: f"at least {error.validator_value}",
        "maximum": lambda: f"at most {error.validator_value}",
        "type": lambda: f"a value of type {error.validator_value}",
    }.get(error.validator)
    raise InputError(error.message, path=path, field=field, expected=expected and expected())


@cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(read_yaml(ROOT / "config" / schema))


def _check_renamed(content: dict, renamed: dict[str, str], path: str | Path) -> None:
    for old, new in renamed.items():
        for names in _matches(content, old.split(".")):
            was, now = (key.replace("*", "{}").format(*names) for key in (old, new))
            raise InputError("this key has another name now", path=path, field=was, expected=now)


def _matches(content: object, keys: list[str]) -> Iterator[list[str]]:
    """The names at the `*` of a key, for each place in `content` that has the key."""
    if not keys:
        yield []
    elif isinstance(content, dict):
        key, *rest = keys
        for name in content if key == "*" else [key] if key in content else []:
            for names in _matches(content[name], rest):
                yield [str(name), *names] if key == "*" else names
