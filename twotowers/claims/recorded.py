"""Verdicts of earlier runs, kept with the paper: `papers/<key>/recorded/<name>.csv`.

`make record` writes them. A row has a claim, its verdict, and how it came about, so that a page can
show runs that are too long to repeat.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from twotowers.claims.claims import NOT_TESTABLE
from twotowers.claims.data_provenance import KINDS, REAL, UNVERIFIED
from twotowers.files.artefacts import atomic

SCALES = ("smoke", "laptop", "paper")
"""From the weakest evidence to the strongest."""
SEARCH = "search"
"""In the name of a run that searched training settings."""
VERDICT = ("claim", "measured", "verdict", "cause", "held", "reason", "stands_on")
"""What a row says of its claim."""
RUN = ("scale", "datasets", "seeds", "commit", "digest", "date", "processor", "seconds",
        "megabytes")  # fmt: skip
"""What it says of its run: `digest` is that of code and settings; `seconds` add up all jobs of the
paper on such a processor, `megabytes` the memory of the largest."""

Row = Mapping[str, object]


def write_recorded(path: str | Path, claims: Iterable[Row], about: Row) -> None:
    """Write the verdicts of a run."""
    rows = [{name: row[name] for name in VERDICT} | {name: about[name] for name in RUN}
            for row in claims]  # fmt: skip
    table = pd.DataFrame(rows, columns=[*VERDICT, *RUN])
    with atomic(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")


def read_recorded(paths: Iterable[str | Path], *, digest: str) -> dict[str, list[dict]]:
    """The verdicts of earlier runs by claim: each with its `name`, and whether code has `changed`.

    A run on real files is left out for a claim that stands on none of them, if it measured the
    same as a run without any.
    """
    runs: dict[str, list[dict]] = {}
    for path in map(Path, paths):
        table = pd.read_csv(path, keep_default_na=False, dtype=str)
        for row in table.to_dict("records"):
            # Older records have no cause.
            run = {"cause": "", **row, "name": path.stem, "changed": row["digest"] != digest}
            runs.setdefault(row["claim"], []).append(run)
    return {claim: _without_repeats(rows) for claim, rows in runs.items()}


def _without_repeats(rows: Sequence[dict]) -> list[dict]:
    """The rows, but for those of real files that repeat what a run without any measured."""

    def on_files(row: dict) -> bool:
        return any(kind in row["datasets"] for kind in (REAL, UNVERIFIED))

    measured = {row["measured"] for row in rows if not on_files(row)}
    return [
        row
        for row in rows
        if not on_files(row)
        or row["stands_on"] in (REAL, UNVERIFIED)
        or row["measured"] not in measured
    ]


def strongest(recorded: Sequence[Row]) -> Row | None:
    """The recorded verdict that is the strongest evidence; None if there is none.

    Evidence is the stronger, first, if the claim could be tested, then if code and settings are
    those of today, then beyond scale smoke. Then by the data that it stands on, by the scale, and
    by the number of seeds. Whether it decides the claim plays no part: who takes the run that
    decides has stopped at a result. A search of training settings is no evidence.
    """
    evidence = [row for row in recorded if SEARCH not in str(row["name"])]
    return max(evidence, key=strength, default=None)


def strength(row: Row) -> tuple:
    """What evidence is sorted by: see `strongest`."""
    data = -list(KINDS).index(str(row["stands_on"]))
    tested = row["verdict"] != NOT_TESTABLE
    scale, seeds = SCALES.index(str(row["scale"])), _seed_count(str(row["seeds"]))
    return tested, not row["changed"], scale > 0, data, scale, seeds


def _seed_count(seeds: str) -> int:
    """The number of seeds in a text (`twotowers.report.words.seed_range`): 4 in '1–3, 7'."""
    ends = [[int(end) for end in part.split("–")] for part in seeds.split(", ") if part]
    return sum(last[-1] - last[0] + 1 for last in ends)
