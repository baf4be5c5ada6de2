"""All papers' summaries -> the overview, the claims in one csv, and the page of scales."""

from os.path import dirname

import pandas as pd

from scripts.runner import job
from twotowers.files.artefacts import atomic
from twotowers.report.pages import CLAIM_COLUMNS, summaries, write_overview, write_scales


@job
def main(inputs, outputs, *, papers: list[str], scale: str, version: str) -> None:
    """Write overview and claims, when the summaries of all papers are there."""
    folder = dirname(outputs.overview)
    rows = [
        {**view, "recorded_verdict": (best := view["best"] or {}).get("verdict", "")}
        | {"recorded_run": best.get("name", "")}
        for paper in summaries(folder, papers).values()
        for view in paper["views"]
    ]
    with atomic(outputs.claims) as path:
        table = pd.DataFrame(rows, columns=[*CLAIM_COLUMNS, "recorded_verdict", "recorded_run"])
        table.to_csv(path, index=False, lineterminator="\n")
    write_overview(folder, papers, scale=scale, version=version)
    write_scales(dirname(folder))
