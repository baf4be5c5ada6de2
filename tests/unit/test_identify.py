"""The command that tests a click log, and its messages."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

import twotowers as tt
from twotowers.analysis.column_counts import any_log, count_columns
from twotowers.commands.main import main
from twotowers.errors import InputError

PAIR = ["query", "document"]


def log(rows, **columns):
    """A log of (query, document, position)."""
    return pd.DataFrame(rows, columns=[*PAIR, "position"]).assign(**columns)


# Positions 1 to 3 share document 0, positions 4 and 5 document 9.
APART = [(7, 0, 1), (7, 0, 2), (7, 0, 3), (7, 1, 3), (7, 9, 4), (7, 9, 5)]
JOINED = [*APART, (7, 1, 4)]


def check(table, **options):
    return tt.identify(table, **{"feature": PAIR, "bias": ["position"], **options})


def write(path, rows, **columns):
    table = log(rows, **columns)
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    return str(path)


def command(path, *options):
    return main(["identify", path, "--feature", *PAIR, "--bias", "position", *options])


def test_a_log_that_falls_apart():
    report = check(log(APART))
    assert (report.rows, len(report.features), len(report.factors)) == (6, 3, 5)
    assert report.component.tolist() == [0, 0, 0, 1, 1]
    assert not report.identified
    # The nearest positions, numbered from 0.
    assert report.merging.pairs.tolist() == [[2, 3]]
    assert report.merging.total == 1
    swapped = report.intervention
    component = report.component
    assert component[swapped.source[0]] != component[swapped.target[0]]


def test_a_connected_log_is_left_alone():
    for repair in (None, "merge", "intervene"):
        report = check(log(JOINED), repair=repair)
        assert report.identified
        assert report.merging is report.intervention is None


def test_a_query_is_part_of_the_feature_only_if_named():
    table = log([(1, 0, 1), (2, 0, 2)])
    assert not check(table).identified
    assert tt.identify(table, feature=["document"], bias=["position"]).identified


def test_rows_never_shown_do_not_count():
    table = log(JOINED, impressions=[9] * 6 + [0], clicks=0)
    assert check(table).rows == 6
    assert not check(table).identified


def test_swaps_go_by_click_rates():
    """The swap of the most clicked document of one side, between the most clicked positions."""
    rows = [(1, 0, 1), (1, 0, 2), (1, 1, 2), (1, 2, 3), (1, 2, 4)]
    table = log(rows, impressions=100, clicks=[30, 10, 5, 10, 20])
    report = check(table, repair="intervene")
    swap = report.intervention
    assert report.merging is None
    assert report.features.iloc[swap.feature[0]].tolist() == [1, 0]
    assert report.factors["position"].iloc[[swap.source[0], swap.target[0]]].tolist() == [1, 4]
    relevance, first, last = 40.5 / 201, 30.5 / 101, 20.5 / 101
    assert swap.total == pytest.approx(1 / (relevance * first) + 1 / (relevance * last) - 2)


def test_any_bias_factor():
    """Devices never share a document. They can be merged if bias features give distances."""
    rows = log([(1, 0, 1), (1, 0, 2), (1, 1, 1), (1, 1, 2)], device=["a", "a", "b", "b"])
    rows["width"] = rows["device"].map({"a": 3.0, "b": 7.0})
    bias = ["position", "device"]
    report = tt.identify(rows, feature=PAIR, bias=bias)
    assert report.sizes.tolist() == [2, 2]
    assert report.merging is None
    report = tt.identify(
        rows, feature=PAIR, bias=bias, bias_features=["position", "width"], repair="merge"
    )
    assert report.intervention is None
    assert report.merging.total == 4
    names = report.factors.iloc[report.merging.pairs[0]]
    assert names["device"].tolist() == ["a", "b"]
    assert names["position"].nunique() == 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_command_tells_what_it_found(tmp_path, capsys, suffix):
    path = write(tmp_path / f"log{suffix}", APART, note="not read")
    assert command(path) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[:5] == [
        "6 rows, 3 feature vectors, 5 bias factors",
        "components: 2 (bias factors in each: 3, 2)",
        "  1: position=1, position=2, position=3",
        "  2: position=4, position=5",
        "verdict: not identified",
    ]
    assert "  position=3 and position=4 (distance 1)" in out
    assert "feature vectors to swap: 1, for example:" in out
    assert "cost" not in out


def test_the_command_asked_to_repair_what_is_whole(tmp_path, capsys):
    path = write(tmp_path / "log.csv", JOINED)
    before = (tmp_path / "log.csv").read_bytes()
    assert command(path, "--repair", "merge") == 0
    out = capsys.readouterr().out
    assert "verdict: identified up to one constant" in out
    assert "nothing to merge: the log is connected already" in out
    assert (tmp_path / "log.csv").read_bytes() == before
    assert command(path) == 0
    assert "nothing to" not in capsys.readouterr().out


def test_the_command_knows_costs_where_there_are_clicks(tmp_path, capsys):
    path = write(tmp_path / "log.csv", [(1, 0, 1), (1, 1, 2)], impressions=9, clicks=[9, 4])
    assert command(path, "--repair", "intervene") == 1
    # The first document, seen first with a click rate of 9.5 / 10, to a position with 4.5 / 10.
    cost = 1 / 0.95**2 + 1 / (0.95 * 0.45) - 2
    out = capsys.readouterr().out
    assert f"feature vectors to swap: 1, at a total cost of {cost:.6g} (in" in out
    assert f"query=1 document=0 from position=1 to position=2 (cost {cost:.4g})" in out


def test_rows_with_clicks_are_impressions(tmp_path, capsys):
    paths = [
        write(tmp_path / "rows.csv", [(1, 0, 1), (1, 0, 1), (1, 1, 2)], clicks=[2, 0, 1]),
        write(tmp_path / "cells.csv", [(1, 0, 1), (1, 1, 2)], impressions=[2, 1], clicks=[1, 1]),
    ]
    found = []
    for path in paths:
        assert command(path, "--repair", "intervene") == 1
        found.append(capsys.readouterr().out.splitlines()[2:])
    assert found[0] == found[1]
    assert "(cost " in found[0][-1]


@pytest.mark.parametrize(
    ("documents", "positions", "identified"),
    [
        (["007", "7"], [1, 2], False),  # two documents
        (["NA", "NA"], [1, 2], True),
        (["null", "NA"], [1, 2], False),
        ([10**20, 10**20 + 1], [1, 2], False),
        (["a", "a"], ["1.0", "2.0"], True),
    ],
)
def test_ids_of_a_csv_file_stay_as_they_are(tmp_path, documents, positions, identified):
    table = pd.DataFrame({"query": 1, "document": documents, "position": positions})
    table.to_csv(tmp_path / "log.csv", index=False)
    assert command(str(tmp_path / "log.csv")) == (0 if identified else 1)
    found, _ = count_columns(any_log(tmp_path / "log.csv"), ["document"])
    assert {*found["document"]} == {*map(str, documents)}


@pytest.mark.parametrize("columns", [(), ("clicks",), ("impressions",), ("impressions", "clicks")])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_counted_columns_are_those_of_the_rows(tmp_path, columns, ending):
    """pandas counts the same. Names that differ in case alone are two, and ids keep their text."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "Query": rng.choice(["007", "7", "NA"], 500), "query": rng.integers(5, size=500),
        "position": rng.integers(1, 4, 500), "height": rng.choice([0.5, 2.0], 500),
        "impressions": rng.integers(3, size=500), "clicks": rng.integers(3, size=500),
    })  # fmt: skip
    table["clicks"] = table[["clicks", "impressions"]].min(axis=1)
    names = ["Query", "query", "position", "height"]
    table = table[[*names, *columns]]
    path = tmp_path / f"log.{ending}"
    table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    found, rows = count_columns(any_log(path), names)
    if "impressions" not in columns:
        shown = table.assign(impressions=1)
        shown["clicks"] = shown["clicks"] > 0 if "clicks" in columns else 0
    else:
        shown = table[table["impressions"] > 0]
    every = ["impressions", "clicks"] if "clicks" in columns else ["impressions"]
    assert rows == len(shown)
    assert found.columns.tolist() == [*names, *every]
    for one, own in shown.groupby(names)[every].sum().iterrows():
        (row,) = found[(found[names] == list(one)).all(axis=1)][every].to_numpy()
        assert row.tolist() == own.tolist()
    assert len(found) == shown.groupby(names).ngroups


