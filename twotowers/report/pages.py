"""The pages: that of a paper, with its items beside the published numbers, its claims and its
settings; the overview of all papers of a scale; and what leads to the overviews.

`write_paper` turns a paper into one static html file, and a summary of it, of which the overview is
made whenever a paper's page is finished. What both show comes from the items' csv, the claims' rows
and the settings. Nothing is written here by hand, and what does not fit the schema stops the build.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twotowers.claims.claims import ORIGINS
from twotowers.claims.judging import COLUMNS
from twotowers.claims.recorded import SCALES
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

            An item has name, title, caption, compared, expected, kind, needs, headings, names and
            highlight (which values the page compares, by key column; None for all) as planned;
            `table`, its csv; `files`, links from the page by format; claims and provenance.

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


def write_overview(folder: str | Path, papers: Iterable[str], *, scale: str, version: str) -> None:
    """Write the overview, above the folders of the papers.

    `papers` are the keys of this run's; those without a summary are named as not finished. Papers
    of other runs that have one are shown too. Of jobs that write it at once, one may not know the
    other's paper; the last job of a run knows all.
    """
    folder = Path(folder)
    known = summaries(folder, papers)
    finished = list(known.values())
    views = [view for each in finished for view in each["views"]]
    render(
        "overview.html.j2",
        folder / PAGE,
        papers=finished,
        missing=[key for key in papers if key not in known],
        claims=views,
        standing=standing(views),
        origins=ORIGINS,
        scale=scale,
        version=version,
    )


def write_scales(figures: str | Path) -> None:
    """Write the page that leads to the overview of each scale, and that of findings.

    Findings of a paper are those of the largest scale at which its page is finished.
    """
    figures = Path(figures)
    finished = {
        scale: list(summaries(figures / scale).values())
        for scale in SCALES
        if (figures / scale / PAGE).exists()
    }
    render("scales.html.j2", figures / PAGE, scales=finished)
    best = {each["key"]: each for papers in finished.values() for each in papers}
    for each in best.values():
        by_number = {view["claim"]: view for view in each["views"]}
        # A run of some items judges some claims.
        own = [one for one in each["findings"] if one["claim"] in by_number]
        each["found"] = [(by_number[one["claim"]], one) for one in own]
    render("findings.html.j2", figures / "findings.html", papers=best.values())


def summaries(folder: str | Path, first: Iterable[str] = ()) -> dict[str, dict]:
    """What the finished papers of a scale left, by key, with `views` and `standing` of claims."""
    there = sorted(path.parent.name for path in Path(folder).glob(f"*/{SUMMARY}"))
    known = {}
    for key in dict.fromkeys([*first, *there]):
        if key not in there:
            continue
        summary = json.loads(Path(folder, key, SUMMARY).read_text(encoding="utf-8"))
        # One that another version wrote may lack something.
        if (
            summary.keys() >= set(SUMMARISED)
            and summary["provenance"].keys() >= set(PROVENANCE)
            and all(row.keys() >= set(CLAIM_COLUMNS) for row in summary["claims"])
        ):
            views = list(map(claim_view, summary["claims"]))
            known[key] = {**summary, "views": views, "standing": standing(views)}
    return known
