"""The table of data sources is complete, and mistakes in declared sources are named."""

import pytest

from tests.refusals import put, refusals
from twotowers.datasets.sources import FORMATS, load_sources, source
from twotowers.errors import InputError
from twotowers.experiment.config import DataSet
from twotowers.experiment.fields import read
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


def declared(given):
    return read(DataSet, {"source": given}).of


@pytest.mark.parametrize("name", load_sources())
def test_a_ranking_data_set_comes_in_splits_and_a_click_log_in_one_part(name):
    entry = declared(name)
    assert entry == source(name)
    parts = SPLITS if entry.format == "letor" else (LOG,)
    assert not entry.reading
    assert tuple(entry.splits) == tuple(entry.files_sha256)
    assert FORMATS[entry.format] == parts
    described = entry.format in ("vectors", "baidu")
    assert tuple(entry.splits) in ((parts, (*parts, ANNOTATIONS)) if described else (parts,))


def test_typo_offers_the_nearest_name():
    with pytest.raises(InputError, match=r"did you mean 'mslr_web30k'\?"):
        source("mslr-web30k")


@pytest.mark.parametrize(
    ("given", "form", "numbers"), [(DECLARED, "letor", (10, 4)), (CLICKS, "pages", (None, None))]
)
def test_declared_files(given, form, numbers):
    entry = declared(given)
    assert (entry.name, entry.format, entry.access) == (given["name"], form, "local")
    assert (entry.width, entry.label_max) == numbers
    assert dict(entry.splits) == given["splits"]
    assert entry.files_sha256 == dict.fromkeys(given["splits"])
    assert dict(entry.reading) == given.get("reading", {})


@pytest.mark.parametrize("form", opening.FORMATS)
def test_every_format_of_a_log_may_be_declared_with_the_settings_of_its_reader(form):
    hints = opening.FORMATS[form].settings
    given = {**CLICKS, "format": form, "reading": dict.fromkeys(hints)}
    assert declared(given).format == form
    with pytest.raises(InputError, match=r"reading\.split: unknown setting 'split'"):
        declared({**given, "reading": {"split": "a"}})


OF_RANKINGS = """
widht: 3 -> ^ | 'widht' | did you mean 'width'
name: 3 -> ^: 3 | expected text
name: ~ -> 'name' is missing
splits: ~ -> 'splits' is missing
width: 0 -> ^ | 0 | at least 1
width: 2.5 -> ^ | 2.5 | an integer
width: "10" -> ^ | '10' | an integer
width: ~ -> format 'letor' needs width
label_max: ~ -> format 'letor' needs label_max
label_max: 0 -> ^ | 0 | at least 1
label_max: .nan -> ^ | nan | a number
format: yandexx -> ^ | 'yandexx' | did you mean 'yandex'
format: 3 -> ^ | 3
format: yandex -> splits | 'train' is no part of format 'yandex' | one of 'log'
reading: {first: 0} -> reading.first: unknown setting
splits: train.txt -> ^ | 'train.txt' | a mapping
splits: {log: log.csv} -> splits | 'log' is no part of format 'letor'
splits: {train: t, test: t} -> splits | 'validation' is missing
splits: {train: t, vali: v, test: t} -> splits | 'vali' is no part | did you mean 'validation'
splits.train: ../t -> ^ | '../t' | a file in the folder
splits.train: /t -> ^ | '/t' | a file in the folder
splits.train: 3 -> ^ | 3 | text
"""
OF_CLICKS = """
label_max: 4 -> format 'pages' has no label_max
splits: {train: t} -> splits | 'train' is no part of format 'pages' | one of 'log'
reading: [columns] -> ^ | ['columns'] | a mapping
reading: {colums: {}} -> ^.colums: unknown setting | did you mean 'columns'
reading: {lanes: [v1]} -> ^.lanes: unknown setting
format: tiangong -> reading.columns: unknown setting | none
format: sessions -> reading.columns: unknown setting | one of 'seen'
reading: {columns: [query]} -> ^.columns
reading: {columns: {query: 3}} -> ^.columns
reading: {bias: v1} -> ^.bias | 'v1'
reading: {strays: true} -> ^.strays | True | text
reading: {seen: all} -> reading.seen | 'all' | clicked+0
"""


@pytest.mark.parametrize(
    ("base", "path", "value", "parts"),
    [
        (base, *row)
        for base, table in ((DECLARED, OF_RANKINGS), (CLICKS, OF_CLICKS))
        for row in refusals(table)
    ],
)
def test_mistakes_in_a_declared_source_are_named(base, path, value, parts):
    with pytest.raises(InputError) as caught:
        declared(put(base, path, value))
    for part in ["source", *parts]:
        assert part in str(caught.value)