def test_a_count_that_others_hide_is_named(tmp_path):
    """The sum of both rows has no more clicks than impressions, but the second row has."""
    path = write(tmp_path / "log.csv", [(1, 0, 1), (1, 0, 1)], impressions=[9, 1], clicks=[0, 2])
    with pytest.raises(InputError, match="clicks: row 2: 2 clicks on 1 impressions"):
        tt.identify(path)


def test_settings_of_the_reader_count_for_a_table_too(tmp_path):
    pages = pd.DataFrame(
        {"session": [1, 1, 2, 2], "query": 7, "document": [*"abba"], "position": [0, 1, 0, 1],
         "clicks": [2, 0, 0, 1]}
    )  # fmt: skip
    pages.to_csv(path := tmp_path / "log.csv", index=False)
    found = tt.identify(tt.read_log(path, first=0))
    assert (found.identified, found.rows) == (True, 4)
    with pytest.raises(InputError, match="2 clicks on one document"):
        tt.identify(tt.read_log(path, first=0, repeats="error"))
    with pytest.raises(InputError, match="repair: 'mrge'"):
        tt.identify(path, repair="mrge")


def test_rows_of_a_log_of_pages_are_documents_shown():
    pages = pa.table({"query": [7] * 4, "documents": [["a", "b"], ["b", "a"]] * 2,
                      "clicks": [[1, 0]] * 4})  # fmt: skip
    assert tt.identify(pages).rows == 8


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("clicks", 2, "clicks: row 5: 2 clicks on 1 impressions"),
        ("clicks", -1, "clicks: row 5: -1 was found"),
        ("query", None, "query: row 5: a value is missing"),
    ],
)
def test_the_wrong_row_of_a_table_is_named(tmp_path, column, value, message):
    """The wrong row is in the last of three batches."""
    table = log(APART, impressions=1, clicks=0).astype({"query": "Int64"})
    table.loc[4, column] = value
    pa.feather.write_feather(pa.table(table), tmp_path / "log.feather", chunksize=2)
    with pytest.raises(InputError, match=message):
        tt.identify(tmp_path / "log.feather")


