"""Verdicts of earlier runs, kept with the paper: `papers/<key>/recorded/<name>.csv`.

`make record` writes them. A row has a claim, what was found, and what it was found with, so that a
page can show runs that are too long to repeat beside this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from twotowers.claims.claims import NOT_TESTABLE, UNDECIDED
from twotowers.claims.standing import KINDS, REAL, UNVERIFIED
from twotowers.errors import InputError, check_choice
from twotowers.files.artefacts import atomic

SCALES = ("smoke", "laptop", "paper")
"""From the weakest evidence to the strongest."""
FOUND = ("claim", "measured", "verdict", "held", "reason", "stands_on")
"""What was found."""
WITH = ("scale", "datasets", "seeds", "commit", "digest", "date", "processor", "seconds",
        "megabytes")  # fmt: skip
"""What it was found with: `digest` is that of the code and settings, `seconds` those of all jobs of
the paper on such a processor, `megabytes` the memory of the largest."""

SEEDS = r"(\d+(–\d+)?(, |$))*"
"""Seeds in words (`twotowers.report.words.seed_range`)."""

Row = Mapping[str, object]


def write_recorded(path: str | Path, claims: Iterable[Row], about: Row) -> None:
    """Write the verdicts of a run.

    Args:
        path: papers/<key>/recorded/<name>.csv.
        claims: Rows of the claims csv.
        about: The values of WITH.
    """
    rows = [{name: row[name] for name in FOUND} | {name: about[name] for name in WITH}
            for row in claims]  # fmt: skip
    table = pd.DataFrame(rows, columns=[*FOUND, *WITH])
    with atomic(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")


def read_recorded(paths: Iterable[str | Path], *, digest: str) -> dict[str, list[dict]]:
    """By claim: what earlier runs found of it, each with its `name`, and whether it has `changed`.

    A run on real files is left out for a claim that stands on none of them, if it measured the
    same as a run without any.

    Args:
        paths: Files of one paper.
        digest: Of the code and settings today.
    """
    found: dict[str, list[dict]] = {}
    for path in map(Path, paths):
        table = pd.read_csv(path, keep_default_na=False, dtype=str)
        for column in (*FOUND, *WITH):
            if column not in table:
                raise InputError("the column is missing", path=path, field=column)
        for row in table.to_dict("records"):
            check_choice(row["scale"], SCALES, field="scale", path=path)
            if not re.fullmatch(SEEDS, row["seeds"]):
                raise InputError(
                    f"{row['seeds']!r} was found",
                    path=path,
                    field="seeds",
                    expected="numbers, such as 7 or 1–3, 7",
                )
            told = row | {"name": path.stem, "changed": row["digest"] != digest}
            found.setdefault(row["claim"], []).append(told)
    return {claim: _without_repeats(rows) for claim, rows in found.items()}


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


def strongest(here: Row, recorded: Sequence[Row], *, scale: str, seeds: str) -> Row | None:
    """The recorded verdict that is stronger evidence than this run's; None if there is none.

    Evidence is the stronger, first, if the claim could be tested, then if code and settings are
    those of today, then beyond scale smoke, then if it decides the claim, either way: an undecided
    one says that its run cannot tell. Then by the data that it stands on, by the scale, and by the
    number of seeds.

    Args:
        here: The row of this run.
        recorded: Of the same claim, from `read_recorded`.
        scale: Of this run.
        seeds: Of this run, in words: 1–3.

    Example:
        >>> here = {"verdict": "undecided", "stands_on": "stand-in"}
        >>> longer = {**here, "verdict": "reproduced", "changed": False}
        >>> longer |= {"scale": "laptop", "seeds": "1–10"}
        >>> strongest(here, [longer], scale="laptop", seeds="1–3")["verdict"]
        'reproduced'
        >>> strongest(here, [{**longer, "changed": True}], scale="laptop", seeds="1–3")
    """
    if not recorded:
        return None
    own = {**here, "scale": scale, "seeds": seeds, "changed": False}
    best = max([own, *recorded], key=strength)
    return None if best is own else best


def strength(row: Row) -> tuple:
    """What evidence is sorted by: see `strongest`."""
    data = -list(KINDS).index(str(row["stands_on"]))
    tested, decided = row["verdict"] != NOT_TESTABLE, row["verdict"] != UNDECIDED
    scale = SCALES.index(str(row["scale"]))
    return tested, not row["changed"], scale > 0, decided, data, scale, _number(str(row["seeds"]))


def _number(seeds: str) -> int:
    """How many seeds some words name, such as 7 or 1–3, 7."""
    ends = [[int(end) for end in part.split("–")] for part in seeds.split(", ") if part]
    return sum(last[-1] - last[0] + 1 for last in ends)
