"""Tables of docs/verdicts.md: recorded verdicts, gates that fail, the authors' own results."""

import pandas as pd

from scripts.export_verdicts import (
    PAGE,
    RESTS,
    beside,
    failing,
    of_authors,
    of_records,
    runs,
    verdicts,
)
from scripts.filling import filled

FOUND = pd.DataFrame(
    [
        ("b", "laptop", "1", "our claim", "stand-in", "undecided", f"{RESTS}x by -1; y by -2"),
        ("b", "laptop", "2", "our claim", "stand-in", "undecided", f"{RESTS}y by -2"),
        ("b", "laptop", "3", "the paper's claim", "stand-in", "undecided", "open: a gate"),
        ("a", "paper", "1", "the paper's claim", "real data", "reproduced", ""),
    ],
    columns=["paper", "name", "claim", "origin", "stands_on", "verdict", "reason"],
)


def test_the_page_has_what_was_recorded():
    """`python -m scripts.export_verdicts` fills it, and so does `make record`."""
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, of_records()) == page


def test_claims_by_verdict_apart_for_origin_and_data():
    assert verdicts(FOUND).splitlines()[2:] == [
        "| b, laptop | our | stand-in | 2 | 0 | 0 | 2 | 0 |",
        "| b, laptop | the paper's | stand-in | 1 | 0 | 0 | 1 | 0 |",
        "| all, laptop |  |  | 3 | 0 | 0 | 3 | 0 |",
        "| a, paper | the paper's | real data | 1 | 1 | 0 | 0 | 0 |",
        "| all, paper |  |  | 1 | 1 | 0 | 0 | 0 |",
    ]


def test_what_each_run_was():
    about = {"seeds": "1–3", "date": "2026-11-28", "commit": "abc", "processor": "Xeon"}
    found = FOUND.assign(**about, seconds=["90", "90", "90", ""], megabytes=["2140"] * 3 + [""])
    assert runs(found).splitlines()[2:] == [
        "| b, laptop | 1–3 | 2026-11-28 | abc | Xeon | 2 | 2.1 |",
        "| a, paper | 1–3 | 2026-11-28 | abc | Xeon | – | – |",
    ]


def test_other_runs_stand_beside_those_at_laptop():
    yes, no, open_ = "reproduced", "contradicted", "undecided"
    here, there = [yes, yes, yes, open_, open_, yes, no], [yes, no, open_, no, open_, no, open_]
    held = ["3 of 3", "0 of 3", "3 of 3", "0 of 3", "", "0 of 3", "2 of 3"]
    records = [
        pd.DataFrame(
            {"paper": "b", "name": name, "claim": [*"1234567"], "stands_on": "stand-in"}
        ).assign(verdict=verdicts, held=held)
        for name, verdicts, held in (("laptop", here, ""), ("mine-laptop", there, held))
    ]
    for record in records:
        record.loc[5, "stands_on"] = "simulation"
    assert beside(pd.concat(records)).splitlines()[2:] == [
        "| b, mine-laptop | 6 | 1 | 3 | 7 | 2 | 4 |"
    ]


def test_a_fit_that_fails_has_the_claims_that_rest_on_it():
    gates = pd.DataFrame(columns=["paper", "name", "setting", "text"])
    assert failing(FOUND, gates).splitlines()[2:] == [
        "| b, laptop | x | by -1 | 1 |",
        "| b, laptop | y | by -2 | 1, 2 |",
    ]
    gates.loc[0] = ["b", "laptop", "y", "by -2 in 1 of 3 lanes"]
    gates.loc[1] = ["b", "laptop", "z", "falls"]
    gates.loc[2] = ["b", "paper", "y", "falls"]
    assert failing(FOUND, gates).splitlines()[3:] == [
        "| b, laptop | y | by -2 in 1 of 3 lanes | 1, 2 |",
        "| b, laptop | z | falls | – |",
        "| b, paper | y | falls | – |",
    ]


def test_claims_that_fail_on_the_authors_numbers():
    """Those of issue 38 that were found on printed means, by hand; and the page has them."""
    row = "| zhang2023 | 1b, 3b, 4c, 4d, 6b, 7b | – |"
    assert of_authors(["zhang2023"]).splitlines()[2:] == [row]
    assert row in PAGE.read_text(encoding="utf-8")