def test_fractions_have_distances_and_whole_numbers_stay_whole(tmp_path, capsys):
    path = write(tmp_path / "log.csv", [(1, 0, 1), (1, 1, 2)], height=[0.5, 2.0])
    assert command(path, "height", "position", "--repair", "merge") == 1
    out = capsys.readouterr().out
    assert "position=1 height=0.5 and position=2 height=2.0 (distance 1.803)" in out


@pytest.mark.parametrize("name", ["querry", "document", "position", "width"])
def test_an_absent_column_is_named_with_the_nearest(tmp_path, name):
    options = {"feature": ["querry"], "bias": ["position"], "bias_features": ["width"]}
    table = log(APART).rename(columns={"query": "querry"}).assign(width=1.0)
    table = table.rename(columns={name: f"{name}2"})
    if name == "document":
        options["feature"] = PAIR[1:]
    with pytest.raises(InputError, match=f"{name}: no such column .*did you mean '{name}2'"):
        tt.identify(table, **options)


def test_whole_positions_stored_as_floats_will_do():
    table = log(APART)
    assert check(table.astype({"position": float})).component.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("table", [log([]), log(APART, impressions=0)])
def test_an_empty_log(table):
    with pytest.raises(InputError, match="the log is empty"):
        check(table)


DEVICES = {"bias": ["position", "device"], "repair": "merge"}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"device": list("aaabbb")}, DEVICES, "device: not numeric"),
        (
            {"device": list("aaabbb")},
            {**DEVICES, "bias_features": ["device"]},
            "device: 'a' was found",
        ),
        ({"width": [1, np.inf, 1, 1, 1, 1]}, {"bias_features": ["width"]}, "width: inf was found"),
        (
            {"width": [1, 1, 2, 3, 1, 1]},
            {"bias_features": ["width"]},
            r"width: 2 .* another row of this one has 3",
        ),
        ({"device": "phone"}, {"bias": ["device"]}, r"all rows have phone \(expected two bias"),
    ],
)
def test_wrong_columns_are_named(columns, options, message):
    with pytest.raises(InputError, match=message):
        check(log(APART, **columns), **options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"position": [1, 1, 0, 3, 4, 5]}, r"position: row 3: 0 .*a whole number from 1.* first=0"),
        ({"position": [1, 2, 3, 3.5, 4, 5]}, "position: row 4: 3.5 was found"),
        ({"position": list("12cdef")}, "position: row 3: 'c' was found"),
        ({"impressions": 5, "clicks": [0, 1, 5, 6, 0, 9]}, "clicks: row 4: 6 clicks on 5 imp"),
        ({"impressions": [1, 1, 1, 1, 1, -1]}, "impressions: row 6: -1 was found"),
        ({"impressions": [0, 0, 1, 1, 1, 1], "position": [1, 2, 3, 0, 4, 5]}, "row 4: 0 was found"),
        ({"impressions": 0}, "the log is empty"),
    ],
)
def test_wrong_rows_are_named(tmp_path, columns, message):
    path = write(tmp_path / "log.parquet", APART, **columns)
    with pytest.raises(InputError, match=message):
        tt.identify(path)
    with pytest.raises(InputError, match="impressions: no such column"):
        tt.identify(path, bias=["impressions"])


@pytest.mark.parametrize(
    ("clicks", "phrase"),
    [
        ([9, 5, 3, 4, 3, 2, 4], "verdict: identified up to one constant, but hardly: "),
        ([9, 5, 3, 4, 3, 2, 0], "but its clicks fall into 2 parts: "),
        ([0] * 7, "identified up to one constant, but no document was clicked: "),
    ],
)
def test_the_verdict_says_what_clicks_make_of_it(tmp_path, capsys, clicks, phrase):
    path = write(tmp_path / "log.csv", JOINED, impressions=20, clicks=clicks)
    assert command(path) == 0
    out = capsys.readouterr().out
    assert phrase in out
    assert ("within a part, the weakest link" in out) == ("2 parts" in phrase)
