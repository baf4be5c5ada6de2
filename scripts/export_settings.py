"""The classes of settings -> schemas for editors, and the reference of all keys.

`python -m scripts.export_settings` writes config/*.schema.json and docs/settings.md. A test checks
that they are as the classes have them.
"""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from twotowers.experiment.config import RunConfig
from twotowers.experiment.matrix import MATRIX
from twotowers.experiment.paper import PaperFile
from twotowers.files.artefacts import atomic

SCHEMAS = {"config.schema.json": RunConfig, "experiment.schema.json": PaperFile}
REFERENCE = Path("docs/settings.md")
HEAD = """\
# All keys of the configuration

`config.yaml` says what is run, a paper's `experiment.yaml` what the paper consists of. A key in
bold is required; brackets have the default. A kind may have options, as in `{kind: em, prior: 2}`.
"One or several": a list is [lanes](glossary.md).
Editors show whole descriptions, from [config.schema.json](../config/config.schema.json) and
[experiment.schema.json](../config/experiment.schema.json). `python -m scripts.export_settings`
makes all three from the classes in `twotowers/experiment/`.
"""


def main() -> None:
    for path, text in files().items():
        with atomic(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def files() -> dict[Path, str]:
    """The text of each file."""
    schemas = {
        Path("config", name): json.dumps(schema_of(kind), indent=1, ensure_ascii=False) + "\n"
        for name, kind in SCHEMAS.items()
    }
    return {**schemas, REFERENCE: "\n".join([HEAD, *reference()]) + "\n"}


class Keys(GenerateJsonSchema):
    """Without the fields that the program sets, which a configuration does not have."""

    def field_is_present(self, field: Any) -> bool:
        return not field.get("serialization_exclude")


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a class, in which a part of a paper may be named instead."""
    schema = kind.model_json_schema(by_alias=True, schema_generator=Keys)
    if kind is PaperFile:
        setting = schema["$defs"]["Setting"]
        for name in ("log", "training"):
            named = setting["properties"][name]
            setting["properties"][name] = {"type": "string", "description": named["description"]}
        _add_matrix(setting, schema["$defs"]["Model"])
        schema["$defs"]["SimulatedLog"]["required"].remove("sessions")  # The scale may have them.
    return schema


def _add_matrix(setting: dict[str, Any], model: dict[str, Any]) -> None:
    """Add what `twotowers.experiment.matrix.expanded` takes out before the class sees it."""
    setting["properties"][MATRIX] = {
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": "array", "minItems": 1},
                {"type": "object", "minProperties": 1, "additionalProperties": {"type": "object"}},
            ]
        },
        "description": "By key, a list of its values, or parts of settings by name: the entry "
        "stands for a setting for each of their combinations. Its name has the keys in braces.",
    }
    # A matrix may have what a setting, or its model, must have. `then` without `if` checks nothing.
    setting["then"], model["then"] = (
        {"required": each.pop("required")} for each in (setting, model)
    )
    setting["then"]["properties"] = {"model": model["then"]}
    setting["if"] = {"not": {"required": [MATRIX]}}


def reference() -> Iterator[str]:
    """A section per class, with a line for each of its keys."""
    seen: dict[str, str] = {}
    for title, kind in (("config.yaml", RunConfig), ("papers/*/experiment.yaml", PaperFile)):
        yield f"\n## {title}\n"
        schema = schema_of(kind)
        yield from _keys(schema, title, seen)
        for name, each in sorted(schema.get("$defs", {}).items()):
            if "properties" in each:
                yield f"\n### {name}\n"
                yield f"{_first_sentence(each)}\n"
                yield from _keys(each, name, seen)


def _keys(schema: Mapping[str, Any], section: str, seen: dict[str, str]) -> Iterator[str]:
    """A line per key. Keys that are described alike, here or in the same other section, share one.

    `seen` has the section of each description; new ones are added.
    """
    required = schema.get("required", schema.get("then", {}).get("required", []))
    lines: dict[str, list[str]] = {}
    for key, each in schema["properties"].items():
        name = f"**`{key}`**" if key in required else f"`{key}`"
        values = f"{_words(each)}{'' if key in required else _default(each)}".strip()
        text = f"{values}{'. ' if values else ''}{_first_sentence(each)}"
        if (other := seen.setdefault(f"{name}: {text}", section)) != section:
            text = f"as in [{other}](#{other.lower()})."
        lines.setdefault(text, []).append(name)
    yield from (f"- {', '.join(names)}: {text}".rstrip() for text, names in lines.items())


def _first_sentence(each: Mapping[str, Any]) -> str:
    """The first sentence of a description; the schemas have the whole."""
    text = inspect.cleandoc(each.get("description", "")).replace("\n", " ")
    return re.split(r"(?<!Eq\.)(?<!al\.)(?<=\.) (?=[A-Z])", text)[0]


def _default(each: Mapping[str, Any]) -> str:
    value = each.get("default")
    return "" if value in (None, {}, []) else f" (`{json.dumps(value)}`)"


KINDS = {"integer": "integer", "number": "number", "string": "", "boolean": ""}
"""What a value is. Text and truth values need no word: a default or the sentence shows them."""
LIMITS = {"minimum": "≥", "exclusiveMinimum": ">"}


def _words(each: Mapping[str, Any]) -> str:
    """The values of a key, in words."""
    if "$ref" in each:
        name = each["$ref"].split("/")[-1]
        return f"[{name}](#{name.lower()})"
    if "enum" in each or "const" in each:
        return ", ".join(f"`{value}`" for value in each.get("enum", [each.get("const")]))
    options = each.get("anyOf") or each.get("oneOf")
    if options:
        options = [option for option in options if option.get("type") != "null"]
        arrays = [option for option in options if option.get("type") == "array"]
        if len(options) == 2 and arrays and options[0] == arrays[0].get("items"):
            return f"{_words(options[0])}; one or several"
        if len(options) == 1:
            return _words(options[0])
        return " or ".join(dict.fromkeys(_words(option) or "text" for option in options))
    kind = each.get("type")
    if isinstance(kind, list):
        return "a kind"
    if kind == "array":
        inner = each.get("items", {})
        return f"list of {_words(inner)}".removesuffix(" of ") if inner else "list"
    if kind == "object":
        inner = each.get("additionalProperties")
        words = _words(inner) if isinstance(inner, Mapping) and inner else ""
        return f"by name: {words}" if words else "by name"
    if "maximum" in each:
        return f"{each.get('minimum', each.get('exclusiveMinimum', 0)):g} to {each['maximum']:g}"
    limits = [f"{word}{each[limit]:g}" for limit, word in LIMITS.items() if limit in each]
    return limits[0] if limits else KINDS.get(kind, "any value")


if __name__ == "__main__":
    main()
