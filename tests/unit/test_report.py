"""Pages: arithmetic of the comparison, checked inputs, nothing unescaped, same bytes twice."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import sites
from tests.sites import OF_NOTHING, PROVENANCE
from twotowers.claims.claims import (
    CONTRADICTED,
    GATE,
    NOT_TESTABLE,
    ONE_SEED,
    REPRODUCED,
    SEEDS,
    UNDECIDED,
)
from twotowers.claims.judging import SETTING, UNMADE
from twotowers.errors import InputError
from twotowers.report.comparison import side_by_side
from twotowers.report.evidence import GATED, LEFT_OUT, OPEN, UNASKED
from twotowers.report.latex import booktabs
from twotowers.report.pages import write_overview, write_paper, write_scales

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
    """A judged claim of the item."""
    return sites.claim(columns.pop("claim", "1"), columns.pop("item", "fig1"), **columns)


def setting(text: str, provenance: dict) -> dict:
    own = {"name": "misfit", "kind": "setting", "gates": ()}
    return {**own, "text": text, "provenance": provenance}


@pytest.fixture
def item(tmp_path) -> dict:
    for name in ("fig1.svg", "fig1.csv", "README.md"):
        (tmp_path / name).write_text(SVG)
    files = {"svg": "fig1.svg", "csv": "fig1.csv"}
    texts = {"caption": "A caption", "highlight": {"position": [10]}, "needs": ["misfit"]}
    return sites.item("fig1", "A title", files, table(), [claim()], **texts)


@pytest.fixture
def paper(item) -> dict:
    return dict(
        OF_NOTHING,
        key="sample2025",
        title="A paper",
        citation="Somebody, 2025",
        items=[item],
        settings=[setting("model: {tower: linear}", PROVENANCE)],
        provenance=PROVENANCE,
        root=".",
    )


RUN = {"scale": "smoke", "version": "abc"}


def build(folder, paper) -> str:
    """The page's html."""
    write_paper(paper, folder)
    return (folder / "index.html").read_text(encoding="utf-8")


def overview(folder, *papers, waiting=()) -> str:
    """The html of the overview of papers whose items lie in `folder`."""
    for paper in papers:
        (folder / paper["key"]).mkdir(exist_ok=True)
        for path in filter(Path.is_file, folder.iterdir()):
            shutil.copy(path, folder / paper["key"])
        write_paper(paper, folder / paper["key"])
    write_overview(folder, [one["key"] for one in papers] + [*waiting], **RUN)
    return (folder / "index.html").read_text(encoding="utf-8")


def test_the_difference_is_reproduced_minus_published_where_both_are_there():
    reference = table().iloc[:1].assign(source="truth", value=-2.3, setting="none")
    frame = side_by_side(pd.concat([table(), reference], ignore_index=True))
    expected = [
        (0.0, 5, "misfit", -1.75, -2.0, -2.1, -1.9, -0.25),
        (0.0, 10, "misfit", -3.0, -2.5, -2.6, -2.4, 0.5),
        (1.0, 5, "misfit", np.nan, -1.5, -1.6, -1.4, np.nan),
        (1.0, 10, "misfit", -2.25, np.nan, np.nan, np.nan, np.nan),
    ]
    columns = ["temperature", "position", "setting", "published", "reproduced", "low", "high"]
    expected = pd.DataFrame(expected, columns=[*columns, "difference"])
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    restricted = side_by_side(table(), {"position": [10], "temperature": [0]})
    assert restricted["difference"].tolist() == [0.5]


def test_a_single_precision_key_meets_its_counterpart():
    halves = table().query("position == 5 and temperature == 0").assign(temperature=0.333)
    ours = halves.query("source == 'reproduced'").assign(temperature=float(np.float32(0.333)))
    both = pd.concat([ours, halves.query("source == 'published'")])
    assert side_by_side(both, {"temperature": [0.333]})["difference"].tolist() == [-0.25]


def test_missing_key_values_match_each_other():
    rows = table().query("position == 5 and temperature == 0")
    rows = rows.assign(position=pd.array([pd.NA, pd.NA], dtype="Int64"))
    assert side_by_side(rows)["difference"].tolist() == [-0.25]


BRIEF = {
    "question": "Can it be told?",
    "authors": "Yes.",
    "doubt": "All of it.",
    "claims": ("2", "1"),
}


def test_a_brief_answers_by_the_verdicts_of_the_claims_that_decide(tmp_path, item, paper):
    assert "<dt>Question</dt>" not in build(tmp_path, paper)
    rows = [
        claim(),
        claim(claim="2", verdict=CONTRADICTED, statement="It rises"),
        claim(claim="3", verdict=CONTRADICTED),
    ]
    page = build(tmp_path, dict(paper, items=[dict(item, claims=rows)], brief=BRIEF))
    brief = page.split('<dl class="brief">')[1].split("</dl>")[0]
    words_shown = (
        "Can it be told?", "Yes.", "Some hold and some do not.",
        "1 reproduced (1), 1 contradicted (2)", 'href="#claim-2"', "It rises",
        'href="#claim-1"', "All of it.",
    )  # fmt: skip
    places = [brief.index(words) for words in words_shown]
    assert places == sorted(places)
    assert "claim-3" not in brief


