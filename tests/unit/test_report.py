"""The page: arithmetic of the comparison, checked inputs, nothing unescaped, same bytes twice."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from twotowers.errors import InputError
from twotowers.report import page as report
from twotowers.results.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED

PROVENANCE = {
    "datasets": {"mslr30k": True},
    "scale": "smoke",
    "seeds": [2021],
    "version": "abc",
    "seconds": 3.0,
}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="504pt" height="198pt" viewBox="0 0 504 198"/>'
HOSTILE = "<script>alert('x')</script>\"&{{ 7 * 7 }}"


def table() -> pd.DataFrame:
    """Two temperatures at two positions; one published value has no counterpart."""
    rows = [
        (0.0, 5, -2.0, -2.1, -1.9, "reproduced"),
        (0.0, 10, -2.5, -2.6, -2.4, "reproduced"),
        (1.0, 5, -1.5, -1.6, -1.4, "reproduced"),
        (0.0, 5, -1.75, np.nan, np.nan, "published"),
        (0.0, 10, -3.0, np.nan, np.nan, "published"),
        (1.0, 10, -2.25, np.nan, np.nan, "published"),
    ]
    return pd.DataFrame(
        rows, columns=["temperature", "position", "value", "low", "high", "source"]
    ).assign(setting="misfit", n=3)


def claim(**columns) -> dict:
    """A judged claim."""
    row = dict.fromkeys(report.CLAIM_COLUMNS, "words")
    return {**row, "paper": "sample", "claim": "1", "verdict": REPRODUCED, **columns}


@pytest.fixture
def item(tmp_path) -> report.ItemPage:
    for name in ("fig1.svg", "fig1.csv", "README.md"):
        (tmp_path / name).write_text(SVG)
    return report.ItemPage(
        name="fig1",
        title="A title",
        caption="A caption",
        expected="A fall",
        kind="figure",
        table=table(),
        highlight={"position": [10]},
        claims=[claim()],
        files={"svg": "fig1.svg", "csv": "fig1.csv"},
        provenance=PROVENANCE,
    )


@pytest.fixture
def paper(item) -> report.PaperPage:
    return report.PaperPage(
        key="sample2025",
        title="A paper",
        citation="Somebody, 2025",
        items=[item],
        provenance=PROVENANCE,
        readme="README.md",
    )


def build(folder, *papers) -> str:
    """The page's html."""
    report.build_page(papers, folder / "index.html", provenance=PROVENANCE)
    return (folder / "index.html").read_text(encoding="utf-8")


def test_the_difference_is_reproduced_minus_published():
    frame = report.side_by_side(table())
    assert list(frame.columns) == [
        *("temperature", "position", "setting"),
        *("published", "reproduced", "low", "high", "difference"),
    ]
    first = frame.iloc[0]
    assert (first["published"], first["reproduced"]) == (-1.75, -2.0)
    assert first["difference"] == -0.25
    assert (first["low"], first["high"]) == (-2.1, -1.9)


def test_a_number_without_counterpart_stays_and_has_no_difference():
    frame = report.side_by_side(table()).set_index(["temperature", "position"])
    assert len(frame) == 4
    assert frame.loc[(1, 5), "reproduced"] == -1.5
    assert np.isnan(frame.loc[(1, 5), "published"])
    assert frame.loc[(1, 10), "published"] == -2.25
    assert frame.loc[[(1, 5), (1, 10)], "difference"].isna().all()


def test_the_highlight_restricts_the_rows():
    frame = report.side_by_side(table(), {"position": [10], "temperature": [0]})
    assert frame["difference"].tolist() == [0.5]


def test_a_single_precision_key_meets_its_counterpart():
    halves = table().query("position == 5 and temperature == 0").assign(temperature=0.333)
    ours = halves.query("source == 'reproduced'").assign(temperature=float(np.float32(0.333)))
    both = pd.concat([ours, halves.query("source == 'published'")])
    assert report.side_by_side(both, {"temperature": [0.333]})["difference"].tolist() == [-0.25]


def test_missing_key_values_match_each_other():
    rows = table().query("position == 5 and temperature == 0")
    rows = rows.assign(position=pd.array([pd.NA, pd.NA], dtype="Int64"))
    assert report.side_by_side(rows)["difference"].tolist() == [-0.25]


@pytest.mark.parametrize("column", ["value", "low", "high", "source"])
def test_a_missing_column_is_named(column):
    with pytest.raises(InputError, match=f"no column '{column}'"):
        report.side_by_side(table().drop(columns=column))


@pytest.mark.parametrize(
    ("change", "highlight", "message"),
    [
        ({}, {"depth": [1]}, "no column 'depth'"),
        ({}, {"position": [7]}, "no row is left"),
        ({"source": "printed"}, None, "unknown source 'printed'"),
        ({"position": 5, "temperature": 0.0}, None, "a reproduced value occurs twice"),
    ],
)
def test_a_table_that_cannot_be_compared_is_refused(change, highlight, message):
    with pytest.raises(InputError, match=message):
        report.side_by_side(table().assign(**change), highlight)


def test_a_table_without_keys_is_refused():
    with pytest.raises(InputError, match="no key column"):
        report.side_by_side(table()[["value", "low", "high", "source"]])


