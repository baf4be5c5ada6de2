"""The page in a real browser: sound at a desk and on a phone, and the checker can say no."""

import re

import numpy as np
import pandas as pd
import pytest

from tests.browser import check_page, find_chromium
from twotowers.report import figures
from twotowers.report import page as report
from twotowers.results.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="Chromium is not installed (apt-get install chromium)"
)

DESK, PHONE = 1280, 390
TEMPERATURES = (0, 0.333, 0.666, 1)
SETTINGS = ("misfit-linear", "misfit-omitted", "misfit-expert")
LONG = "a setting with a remarkably_long_name_without_any_place_to_break_it_across_lines"
PROVENANCE = {
    "datasets": {"mslr30k": True},
    "scale": "laptop",
    "seeds": [2021, 2022, 2023],
    "version": "0.1.0-12-g7e674a0",
    "seconds": 83.2,
}


def bias_table(settings=SETTINGS, temperatures=TEMPERATURES) -> pd.DataFrame:
    """Made-up position bias: the truth, displaced the more, the lower the temperature."""
    grid = pd.MultiIndex.from_product(
        [settings, temperatures, range(1, 26), report.SOURCES],
        names=["setting", "temperature", "position", "source"],
    ).to_frame(index=False)
    logs = np.log(grid["position"])
    shift = 1 + (0.35 - 0.4 * grid["temperature"]) + grid["setting"].map(len) / 60 - 0.25
    value = -logs * shift - 0.05 * (grid["source"] == "published") * logs
    band = 0.02 + 0.02 * logs
    return grid.assign(value=value, low=value - band, high=value + band, n=3, metric="bias")


def ndcg_table() -> pd.DataFrame:
    """Made-up nDCG@10 against the strength of the logging policy."""
    grid = pd.MultiIndex.from_product(
        [TEMPERATURES, (-1, -0.666, -0.333, 0, 0.333, 0.666, 1), report.SOURCES],
        names=["temperature", "strength", "source"],
    ).to_frame(index=False)
    value = 0.729 - 0.013 * grid["strength"].abs() ** 1.5 * (1 - grid["temperature"])
    value -= 0.001 * (grid["source"] == "published")
    return grid.assign(value=value, low=value - 0.001, high=value + 0.001)


def long_table() -> pd.DataFrame:
    """Two hundred rows whose names hardly fit anywhere."""
    rows = pd.DataFrame({"setting": LONG, "query-document pair": range(200), "strength": -0.333})
    rows["relevance model"] = np.where(rows.index % 2, "embedding", LONG)
    rows = rows.assign(value=np.linspace(-3.2, 0, 200), low=np.nan, high=np.nan)
    parts = [rows.assign(source=source) for source in report.SOURCES]
    return pd.concat(parts, ignore_index=True)


def bias_figure(folder, name, settings=SETTINGS) -> dict[str, str]:
    """Draw a row of position bias panels; returns links relative to `folder`."""
    table = bias_table(settings)
    with figures.style():
        width = figures.PAGE_WIDTH if len(settings) > 1 else figures.COLUMN_WIDTH
        figure, axes = figures.panels(len(settings), width=width)
        for setting, panel in zip(settings, axes.flat, strict=True):
            rows = table[table["setting"] == setting]
            figures.position_bias_panel(panel, rows, truth=-np.log(np.arange(1, 26)))
            panel.set_title(setting)
        return finish(figure, folder, name)


def ndcg_figure(folder, name) -> dict[str, str]:
    """Draw one nDCG panel; returns links relative to `folder`."""
    with figures.style():
        figure, axes = figures.panels(1, width=figures.COLUMN_WIDTH, panel_height=2.4)
        figures.line_panel(axes[0, 0], ndcg_table(), x="strength", xlabel="Policy strength α")
        return finish(figure, folder, name)


def finish(figure, folder, name) -> dict[str, str]:
    """Legend, footer, files."""
    figures.shared_legend(figure)
    figures.source_note(figure, "Stand-in data (mslr30k), scale laptop, seeds 2021–2023")
    links = {kind: f"sample/{name}.{kind}" for kind in ("csv", "pdf", "svg")}
    figures.save(figure, [folder / links["svg"], folder / links["pdf"]])
    (folder / links["csv"]).write_text("value\n")
    return links


def claim(number, item, verdict, **other) -> dict:
    """One judged claim."""
    row = {
        "paper": "sample2025",
        "claim": number,
        "item": item,
        "statement": "The estimate is displaced further from the truth, the less the rankings "
        "are randomised (linear tower on non-linear relevance)",
        "where": "Sec. 8.2, Fig. 3",
        "measured": "displacement .402 > .121 > .055 (tau 0, .333, .666); err -.613 to -.114",
        "authors": "displacement .812 > .141 > .062 (tau 0, .333, .666); err -1.914 to -.211",
        "expected": "grows strictly as tau falls; at tau 0 below the truth from position 5 on",
        "verdict": verdict,
        "reason": "",
    }
    return {**row, **other}