def test_a_brief_has_the_answer_of_recorded_runs(tmp_path, item, paper):
    rows = [
        claim(verdict=UNDECIDED, cause=SEEDS, recorded=[recorded(REPRODUCED)]),
        claim(claim="2", verdict=UNDECIDED, cause=ONE_SEED),
    ]
    page = build(tmp_path, dict(paper, items=[dict(item, claims=rows)], brief=BRIEF))
    brief = page.split('<dl class="brief">')[1].split("</dl>")[0]
    here, there = brief.split("<dt>Recorded runs</dt>")
    assert "2 undecided" in here
    assert "All of it holds." in there
    assert "1 reproduced" in there
    assert "laptop, seeds 1–3" in there


def test_what_a_paper_file_names_must_be_there(tmp_path, paper):
    for highlight, named in (({"depth": [1]}, "depth"), ({"position": [7]}, "no row")):
        with pytest.raises(InputError, match=f"highlight: .*{named}"):
            side_by_side(table(), highlight)
    with pytest.raises(InputError, match="'2' is no claim of the paper"):
        build(tmp_path, dict(paper, brief=BRIEF))


def test_every_string_is_escaped(tmp_path, item, paper):
    rows = table().assign(setting=[HOSTILE, "b", HOSTILE, HOSTILE, "b", HOSTILE])
    rows = rows.rename(columns={"temperature": HOSTILE})
    hostile = {**PROVENANCE, "datasets": {HOSTILE: "stand-in"}, "version": HOSTILE}
    judged = dict.fromkeys(("statement", "where", "measured", "reason", "judge"), HOSTILE)
    texts = dict.fromkeys(("title", "caption", "compared", "expected"), HOSTILE)
    items = [
        dict(
            item,
            **texts,
            table=rows,
            highlight=None,
            claims=[claim(**judged, verdict=NOT_TESTABLE, stands_on="simulation")],
            provenance=hostile,
        )
    ]
    settings = [setting(HOSTILE, hostile)]
    one = dict(paper, title=HOSTILE, citation=HOSTILE, items=items, settings=settings)
    for page in (build(tmp_path, one), overview(tmp_path, one)):
        assert "<script>alert" not in page
        assert page.count("<script") == 1, "ours"
        assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&#34;&amp;{{ 7 * 7 }}" in page


def test_elements_are_closed_images_have_text_and_size_and_parts_have_links(tmp_path, paper):
    page = build(tmp_path, dict(paper, claims=[claim(claim="2b", item="")]))
    whole = overview(tmp_path, paper)
    for each in (page, whole):
        opened, closed = (Counter(re.findall(rf"<{end}([a-z]\w*)", each)) for end in ("", "/"))
        assert opened - closed == Counter({name: opened[name] for name in VOID & opened.keys()})
        assert closed <= opened
    (image,) = re.findall("<img .*?>", page)
    for words in ('src="fig1.svg"', 'width="672" height="264"', "Figure 1: A title. A caption"):
        assert words in image
    assert "Compared with print:</span> As in print.</p>" in page
    (small,) = re.findall("<img .*?>", whole)
    assert 'src="sample2025/fig1.svg"' in small
    assert {"fig1", "claim-1", "claim-2b", "setting-misfit"} <= {*re.findall(r' id="(.*?)"', page)}
    links = re.findall(r'<a [^>]*href="(.*?)"', page)
    wanted = ("#fig1", "#claim-1", "#claim-2b", "./papers/sample2025/README.md", "../index.html")
    assert {*wanted} <= {*links}
    assert links.count("#setting-misfit") == 2, "the item's, and its own"
    assert {"sample2025/index.html#fig1", "sample2025/index.html#claim-1"} <= {
        *re.findall(r'<a [^>]*href="(.*?)"', whole)
    }


VOID = {"meta", "img", "link", "br", "input"}


def recorded(verdict, **run) -> dict:
    """What an earlier run said of a claim."""
    about = {"name": "laptop", "scale": "laptop", "seeds": "1–3", "changed": False, "date": ""}
    said = {"verdict": verdict, "cause": "", "reason": "", "measured": "", "stands_on": "stand-in"}
    return {**said, **about, **run}


def counts(page: str) -> dict[str, list[str]]:
    """The rows of the first table of verdicts: a number in each column."""
    body = page.split('<table class="standing">')[1].split("<tbody>")[1].split("</tbody>")[0]
    rows = (row.split("</th>") for row in body.split("</tr>")[:-1])
    return {
        head.rpartition(">")[2]: [
            cell.split(">")[1].split("<")[0] for cell in rest.split("<td")[1:]
        ]
        for head, rest in rows
    }