def test_every_string_is_escaped(tmp_path, item, paper):
    rows = table().assign(setting=[HOSTILE, "b", HOSTILE, HOSTILE, "b", HOSTILE])
    rows = rows.rename(columns={"temperature": HOSTILE})
    hostile = {**PROVENANCE, "datasets": {HOSTILE: True}, "version": HOSTILE, "scale": HOSTILE}
    words = dict.fromkeys(report.CLAIM_COLUMNS, HOSTILE)
    items = [
        replace(
            item,
            title=HOSTILE,
            caption=HOSTILE,
            expected=HOSTILE,
            table=rows,
            highlight=None,
            claims=[{**words, "verdict": NOT_TESTABLE}],
            provenance=hostile,
        )
    ]
    page = build(
        tmp_path,
        replace(paper, title=HOSTILE, citation=HOSTILE, items=items, provenance=hostile),
    )
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&amp;{{ 7 * 7 }}" in page


class Tags(HTMLParser):
    """Collects open elements and attributes, and fails on one closed out of order."""

    VOID = ("meta", "img", "link", "br")

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_element_is_closed_and_the_image_has_text_and_size(tmp_path, paper):
    tags = Tags()
    tags.feed(build(tmp_path, paper))
    assert tags.open == []
    [image] = [attributes for tag, attributes in tags.seen if tag == "img"]
    assert image["src"] == "fig1.svg"
    assert image["alt"] == "Figure 1: A title. A caption"
    assert (image["width"], image["height"]) == ("672", "264")


def test_the_page_counts_verdicts_and_states_where_numbers_come_from(tmp_path, item, paper):
    judged = [claim(), claim(verdict=NOT_REPRODUCED, reason="too low"), claim()]
    items = [replace(item, claims=judged)]
    page = build(tmp_path, replace(paper, items=items, claims=[claim(verdict=NOT_TESTABLE)]))
    assert "4 claims judged" in page
    cells = '<td class="count reproduced">2</td>\n<td class="count not-reproduced">1</td>'
    assert page.count(cells) == 2  # the paper's row, and the item's
    assert "too low" in page
    assert '<strong class="stand-in">stand-in data</strong>' in page
    assert 'href="#sample2025-fig1"' in page
    assert 'href="README.md"' in page


def test_real_data_is_not_called_a_stand_in(tmp_path, item, paper):
    real = {**PROVENANCE, "datasets": {"mslr30k": False}}
    page = build(tmp_path, replace(paper, items=[replace(item, provenance=real)], provenance=real))
    assert "<strong" not in page
    assert "real data" in page


def test_the_same_inputs_give_the_same_page(tmp_path, paper):
    assert build(tmp_path, paper) == build(tmp_path, paper)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"claims": [claim(verdict="confirmed")]}, "'confirmed' is no verdict"),
        ({"claims": [{"claim": "1", "verdict": REPRODUCED}]}, "no 'paper', 'item'"),
        ({"provenance": {"datasets": {}}}, "provenance: no 'scale'"),
        ({"name": "fig 1"}, "'fig 1' cannot be a link's target"),
        ({"kind": "drawing"}, "'drawing' is no kind of item"),
        ({"files": {"csv": "fig1.csv"}}, "files: no 'svg'"),
        ({"files": {"svg": "fig1.svg", "doc": "x"}}, "'doc' is no format"),
        ({"files": {"svg": "gone.svg"}}, "gone.svg: the page would link to a file"),
        ({"files": {"svg": "https://example.org/a.svg"}}, "not relative to the page"),
        ({"files": {"svg": "javascript:alert(1)"}}, "not relative to the page"),
        ({"files": {"svg": "/etc/hostname"}}, "not relative to the page"),
    ],
)
def test_an_item_that_does_not_fit_stops_the_page(tmp_path, item, paper, change, message):
    with pytest.raises(InputError, match=message):
        build(tmp_path, replace(paper, items=[replace(item, **change)]))
    assert not (tmp_path / "index.html").exists()


def test_two_items_of_one_name_are_refused(tmp_path, item, paper):
    with pytest.raises(InputError, match="'sample2025-fig1' occurs 2 times"):
        build(tmp_path, replace(paper, items=[item, item]))


def test_a_broken_svg_is_named(tmp_path, paper):
    (tmp_path / "fig1.svg").write_text("not an image")
    with pytest.raises(InputError, match=r"fig1\.svg: not an svg file"):
        build(tmp_path, paper)


def test_a_logit_and_an_ndcg_keep_their_own_decimals(tmp_path, item, paper):
    rows = table().assign(metric="bias")
    ndcg = rows.head(1).assign(metric="ndcg@10", value=0.72864, low=np.nan, high=np.nan)
    items = [replace(item, table=pd.concat([rows, ndcg]), highlight=None)]
    page = build(tmp_path, replace(paper, items=items))
    assert "0.7286" in page
    assert "−2.000" in page


def test_errors_far_below_one_are_powers_of_ten(tmp_path, item, paper):
    errors = table().head(1).assign(metric="click_mse", low=np.nan, high=np.nan)
    ours, theirs = errors.assign(value=8.7e-7), errors.assign(value=2e-5, source="published")
    rows = pd.concat([table().assign(metric="mcc"), ours, theirs])
    page = build(tmp_path, replace(paper, items=[replace(item, table=rows, highlight=None)]))
    for text in ("8.7e−7", "2.0e−5", "−1.9e−5"):
        assert text in page


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("fig3a", "Figure 3a"),
        ("table2", "Table 2"),
        ("appendixA", "Appendix A"),
        ("fig4.B.1", "Figure 4.B.1"),
        ("grid", "grid"),
        ("figures", "figures"),
    ],
)
def test_names_are_printed_as_papers_print_them(name, printed):
    assert report.printed_name(name) == printed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.4, "59 s"),
        (59.9, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3600, "1 h 00 min"),
        (9000, "2 h 30 min"),
        (None, "an unknown time"),
    ],
)
def test_durations_read_well(seconds, text):
    assert report.duration(seconds) == text
