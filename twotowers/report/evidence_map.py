"""The map of claims by evidence: a square for each claim and each kind of evidence on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twotowers.claims.judging import AUTHORS
from twotowers.claims.recorded import strength
from twotowers.claims.standing import REAL, UNVERIFIED

BY_AUTHORS = {word: verdict for verdict, word in AUTHORS.items()}
KINDS = ("the authors’ results", "this run", "recorded runs", "real or unverified data")
"""Where a verdict may come from."""


def evidence_map(rows: Sequence[dict], *, scale: str, seeds: str) -> list[dict]:
    """What the template needs of a paper.

    Args:
        rows: Its claims, each with what was `recorded` of it.
        scale, seeds: Of this run, in words.

    Returns:
        A row per kind of evidence that any claim has: its `name`, and the `verdicts` of all claims,
        an empty text where there is none. Of several recorded runs the strongest counts.
    """
    run = {"scale": scale, "seeds": seeds, "changed": False}
    found = [_verdicts(row | run, row.get("recorded", ())) for row in rows]
    lines = ({"name": name, "verdicts": [each[name] for each in found]} for name in KINDS)
    return [line for line in lines if any(line["verdicts"])]


def _verdicts(row: Mapping, recorded: Sequence[Mapping]) -> dict[str, str]:
    theirs = BY_AUTHORS.get(row["authors_verdict"], "")
    real = _best([run for run in (row, *recorded) if run["stands_on"] in (REAL, UNVERIFIED)])
    return dict(zip(KINDS, (theirs, row["verdict"], _best(recorded), real), strict=True))


def _best(runs: Sequence[Mapping]) -> str:
    return max(runs, key=strength)["verdict"] if runs else ""
