"""The verdicts of the papers' pages -> papers/<key>/recorded/<name>.csv, which is kept in git.

Gates that fail go to recorded/gates/<name>.csv.

`make record SCALE=paper PAPERS=zhang2023` makes the pages first, and calls this. The tables of
docs/verdicts follow from these files.
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from scripts.export_verdicts import of_records, write
from twotowers.claims.recorded import write_recorded
from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.files.yamls import read_yaml
from twotowers.report.pages import SUMMARY
from twotowers.report.words import seed_range
from twotowers.root import ROOT
from twotowers.workflow.records import processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--scale", required=True)
    parser.add_argument("--config", nargs="*", default=[], help="configuration files of the run")
    parser.add_argument("--papers", nargs="*", default=[], help="papers; all of the run if absent")
    given = parser.parse_args()
    settings = {}
    for path in ("config.yaml", *given.config):
        settings |= read_yaml(path)
    name = "-".join([*(Path(path).stem for path in given.config), given.scale])
    for paper in given.papers or settings["papers"]:
        record(Path(settings["figures"]) / given.scale, paper, name=name, scale=given.scale)
    write(of_records())


def record(figures: Path, paper: str, *, name: str, scale: str, root: Path = ROOT) -> Path:
    """Keep the verdicts of a finished page, under a name: the configuration and the scale."""
    path = figures / paper / SUMMARY
    summary = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if summary is None or summary["provenance"]["scale"] != scale:
        raise InputError(f"no page of {paper} at scale {scale}", path=path, expected="make figures")
    about, commit = summary["provenance"], summary["provenance"]["version"]
    if commit == "unknown" or commit.endswith("-dirty"):
        made, wanted = "the page was made by code in no commit", "a commit, then make record again"
        raise InputError(made, path=path, field="version", expected=wanted)
    kept = root / "papers" / paper / "recorded" / f"{name}.csv"
    write_recorded(
        kept,
        summary["claims"],
        {
            "scale": scale,
            "datasets": "; ".join(f"{each}: {kind}" for each, kind in about["datasets"].items()),
            "seeds": seed_range(about["seeds"]),
            "commit": commit,
            "digest": summary["digest"],
            "date": datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat(),
            "processor": processor(),
            **{name: about[name] and round(about[name]) for name in ("seconds", "megabytes")},
        },
    )
    failing = pd.DataFrame(summary["gates"], columns=["setting", "text"])
    with atomic(kept.parent / "gates" / kept.name) as temporary:
        failing.to_csv(temporary, index=False, lineterminator="\n")
    print(f"{len(summary['claims'])} verdicts kept in {kept}")
    return kept


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
