"""The page of a paper: its items beside the published numbers, its claims, its settings.

`write_paper` turns a paper into one static html file, and a summary of it for the overview. What
both show comes from the items' csv, the claims' rows and the settings. Nothing is written here by
hand, and what does not fit the schema stops the build.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twotowers.claims.judging import COLUMNS
from twotowers.errors import check_choice
from twotowers.files.artefacts import atomic
from twotowers.report.comparison import comparison_view
from twotowers.report.evidence import by_verdict, claim_view, columns, conclusion, standing, tally
from twotowers.report.printed import printed
from twotowers.report.rendering import link, render, svg_size
from twotowers.report.words import printed_name

CLAIM_COLUMNS = ("paper", *COLUMNS)
FORMATS = ("csv", "pdf", "svg", "tex")

PAGE, SUMMARY = "index.html", "summary.json"
OF_PAGE = ("key", "title", "citation", "provenance", "digest", "findings")
"""What a summary has of the page."""
SUMMARISED = (*OF_PAGE, "items", "claims", "gates")
"""What a summary has; one that another version wrote may lack some of it."""
PROVENANCE = ("datasets", "scale", "seeds", "version", "seconds", "megabytes")
"""What a page says of a run. `datasets` has the kind of each data set. `seconds` are the
processor time of all jobs. `megabytes` are the memory of the largest job."""

PREVIEW = 7, 5
"""Rows and columns of the small picture of a table."""


Page = Mapping[str, Any]
"""A part of a page, as `scripts.build_page` makes it of what the plan says and jobs have made."""


def write_paper(paper: Page, folder: str | Path) -> None:
    """Write a paper's page, and its summary for the overview.

    Args:
        paper: key, title, citation, brief, digest and replaced of
            `twotowers.workflow.descriptions.page_paper`; `root`, the link from the page to the
            project's folder; findings (`twotowers.claims.findings.measured`); provenance, items,
            settings, and claims, rows of the claims csv that belong to no item. All such rows may
            have `recorded`, the verdicts of earlier runs. A provenance has PROVENANCE.

            An item has name, title, caption, expected, kind, needs, headings, names and highlight
            (which values the page compares, by key column; None for all) as planned; `table`, its
            csv; `files`, links from the page by format; claims and provenance.

            A setting or study has name, kind, `text`, all that it was run with; provenance; and
            `gates`, texts of the gates of its fits, and whether each fails.
        folder: of the page.
    """
    folder = Path(folder)
    view = _paper_view(paper, folder)
    render("paper.html.j2", folder / PAGE, paper=view)
    with atomic(folder / SUMMARY) as temporary:
        text = json.dumps(_summary(paper, view), indent=1, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def _paper_view(paper: Page, folder: Path) -> dict:
    """What the template needs of a paper."""
    views = list(map(claim_view, _rows(paper)))
    return {
        **paper,
        "brief": paper["brief"] and _brief_view(paper["brief"], views),
        "root": link(paper["root"]),
        "standing": standing(views),
        "items": [_item_view(item, folder) for item in paper["items"]],
        "claims": list(map(claim_view, paper["claims"])),
        "found": {each["claim"] for each in paper["findings"]},
        "failing": [
            each["name"] for each in paper["settings"] if any(fails for _, fails in each["gates"])
        ],
        "gated": sum(bool(each["gates"]) for each in paper["settings"]),
    }


def _brief_view(brief: Mapping, views: Sequence[Mapping]) -> dict:
    """What the template needs of a brief: the claims that decide, by this run and by records."""
    by_number = {view["claim"]: view for view in views}
    for number in brief["claims"]:
        check_choice(number, by_number, field="brief.claims", what="no claim of the paper")
    decisive = [by_number[number] for number in brief["claims"]]
    return {
        **brief,
        "claims": decisive,
        "answers": {
            name: (conclusion(tally(rows)), by_verdict(rows))
            for name, rows in columns(decisive).items()
            if rows
        },
    }


def _item_view(item: Page, folder: Path) -> dict:
    """What the template needs of an item."""
    links = {name: link(item["files"][name]) for name in FORMATS if name in item["files"]}
    return {
        **item,
        "label": printed_name(item["name"]),
        "image": links.get("svg"),
        "size": svg_size(folder / item["files"]["svg"]) if "svg" in links else None,
        "links": links,
        "printed": printed((folder / item["files"]["tex"]).read_text("utf-8"))
        if "tex" in links
        else [],
        "comparison": comparison_view(
            item["table"], item["highlight"], item["headings"], item["names"]
        ),
        "tally": tally(item["claims"]),
        "claims": list(map(claim_view, item["claims"])),
    }


def _summary(paper: Page, view: Mapping[str, object]) -> dict:
    """What the overview shows of a paper; links are relative to the paper's folder."""
    shown = ("name", "label", "title", "image", "size", "tally")
    return {
        **{word: view[word] for word in OF_PAGE},
        "items": [
            {**{word: item[word] for word in shown}, "preview": _preview(item["printed"])}
            for item in view["items"]
        ],
        "claims": sorted(_rows(paper), key=_number),
        "gates": [
            [setting["name"], text]
            for setting in paper["settings"]
            for text, fails in setting["gates"]
            if fails
        ],
    }


def _preview(tables: Sequence) -> list[list[str]]:
    """The first rows of a table, as a small picture of it."""
    rows, columns = PREVIEW
    shown = [row for table in tables[:1] for group in table[1:] for row in group][:rows]
    # The numbers are what a table is for: texts before them are cut.
    return [[cell.text for cell in row][-columns:] for row in shown]


def _number(row: Mapping) -> tuple[int, str]:
    """9b comes before 10a."""
    return int(re.match(r"\d+", row["claim"])[0]), row["claim"]


def _rows(paper: Page) -> list[Mapping[str, object]]:
    """Every claim of a paper, of its items first."""
    return [
        row
        for rows in (*(item["claims"] for item in paper["items"]), paper["claims"])
        for row in rows
    ]
