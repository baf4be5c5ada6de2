"""Renamed keys of configuration files."""

from __future__ import annotations

import pytest

from twotowers import ROOT
from twotowers.errors import InputError
from twotowers.experiment import schemas
from twotowers.experiment.schemas import validate
from twotowers.files.yamls import read_yaml

CONFIG = "schema.yaml"


@pytest.fixture
def renamed(monkeypatch):
    """Made-up renamed keys of config.yaml's schema."""
    table = {
        "size": "scale",
        "datasets.*.path": "datasets.*.folder",
        "datasets.*.sizes.*.valid": "datasets.*.standin.*.validation",
    }
    monkeypatch.setitem(schemas.RENAMED, CONFIG, table)


@pytest.mark.usefixtures("renamed")
@pytest.mark.parametrize(
    ("content", "old", "new"),
    [
        ({"size": "smoke"}, "size", "scale"),
        ({"datasets": {"a": {}, "b": {"path": 1}}}, "datasets.b.path", "datasets.b.folder"),
        (
            {"datasets": {"a": {"sizes": {"smoke": {"valid": 1}}}}},
            "datasets.a.sizes.smoke.valid",
            "datasets.a.standin.smoke.validation",
        ),
        ({"datasets": {2007: {"path": 1}}}, "datasets.2007.path", "datasets.2007.folder"),
    ],
)
def test_a_renamed_key_is_named_with_its_file_and_its_new_name(content, old, new):
    with pytest.raises(InputError) as caught:
        validate(content, CONFIG, "mine.yaml")
    assert str(caught.value) == f"mine.yaml: {old}: this key has another name now (expected {new})"


@pytest.mark.usefixtures("renamed")
@pytest.mark.parametrize("content", [{"datasets": {"size": {}}}, {"datasets": 3}, {"datasets": []}])
def test_what_only_looks_like_a_renamed_key_is_the_schemas_affair(content):
    with pytest.raises(InputError) as caught:
        validate(content, CONFIG, "mine.yaml")
    assert "another name" not in str(caught.value)


def test_the_config_that_is_shipped_has_no_old_name():
    validate(read_yaml(ROOT / "config.yaml"), CONFIG, "config.yaml")


def test_no_new_name_is_an_old_one():
    for schema, table in schemas.RENAMED.items():
        assert (ROOT / "config" / schema).is_file()
        assert not set(table) & set(table.values())
        for old, new in table.items():
            assert old.count("*") == new.count("*")
