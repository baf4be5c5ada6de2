"""The overview of all papers of a scale, made of the summaries that their pages leave.

It is written whenever a paper's page is finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from twotowers.claims.claims import ORIGINS
from twotowers.claims.recorded import SCALES
from twotowers.report.evidence import claim_view, standing
from twotowers.report.paper_page import CLAIM_COLUMNS, PAGE, PROVENANCE, SUMMARISED, SUMMARY
from twotowers.report.rendering import render


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
