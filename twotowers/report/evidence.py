"""A claim as pages show it: what this run says of it, and what recorded runs say.

Both stand side by side wherever verdicts are shown or counted, on a paper's page, on the overview
and on the page of scales, so that no two pages disagree.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from twotowers.claims.claims import (
    CONTRADICTED,
    GATE,
    NOT_TESTABLE,
    ONE_SEED,
    REPRODUCED,
    RUNS,
    UNDECIDED,
)
from twotowers.claims.data_provenance import KINDS
from twotowers.claims.judging import AUTHORS, CONTRADICTIONS, UNMADE, contradiction
from twotowers.claims.recorded import strength, strongest

VERDICTS = {REPRODUCED: "✓", CONTRADICTED: "✗", UNDECIDED: "?", NOT_TESTABLE: "○"}
"""Every verdict and its sign."""
OPEN, GATED, UNASKED = "more seeds could decide", "fits fail a gate", "not asked at this scale"
LEFT_OUT = "not made at this scale"
STATES = {
    REPRODUCED: REPRODUCED,
    CONTRADICTED: CONTRADICTED,
    OPEN: UNDECIDED,
    GATED: UNDECIDED,
    UNASKED: UNDECIDED,
    NOT_TESTABLE: NOT_TESTABLE,
    LEFT_OUT: NOT_TESTABLE,
}
"""Verdicts, where undecided ones are divided by what would decide them -> the verdict."""
_OF_CAUSE = {GATE: GATED, ONE_SEED: UNASKED, RUNS: UNASKED}

Row = Mapping[str, object]


def state(row: Row) -> str:
    """One of STATES, of a claim's row or of what a run recorded.

    >>> state({"verdict": "undecided", "cause": "one seed", "reason": ""})
    'not asked at this scale'
    """
    if row["verdict"] == UNDECIDED:
        return _OF_CAUSE.get(str(row["cause"]), OPEN)
    return LEFT_OUT if str(row["reason"]).endswith(UNMADE) else str(row["verdict"])


def claim_view(row: Row) -> dict:
    """A row of the claims csv, with what was `recorded` of it, and the strongest recorded verdict.

    Its columns; `fails_theirs`, the kind of contradiction if the claim fails on its authors'
    numbers; `fails_on`, the kind if it fails on those of this run; `best`, the row with the
    strongest recorded verdict in the place of its own, or None; `groups`, recorded runs by verdict,
    the strongest first in each, with `fails_on` as well; and `kinds`, of contradictions here and
    there.
    """
    theirs = row["authors_verdict"] == AUTHORS[CONTRADICTED]

    def of_run(run: Row) -> dict:
        whole = {**row, **run}
        kind = contradiction(whole)
        fails_on = kind if run["verdict"] == CONTRADICTED and not theirs else ""
        return {**whole, "contradiction": kind, "fails_on": fails_on}

    runs = sorted(row.get("recorded", ()), key=strength, reverse=True)
    best = strongest(runs)
    groups: dict[str, list[Row]] = {}
    for run in runs:
        groups.setdefault(run["verdict"], []).append(of_run(run))
    own = of_run(row)
    views = [own, *([] if best is None else [of_run(best)])]
    kinds = [each["contradiction"] for each in views]
    return {
        **own,
        "fails_theirs": own["contradiction"] if theirs else "",
        "best": None if best is None else views[-1],
        "groups": list(groups.values()),
        "kinds": [*dict.fromkeys(filter(None, kinds))],
    }


def columns(views: Iterable[Row]) -> dict[str, list[Row]]:
    """The two columns that verdicts are counted in: this run, and what was recorded."""
    views = list(views)
    return {"This run": views, "Recorded runs": [each["best"] for each in views if each["best"]]}


def tally(rows: Iterable[Row]) -> dict[str, int]:
    """How many claims have each verdict."""
    counts = Counter(row["verdict"] for row in rows)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def by_verdict(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The numbers of the claims with each verdict that some have."""
    claims = {
        each: [str(row["claim"]) for row in rows if row["verdict"] == each] for each in VERDICTS
    }
    return {verdict: own for verdict, own in claims.items() if own}


def standing(views: Sequence[Row]) -> dict:
    """Claims counted: `states`, and `kinds` of contradiction, by kind of data; `tallies`."""
    both = columns(views)
    counts = {
        each: [
            Counter(str(row["stands_on"]) for row in rows if state(row) == each)
            for rows in both.values()
        ]
        for each in STATES
    }
    kinds = [Counter(row["contradiction"] for row in rows) for rows in both.values()]
    return {
        "states": {
            each: [{kind: own[kind] for kind in KINDS if own[kind]} for own in cells]
            for each, cells in counts.items()
        },
        "kinds": {
            kind: [own[kind] for own in kinds]
            for kind in CONTRADICTIONS
            if any(own[kind] for own in kinds)
        },
        "tallies": {name: tally(rows) for name, rows in both.items()},
    }


def conclusion(counts: Mapping[str, int]) -> str:
    """One sentence on the claims that decide.

    Example:
        >>> conclusion({"reproduced": 3, "contradicted": 0, "undecided": 1, "not testable": 0})
        'What can be decided holds.'
        >>> conclusion({"reproduced": 1, "contradicted": 1, "undecided": 5, "not testable": 0})
        'Most stays open; some hold and some do not.'
    """
    held, failed = counts[REPRODUCED], counts[CONTRADICTED]
    unknown = sum(counts.values()) - held - failed
    if not held + failed:
        return "This cannot be decided yet."
    if failed:
        said = "some hold and some do not" if held else "what can be decided fails"
    else:
        said = "what can be decided holds" if unknown else "all of it holds"
    if unknown > held + failed:
        return f"Most stays open; {said}."
    return f"{said[0].upper()}{said[1:]}."


def command(scale: str, paper: str, record: str = "") -> str:
    """What makes the verdicts of a paper again, by this run or by that of a record.

    >>> command("laptop", "zhang2023")
    'make figures SCALE=laptop PAPERS=zhang2023'
    >>> command("laptop", "zhang2023", "ten_seeds-laptop")
    'make figures SCALE=laptop CONFIG="config/ten_seeds.yaml" PAPERS=zhang2023'
    """
    files = " ".join(f"config/{stem}.yaml" for stem in record.split("-")[:-1])
    config = f'CONFIG="{files}" ' if files else ""
    return f"make figures SCALE={scale} {config}PAPERS={paper}"
