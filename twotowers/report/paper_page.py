"""The page of a paper: its items beside the published numbers, its claims, its settings.

`write_paper` turns a paper into one static html file, and a summary of it for the overview. What
both show comes from the items' csv, the claims' rows and the settings. Nothing is written here by
hand, and what does not fit the schema stops the build.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from twotowers.claims.judging import COLUMNS
from twotowers.errors import check_choice
from twotowers.files.artefacts import atomic
from twotowers.report.comparison import comparison_view
from twotowers.report.evidence import claim_view, columns, conclusion, standing, tally
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


@dataclass(frozen=True)
class ItemPage:
    """One table or figure, as the page shows it.

    Attributes:
        name: As printed in the paper: fig1, table2, fig3a.
        title: A few words.
        caption: What is drawn.
        expected: What is expected to be seen.
        kind: 'figure' or 'table'.
        table: The item's csv, in long form: key columns, value, low, high, source.
        highlight: From key column to the values that the page compares; None compares all.
        claims: Rows of the claims csv that belong to this item.
        files: From format (csv, pdf, svg, tex) to a link relative to the page.
        needs: The settings and studies that it is drawn from.
        provenance: PROVENANCE.
        headings: What key columns are called, if not by their names.
        names: The same of the values of some of them, such as metrics and settings.
    """

    name: str
    title: str
    caption: str
    expected: str
    kind: str
    table: pd.DataFrame
    highlight: Mapping[str, Sequence[Hashable]] | None
    claims: Sequence[Mapping[str, object]]
    files: Mapping[str, str]
    needs: Sequence[str]
    provenance: Mapping[str, object]
    headings: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class SettingPage:
    """One setting or study, as the page shows it.

    Attributes:
        name: As in experiment.yaml.
        kind: 'setting' or 'study'.
        text: All that it was run with, as YAML.
        provenance: Like an item's.
        gates: Texts of the gates of its fits, and whether each fails.
    """

    name: str
    kind: str
    text: str
    provenance: Mapping[str, object]
    gates: Sequence[tuple[str, bool]] = ()

    @property
    def fails(self) -> bool:
        """Whether a gate fails."""
        return any(fails for _, fails in self.gates)


@dataclass(frozen=True)
class PaperPage:
    """One paper, as the page shows it.

    Attributes:
        key: The paper's folder: hager2025.
        title, citation: As printed.
        items: In the order of the paper.
        settings: Settings and studies that items are drawn from.
        provenance: Like an item's, over the whole paper.
        root: Link, relative to the page, to the project's folder.
        claims: Rows of the claims csv that belong to no single item. All rows of claims may have
            `recorded`, the verdicts of earlier runs (`twotowers.claims.recorded`).
        brief: The question, the authors' answer, what to doubt, and the claims that decide:
            `twotowers.experiment.paper.Brief`.
        digest: Of the code and settings behind its verdicts.
        findings: Sentences that fail (`twotowers.claims.findings.measured`).
        replaced: From data sets of the paper to those that a configuration put in their place.
    """

    key: str
    title: str
    citation: str
    items: Sequence[ItemPage]
    settings: Sequence[SettingPage]
    provenance: Mapping[str, object]
    root: str
    claims: Sequence[Mapping[str, object]] = ()
    brief: Mapping[str, object] | None = None
    digest: str = ""
    findings: Sequence[Mapping[str, object]] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)


def write_paper(paper: PaperPage, folder: str | Path) -> None:
    """Write a paper's page, and its summary for the overview."""
    folder = Path(folder)
    view = _paper_view(paper, folder)
    render("paper.html.j2", folder / PAGE, paper=view)
    with atomic(folder / SUMMARY) as temporary:
        text = json.dumps(_summary(paper, view), indent=1, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def _paper_view(paper: PaperPage, folder: Path) -> dict:
    """What the template needs of a paper."""
    views = list(map(claim_view, _rows(paper)))
    return vars(paper) | {
        "brief": paper.brief and _brief_view(paper.brief, views),
        "root": link(paper.root),
        "standing": standing(views),
        "items": [_item_view(item, folder) for item in paper.items],
        "claims": list(map(claim_view, paper.claims)),
        "found": {each["claim"] for each in paper.findings},
        "failing": [setting.name for setting in paper.settings if setting.fails],
        "gated": sum(bool(setting.gates) for setting in paper.settings),
    }


def _brief_view(brief: Mapping, views: Sequence[Mapping]) -> dict:
    """What the template needs of a brief: the claims that decide, by this run and by records."""
    by_number = {view["claim"]: view for view in views}
    for number in brief["claims"]:
        check_choice(number, by_number, field="brief.claims", what="no claim of the paper")
    decisive = [by_number[number] for number in brief["claims"]]
    counts = {name: tally(rows) for name, rows in columns(decisive).items()}
    return {
        **brief,
        "claims": decisive,
        "answers": {
            name: (conclusion(own), own) for name, own in counts.items() if any(own.values())
        },
    }


def _item_view(item: ItemPage, folder: Path) -> dict:
    """What the template needs of an item."""
    links = {name: link(item.files[name]) for name in FORMATS if name in item.files}
    return vars(item) | {
        "label": printed_name(item.name),
        "image": links.get("svg"),
        "size": svg_size(folder / item.files["svg"]) if "svg" in links else None,
        "links": links,
        "printed": printed((folder / item.files["tex"]).read_text("utf-8"))
        if "tex" in links
        else [],
        "comparison": comparison_view(item.table, item.highlight, item.headings, item.names),
        "tally": tally(item.claims),
        "claims": list(map(claim_view, item.claims)),
    }


def _summary(paper: PaperPage, view: Mapping[str, object]) -> dict:
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
            [setting.name, text]
            for setting in paper.settings
            for text, fails in setting.gates
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


def _rows(paper: PaperPage) -> list[Mapping[str, object]]:
    """Every claim of a paper, of its items first."""
    return [row for rows in (*(item.claims for item in paper.items), paper.claims) for row in rows]