def item(name, title, files, table, claims=(), **other) -> report.ItemPage:
    """An item of the made-up paper."""
    fields = {
        "caption": "Position bias estimated from clicks on rankings of four temperatures, mean "
        "over seeds with 95 % intervals; published means dashed, the truth −ln k dotted.",
        "expected": "Only fully random rankings (τ = 1) come close to the truth; the lower the "
        "temperature, the further below it the estimate lies.",
        "kind": "figure" if "svg" in files else "table",
        "highlight": None,
        "provenance": PROVENANCE,
    }
    return report.ItemPage(
        name=name, title=title, files=files, table=table, claims=claims, **{**fields, **other}
    )


def sample_page(folder):
    """Build a page of eight items in `folder`; returns its path."""
    (folder / "sample").mkdir(parents=True)
    (folder / "sample" / "README.md").write_text("What differs, and why.\n")
    (folder / "sample" / "table1.tex").write_text("% a table\n")
    (folder / "sample" / "table1.csv").write_text("value\n")
    ends = {"position": [5, 10, 25]}
    texts = {kind: f"sample/table1.{kind}" for kind in ("csv", "tex")}
    failed = claim(
        "5b", "fig3", NOT_REPRODUCED, reason="fails: less than half of the error at tau 0"
    )
    untestable = claim(
        "10", "fig7", NOT_TESTABLE, measured="", reason="no results at strength 0.333"
    )
    items = [
        item("fig1", "nDCG@10 against policy strength", ndcg_figure(folder, "fig1"), ndcg_table()),
        item(
            "fig2",
            "Well-specified models recover the truth",
            bias_figure(folder, "fig2"),
            bias_table(),
            [claim(f"1{letter}", "fig2", REPRODUCED) for letter in "ab"],
            highlight=ends,
        ),
        item(
            "fig3",
            "Misspecified models are confounded by the logging policy",
            bias_figure(folder, "fig3"),
            bias_table(),
            [claim("4", "fig3", REPRODUCED), failed],
            highlight=ends,
        ),
        item(
            "fig3a",
            "One column wide",
            bias_figure(folder, "fig3a", SETTINGS[:1]),
            bias_table(SETTINGS[:1]),
            highlight={"position": [10]},
        ),
        item(
            "fig7",
            "Ranking under mismatch",
            ndcg_figure(folder, "fig7"),
            ndcg_table().query("source == 'reproduced'"),
            [untestable],
            highlight={"strength": [-1, 0, 1]},
        ),
        item("table1", f"Two hundred rows of {LONG}", texts, long_table()),
        item("appendixA", "Bias features beyond position", texts, long_table().head(20)),
        item("identification", LONG, texts, long_table().tail(20), [claim("13", "", REPRODUCED)]),
    ]
    paper = report.PaperPage(
        key="sample2025",
        title="Unidentified and Confounded? A Made-up Paper with a Title of Ordinary Length",
        citation="A. Author, B. Writer and C. Scribe. In Proceedings of Nothing (NIL ’25), 2025. "
        f"https://doi.example/{LONG}",
        items=items,
        provenance={**PROVENANCE, "seconds": 812.4},
        readme="sample/README.md",
        claims=[claim("11", "", REPRODUCED)],
    )
    # Written after the page, which links it.
    (folder / "ro-crate-metadata.json").write_text("{}\n")
    page = folder / "index.html"
    report.build_page([paper], page, provenance={**PROVENANCE, "seconds": 812.4})
    return page


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return sample_page(tmp_path_factory.mktemp("page") / "figures")


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_a_page_of_eight_items_is_sound(page, width):
    assert check_page(page, width) == []


HEAD = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<div id="bar" style="width:500px">wide</div>', "sideways scroll: 5.. px at 390 px.*#bar"),
        ("<p>" + "unbreakable" * 20 + "</p>", "sideways scroll"),
        ('<img src="missing.svg" alt="none">', "image does not load: missing.svg"),
        ('<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">', "image without alt text"),
        ("<script>console.error('oh no')</script>", "console error: oh no"),
        ("<script>undefined.name</script>", "script error"),
        ('<a href="#nowhere">x</a>', "link to no anchor: #nowhere"),
        ('<a href="nothing.csv">x</a>', "link to no file: .*nothing.csv"),
        ('<p id="a"></p><p id="a"></p>', "id occurs twice: a"),
        ('<img src="http://127.0.0.1:9/x.png" alt="x">', "request that leaves the disk"),
    ],
)
def test_the_checker_finds_a_broken_page(tmp_path, body, problem):
    path = tmp_path / "broken.html"
    path.write_text(HEAD + body)
    found = check_page(path, PHONE)
    assert any(re.search(problem, line) for line in found), found


def test_a_page_without_a_phone_viewport_is_found(tmp_path):
    path = tmp_path / "desk.html"
    path.write_text("<!DOCTYPE html><p>narrow")
    assert any("the viewport is 980 px wide" in line for line in check_page(path, PHONE))


def test_what_scrolls_inside_its_own_container_is_no_problem(tmp_path):
    path = tmp_path / "inside.html"
    path.write_text(HEAD + '<div style="overflow-x:auto"><p style="width:900px">wide</p></div>')
    assert check_page(path, PHONE) == []