def test_this_run_and_recorded_runs_are_two_columns_everywhere(tmp_path, item, paper):
    longer = [
        recorded(REPRODUCED),
        recorded(UNDECIDED, name="ten_seeds-laptop", seeds="1–10", cause=SEEDS),
    ]
    judged = [
        claim(verdict=UNDECIDED, cause=ONE_SEED, reason="one seed", recorded=longer),
        claim(claim="2", verdict=CONTRADICTED, reason="too low", contradiction=SETTING),
        claim(claim="3", verdict=UNDECIDED, cause=GATE, recorded=[recorded(CONTRADICTED)]),
        claim(claim="5", verdict=NOT_TESTABLE, reason=f"fig2 {UNMADE}"),
    ]
    lone = claim(claim="4", verdict=NOT_TESTABLE, reason="no log", stands_on="real data")
    one = dict(paper, items=[dict(item, claims=judged)], claims=[lone])
    expected = {
        "reproduced": ["0", "0"],
        "contradicted": ["1", "1"],
        f"undecided: {OPEN}": ["0", "1"],
        f"undecided: {GATED}": ["1", "0"],
        f"undecided: {UNASKED}": ["1", "0"],
        "not testable": ["1", "0"],
        f"not testable: {LEFT_OUT}": ["1", "0"],
    }
    (tmp_path / "smoke").mkdir()
    for path in filter(Path.is_file, tmp_path.iterdir()):
        shutil.copy(path, tmp_path / "smoke")
    page, all_papers = build(tmp_path, one), overview(tmp_path / "smoke", one)
    write_scales(tmp_path)
    assert counts(page) == counts(all_papers) == expected
    assert "too low" in page
    # Neither a run that decides nor the one that was read first, but the one of ten seeds.
    assert 'recorded <span class="verdict undecided">' in all_papers
    assert "./papers/sample2025/judges/fits.py" in page
    assert (
        "make figures SCALE=laptop CONFIG=&#34;config/ten_seeds.yaml&#34; PAPERS=sample2025" in page
    )
    marks = all_papers.split('<p class="apart">')[1].split("</p>")[0]
    assert marks.strip() in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize("lost", ["digest", "authors_held", "megabytes"])
def test_a_page_of_an_earlier_version_is_one_that_still_runs(tmp_path, paper, lost):
    assert "Not finished" not in overview(tmp_path, paper)
    path = tmp_path / paper["key"] / "summary.json"
    summary = json.loads(path.read_text())
    for part in (summary, summary["provenance"], *summary["claims"]):
        part.pop(lost, None)
    path.write_text(json.dumps(summary))
    write_overview(tmp_path, [paper["key"]], **RUN)
    assert "Not finished: sample2025." in (tmp_path / "index.html").read_text()


def test_the_overview_has_papers_of_other_runs_and_names_what_is_not_finished(tmp_path, paper):
    page = overview(tmp_path, paper, waiting=["later2026"])
    assert "Not finished: later2026." in page
    assert "claims.csv" not in page, "which is made last"
    assert "claims.csv" in overview(tmp_path, paper, dict(paper, key="earlier2024", items=[]))
    write_overview(tmp_path, [paper["key"]], **RUN)
    page = (tmp_path / "index.html").read_text()
    assert page.index('id="sample2025"') < page.index('id="earlier2024"')


def test_a_table_has_its_first_numbers_as_a_small_picture(tmp_path, item, paper):
    cells = [["0", "$-3.000$", "$-2.500$"], ["1", "$-2.250$", "--"]]
    (tmp_path / "fig1.tex").write_text(
        booktabs(["temperature", "ours", "paper"], cells, columns="rrr")
    )
    text = dict(item, name="table1", kind="table", files={"tex": "fig1.tex"})
    overview(tmp_path, dict(paper, items=[text]))
    [shown] = json.loads((tmp_path / "sample2025" / "summary.json").read_text())["items"]
    assert shown["image"] is None
    assert shown["preview"] == [["0", "−3.000", "−2.500"], ["1", "−2.250", "–"]]


def test_each_metric_has_its_name_and_decimals(tmp_path, item, paper):
    rows = table().assign(metric="bias")
    one = rows.head(1).assign(low=np.nan, high=np.nan)
    ndcg, errors = one.assign(metric="ndcg@10", value=0.72864), one.assign(metric="click_mse")
    ours, theirs = errors.assign(value=8.7e-7), errors.assign(value=2e-5, source="published")
    whole = {"table": pd.concat([rows, ndcg, ours, theirs]), "highlight": None}
    both = dict(item, **whole, names={"metric": {"click_mse": "MSE of clicks"}})
    page = build(tmp_path, dict(paper, items=[both]))
    for text in ("−2.000", "0.7286", "8.7e−7", "2.0e−5", "−1.9e−5", ">MSE of clicks<", ">ndcg@10<"):
        assert text in page
    assert "click_mse" not in page
