"""The table of data sources is complete, and mistakes in declared sources are named."""

import subprocess
import sys

import pytest

from twotowers.datasets.sources import FORMATS, load_sources, resolve, source, source_from_config
from twotowers.errors import InputError
from twotowers.logs import opening
from twotowers.splits import ANNOTATIONS, LOG, SPLITS

DECLARED = {
    "name": "mine",
    "width": 10,
    "label_max": 4,
    "splits": {"train": "a/train.txt", "validation": "vali.txt", "test": "test.txt"},
}
CLICKS = {
    "name": "mylog",
    "format": "pages",
    "splits": {LOG: "clicks.parquet"},
    "reading": {"columns": {"query": "q"}, "strays": "error"},
}


@pytest.mark.parametrize("name", load_sources())
def test_a_ranking_data_set_comes_in_splits_and_a_click_log_in_one_part(name):
    entry = source(name)
    parts = SPLITS if entry.format == "letor" else (LOG,)
    assert not entry.reading
    assert tuple(entry.splits) == tuple(entry.files_sha256)
    assert FORMATS[entry.format] == parts
    described = entry.format in ("vectors", "baidu")
    assert tuple(entry.splits) in ((parts, (*parts, ANNOTATIONS)) if described else (parts,))


def test_typo_offers_the_nearest_name():
    with pytest.raises(InputError, match=r"did you mean 'mslr_web30k'\?"):
        source("mslr-web30k")


def test_declared_source():
    entry = source_from_config(DECLARED)
    assert (entry.name, entry.format) == ("mine", "letor")
    assert (entry.width, entry.label_max) == (10, 4)
    assert entry.access == "local"
    assert entry.splits["train"] == "a/train.txt"
    assert set(entry.files_sha256.values()) == {None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"widht": 3}, "'widht' is unknown .*did you mean 'width'"),
        ({"fromat": "rows", "splits": {LOG: "log.csv"}}, "'fromat' is unknown .*mean 'format'"),
        ({"name": 3}, "name: 3 is not text"),
        ({"width": 0}, "width: 0 is out of range"),
        ({"width": 2.5}, "width: 2.5 is out of range .*an integer"),
        ({"width": None}, "width: None is out of range"),
        ({"width": "10"}, "width: '10' is out of range"),
        ({"format": "yandex"}, "'width' is unknown .*one of 'format', 'name', 'reading', 'spl"),
        ({"format": "pagse"}, "format: 'pagse' is unknown .*did you mean 'pages'"),
        ({"format": 3}, "format: 3 is unknown"),
        ({"reading": {}}, "'reading' is unknown"),
        ({"splits": {LOG: "log.csv"}}, "'format' is missing .*for a click log: .*rows"),
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
        ({"splits": {"train": "/t", "validation": "v", "test": "t"}}, "train: '/t' is not allowed"),
        ({"splits": {"train": "t", "validation": 3, "test": "t"}}, "validation: 3 is not allowed"),
    ],
)
def test_mistakes_in_a_declared_source_are_named(change, message):
    with pytest.raises(InputError, match=message):
        source_from_config({**DECLARED, **change})


def test_a_declared_click_log():
    entry = source_from_config(CLICKS)
    assert (entry.format, entry.width, entry.label_max) == ("pages", None, None)
    assert dict(entry.reading) == CLICKS["reading"]
    assert dict(entry.splits) == {LOG: "clicks.parquet"}
    assert dict(entry.files_sha256) == {LOG: None}


@pytest.mark.parametrize("form", opening.FORMATS)
def test_every_format_of_a_log_may_be_declared_with_the_settings_of_its_reader(form):
    hints = opening.FORMATS[form].settings
    declared = {**CLICKS, "format": form, "reading": dict.fromkeys(hints)}
    assert source_from_config(declared).format == form
    with pytest.raises(InputError, match="has no setting 'split'"):
        source_from_config({**declared, "reading": {"split": "a"}})


def test_formats_are_recognised_without_duckdb_which_jobs_that_count_no_log_do_not_need():
    code = "import sys; from twotowers.datasets import sources; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "duckdb" not in run.stdout.split()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label_max": 4}, "'label_max' is unknown"),
        ({"splits": {"train": "t"}}, "splits: 'train' is unknown .*one of 'log'"),
        ({"reading": ["columns"]}, r"reading: \['columns'\] is not a mapping .*columns, bias"),
        ({"reading": {"colums": {}}}, "has no setting 'colums' .*did you mean 'columns'"),
        ({"reading": {"lanes": ["v1"]}}, "format 'pages' has no setting 'lanes'"),
        ({"format": "tiangong"}, "format 'tiangong' has no setting 'columns' .*none"),
        ({"format": "sessions"}, "format 'sessions' has no setting 'columns' .*one of 'seen'"),
        ({"reading": {"columns": ["query"]}}, "reading: columns: .* is not allowed .*a valid"),
        ({"reading": {"columns": {"query": 3}}}, "reading: columns: .* is not allowed"),
        ({"reading": {"bias": "v1"}}, "reading: bias: 'v1' is not allowed"),
        ({"reading": {"strays": True}}, "reading: strays: True is not allowed .*string"),
        ({"format": "rows", "reading": {"first": "0"}}, "first: '0' is not allowed .*integer"),
        ({"format": "rows", "reading": {"first": False}}, "first: False is not allowed"),
    ],
)
def test_mistakes_in_a_declared_click_log_are_named(change, message):
    with pytest.raises(InputError, match=message):
        source_from_config({**CLICKS, **change})


def test_a_source_is_named_or_declared():
    assert resolve("mq2008") == source("mq2008")
    assert resolve(DECLARED) == source_from_config(DECLARED)
    with pytest.raises(InputError, match="3 is not a mapping"):
        resolve(3)


@pytest.mark.parametrize("key", DECLARED)
def test_a_missing_key_is_named(key):
    with pytest.raises(InputError, match=f"'{key}' is missing"):
        source_from_config({other: DECLARED[other] for other in DECLARED if other != key})
