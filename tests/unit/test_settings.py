"""The schemas for editors, and the reference of all keys."""

import jsonschema
import pytest

from scripts.export_settings import SCHEMAS, files, schema_of
from twotowers.files.yamls import read_yaml
from twotowers.root import ROOT

WRITTEN = {
    "config.schema.json": "config.yaml",
    "experiment.schema.json": "papers/*/experiment.yaml",
}


@pytest.mark.parametrize("path", files(), ids=str)
def test_files_are_as_the_classes_have_them(path):
    """`python -m scripts.export_settings` writes them."""
    assert (ROOT / path).read_text(encoding="utf-8") == files()[path]


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_has_a_description(name):
    schema = schema_of(SCHEMAS[name])
    parts = {name: schema, **schema["$defs"]}
    keys = {
        f"{part}.{key}": said
        for part, each in parts.items()
        for key, said in each.get("properties", {}).items()
    }
    refer = {key: parts.get(said.get("$ref", "").split("/")[-1], {}) for key, said in keys.items()}
    assert [
        key
        for key, said in keys.items()
        if not (said.get("description") or refer[key].get("description"))
    ] == []
    assert len(keys) > 10


@pytest.mark.parametrize("name", SCHEMAS)
def test_an_editor_takes_what_a_run_takes(name):
    schema = schema_of(SCHEMAS[name])
    jsonschema.Draft202012Validator.check_schema(schema)
    paths = sorted(ROOT.glob(WRITTEN[name]))
    assert paths
    for path in paths:
        jsonschema.validate(read_yaml(path), schema)
