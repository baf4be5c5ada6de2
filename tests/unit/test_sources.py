"""The table of data sources is whole, and mistakes in a declared one are named."""

import dataclasses

import pytest

from twotowers.datasets import sources
from twotowers.datasets.sources import load_sources, resolve, source, source_from_config
from twotowers.errors import InputError

DECLARED = {
    "name": "mine",
    "width": 10,
    "label_max": 4,
    "splits": {"train": "a/train.txt", "validation": "vali.txt", "test": "test.txt"},
}


def test_the_table_has_the_six_sources():
    table = load_sources()
    assert list(table) == [
        "mslr_web30k",
        "mslr_web10k",
        "yahoo_set1",
        "istella_s",
        "mq2007",
        "mq2008",
    ]
    assert {name: entry.width for name, entry in table.items()} == {
        "mslr_web30k": 136,
        "mslr_web10k": 136,
        "yahoo_set1": 700,
        "istella_s": 220,
        "mq2007": 46,
        "mq2008": 46,
    }
    assert [entry.label_max for entry in table.values()] == [4, 4, 4, 4, 2, 2]
    assert [entry.access for entry in table.values()].count("public") == 1


@pytest.mark.parametrize("name", ["mslr_web30k", "istella_s"])
def test_files_of_known_checksum(name):
    assert all(source(name).files_sha256.values())


def test_an_unknown_checksum_is_said():
    for name in ("mq2007", "mq2008"):
        assert source(name).sha256 is None
        assert "No checksum is published" in source(name).how


def test_a_source_cannot_be_changed():
    entry = source("mq2008")
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.width = 3
    with pytest.raises(TypeError):
        entry.splits["train"] = "other.txt"


def test_typo_offers_the_nearest_name():
    with pytest.raises(InputError, match=r"did you mean 'mslr_web30k'\?"):
        source("mslr-web30k")


def test_declared_source():
    entry = source_from_config(DECLARED)
    assert (entry.name, entry.width, entry.label_max) == ("mine", 10, 4)
    assert entry.access == "local"
    assert entry.splits["train"] == "a/train.txt"
    assert set(entry.files_sha256.values()) == {None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"widht": 3}, "'widht' is unknown .*did you mean 'width'"),
        ({"name": 3}, "name: 3 is not text"),
        ({"width": 0}, "width: 0 is out of range"),
        ({"width": 2.5}, "width: 2.5 is not a whole number"),
        ({"width": "10"}, "width: '10' is out of range"),
        ({"label_max": 0}, "label_max: 0 is out of range"),
        ({"label_max": float("nan")}, "label_max: nan is out of range"),
        ({"splits": "train.txt"}, "splits: 'train.txt' is not a mapping"),
        ({"splits": {"train": "t", "test": "t"}}, "splits: 'validation' is missing"),
        (
            {"splits": {"train": "t", "vali": "v", "test": "t"}},
            "'vali' is unknown .*did you mean 'validation'",
        ),
        (
            {"splits": {"train": "../t", "validation": "v", "test": "t"}},
            "train: '../t' is not allowed",
        ),
        (
            {"splits": {"train": "/t", "validation": "v", "test": "t"}},
            "train: '/t' is not allowed",
        ),
        ({"splits": {"train": "t", "validation": 3, "test": "t"}}, "validation: 3 is not allowed"),
    ],
)
def test_mistakes_in_a_declared_source_are_named(change, message):
    with pytest.raises(InputError, match=message):
        source_from_config({**DECLARED, **change})


def test_a_source_is_named_or_declared():
    assert resolve("mq2008") == source("mq2008")
    assert resolve(DECLARED) == source_from_config(DECLARED)
    with pytest.raises(InputError, match="3 is not a mapping"):
        resolve(3)


@pytest.mark.parametrize("key", DECLARED)
def test_a_missing_key_is_named(key):
    with pytest.raises(InputError, match=f"'{key}' is missing"):
        source_from_config({other: DECLARED[other] for other in DECLARED if other != key})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"access": "publik"}, "'publik' is unknown .*did you mean 'public'"),
        ({"sha256": "abc"}, "sha256: 'abc' is not a SHA-256"),
        ({"sha256": None}, "a public source needs a checksum"),
        ({"files_sha256": {"train": 1, "validation": None, "test": None}}, "train: 1 is not a SHA"),
    ],
)
def test_mistakes_in_a_source_are_named(change, message):
    with pytest.raises(InputError, match=message):
        dataclasses.replace(source("istella_s"), **change)


def test_mistakes_in_the_table_name_its_file(tmp_path, monkeypatch):
    table = tmp_path / "sources.yaml"
    table.write_text("mine: {title: mine}\n")
    monkeypatch.setattr(sources, "TABLE", table)
    with pytest.raises(InputError, match=r"sources\.yaml: data source 'mine': 'version' is miss"):
        load_sources()
