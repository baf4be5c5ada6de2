"""Whether a click log is identified, which swaps repair it, and what the command says."""

import pandas as pd
import pyarrow as pa
import pytest

import twotowers as tt
from twotowers.commands.main import main

# Positions 1 to 3 share document 0, positions 4 and 5 document 9.
APART = [(7, 0, 1), (7, 0, 2), (7, 0, 3), (7, 1, 3), (7, 9, 4), (7, 9, 5)]
JOINED = [*APART, (7, 1, 4)]


def log(rows, **columns):
    """A log of (query, document, position)."""
    table = pd.DataFrame(rows, columns=["query", "document", "position"])
    return table.assign(**{"clicks": 0, **columns})


def command(path, table, *options):
    table.to_csv(path, index=False)
    return main(["identify", str(path), *options])


def test_a_connected_log_needs_no_swap():
    found = tt.identify(log(JOINED))
    assert found.identified
    assert found.swaps is None
    assert found.components["component"].tolist() == [0] * 5


def test_a_query_is_part_of_the_feature_only_if_named():
    table = log([(1, 0, 1), (2, 0, 2)])
    assert not tt.identify(table).identified
    assert tt.identify(table, feature=["document"]).identified


def test_a_pair_that_was_never_shown_links_nothing():
    assert not tt.identify(log(JOINED, impressions=[9] * 6 + [0])).identified


def test_swaps_go_by_click_rates():
    """The swap of the most clicked document of one side, between the most clicked positions."""
    rows = [(1, 0, 1), (1, 0, 2), (1, 1, 2), (1, 2, 3), (1, 2, 4)]
    found = tt.identify(log(rows, impressions=100, clicks=[30, 10, 5, 10, 20]))
    relevance, first, last = 40.5 / 201, 30.5 / 101, 20.5 / 101
    cost = 1 / (relevance * first) + 1 / (relevance * last) - 2
    (swap,) = found.swaps.to_dict("records")
    expected = {"query": 1, "document": 0, "position": 1, "position_to": 4}
    assert swap == {**expected, "cost": pytest.approx(cost)}


def test_any_columns_are_bias_factors():
    """Devices never share a document."""
    rows = log([(1, 0, 1), (1, 0, 2), (1, 1, 1), (1, 1, 2)], device=["a", "a", "b", "b"])
    found = tt.identify(rows, bias=["position", "device"])
    assert found.sizes.tolist() == [2, 2]
    assert {"device", "device_to"} <= {*found.swaps}


def test_the_command_prints_parts_and_swaps(tmp_path, capsys):
    assert command(tmp_path / "log.csv", log(APART, note="not read")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:5] == [
        "6 rows, 3 feature vectors, 5 bias factors",
        "components: 2 (bias factors in each: 3, 2)",
        "  1: position=1, position=2, position=3",
        "  2: position=4, position=5",
    ]
    assert lines[5].startswith("verdict: not identified")
    assert lines[-2].split() == ["query", "document", "position", "position_to", "cost"]
    assert len(lines[-1].split()) == 5


def test_rows_pages_and_cells_are_counted_alike(tmp_path, capsys):
    pages = {"query": [7] * 4, "documents": [["a", "b"], ["b", "a"]] * 2, "clicks": [[1, 0]] * 4}
    rows = log([(7, "a", 1), (7, "b", 2), (7, "b", 1), (7, "a", 2)] * 2, clicks=[1, 0] * 4)
    cells = rows.groupby(["query", "document", "position"], as_index=False)["clicks"].sum()
    printed = {str(tt.identify(each)) for each in (pa.table(pages), rows)}
    assert printed == {str(tt.identify(cells.assign(impressions=2)))}


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (log(APART), {"bias": ["positoin"]}, "positoin.*did you mean 'position'"),
        (log(APART), {"feature": ["documnet"]}, "documnet.*did you mean 'document'"),
        (log(APART, device="phone"), {"bias": ["device"]}, "all rows have phone .*two bias"),
        (log(APART, impressions=0), {}, "the log is empty"),
        (log(APART, impressions=5, clicks=[0, 1, 5, 6, 0, 9]), {}, "row 4: 6 clicks in 5 imp"),
    ],
)
def test_wrong_columns_and_rows_are_named(table, options, message):
    with pytest.raises(tt.InputError, match=message):
        tt.identify(table, **options)


@pytest.mark.parametrize(
    ("clicks", "phrase"),
    [
        ([9, 5, 3, 4, 3, 2, 4], "verdict: identified up to one constant, but hardly: "),
        ([9, 5, 3, 4, 3, 2, 0], "but its clicks fall into 2 parts: "),
        ([0] * 7, "identified up to one constant, but no document was clicked: "),
        ([20] * 7, "identified up to one constant, but each impression was clicked: "),
    ],
)
def test_the_verdict_says_what_clicks_make_of_it(tmp_path, capsys, clicks, phrase):
    assert command(tmp_path / "log.csv", log(JOINED, impressions=20, clicks=clicks)) == 0
    out = capsys.readouterr().out
    assert phrase in out
    assert ("within a part, the weakest link" in out) == ("2 parts" in phrase)


def test_the_weakest_link_by_hand():
    """Positions 1 and 2 share a document with many clicks, 2 and 3 one with few."""
    rows = [(1, "a", 1), (1, "a", 2), (1, "b", 2), (1, "b", 3)]
    table = log(rows, impressions=1000, clicks=[400, 200, 3, 1])
    found = tt.identify(table)
    link = found.strength.links.iloc[0]
    assert link[["one", "other"]].tolist() == [1, 2]
    variance = 1 / 3 + 1
    numbers = [3 * 1 / 4, variance**0.5, 4 / variance, 1]
    assert link[["clicks", "error", "swaps", "share"]].tolist() == pytest.approx(numbers)
    assert "the weakest link is between position=2 and position=3" in str(found)
    assert tt.identify(table.iloc[[0, 2]]).strength is None
