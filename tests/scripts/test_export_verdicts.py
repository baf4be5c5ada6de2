"""Tables of docs/verdicts: recorded verdicts, gates that fail, the authors' own results."""

import pandas as pd

from scripts.export_verdicts import (
    FOLDER,
    PAGE,
    RESTS,
    counts,
    failing,
    of_authors,
    of_records,
    other_runs,
    runs,
    summary,
)
from scripts.filling import filled

RECORDED = pd.DataFrame(
    [
        ("b", "laptop", "1", "our claim", "stand-in", "undecided", f"{RESTS}x by -1; y by -2"),
        ("b", "laptop", "2", "our claim", "stand-in", "undecided", f"{RESTS}y by -2"),
        ("b", "laptop", "3", "the paper's claim", "stand-in", "undecided", "open: a gate"),
        ("a", "paper", "1", "the paper's claim", "real data", "reproduced", ""),
    ],
    columns=["paper", "name", "claim", "origin", "stands_on", "verdict", "reason"],
)


def test_files_and_page_have_what_was_recorded():
    """`python -m scripts.export_verdicts` writes them, and so does `make record`."""
    tables = of_records()
    for name, table in tables.items():
        written = (FOLDER / f"{name}.csv").read_text(encoding="utf-8")
        assert table.to_csv(index=False, lineterminator="\n") == written, name
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, {"recorded": summary(tables["recorded"])}) == page


def test_claims_are_counted_by_origin_and_data():
    assert counts(RECORDED).astype(str).to_numpy().tolist() == [
        ["b", "laptop", "our", "stand-in", *"20020"],
        ["b", "laptop", "the paper's", "stand-in", *"10010"],
        ["a", "paper", "the paper's", "real data", *"11000"],
    ]
    assert summary(counts(RECORDED)).splitlines()[2:] == ["| b | 3 | 0 | 0 | 3 | 0 |"]


def test_what_each_run_was():
    about = {"seeds": "1–3", "date": "2026-11-28", "commit": "abc", "processor": "Xeon"}
    recorded = RECORDED.assign(
        **about, seconds=["90", "90", "90", ""], megabytes=["2140"] * 3 + [""]
    )
    assert runs(recorded).to_csv(index=False).splitlines()[1:] == [
        "b,laptop,1–3,2026-11-28,abc,Xeon,2,2.1",
        "a,paper,1–3,2026-11-28,abc,Xeon,,",
    ]


def test_other_runs_against_those_at_laptop():
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
    assert other_runs(pd.concat(records)).astype(str).to_numpy().tolist() == [
        ["b", "mine-laptop", *"613724"]
    ]


def test_a_fit_that_fails_has_the_claims_that_rest_on_it():
    gates = pd.DataFrame(columns=["paper", "name", "setting", "text"])
    assert failing(RECORDED, gates).to_numpy().tolist() == [
        ["b", "laptop", "x", "by -1", "1"],
        ["b", "laptop", "y", "by -2", "1, 2"],
    ]
    gates.loc[0] = ["b", "laptop", "y", "by -2 in 1 of 3 lanes"]
    gates.loc[1] = ["b", "laptop", "z", "falls"]
    gates.loc[2] = ["b", "paper", "y", "falls"]
    assert failing(RECORDED, gates).fillna("").to_numpy().tolist()[1:] == [
        ["b", "laptop", "y", "by -2 in 1 of 3 lanes", "1, 2"],
        ["b", "laptop", "z", "falls", ""],
        ["b", "paper", "y", "falls", ""],
    ]


def test_claims_that_fail_on_the_authors_numbers():
    """Those that were seen on printed means, by hand; and the file has them."""
    table = of_authors(["zhang2023"])
    assert table["fails"].tolist() == ["1b, 3b, 4c"]
    own = pd.read_csv(FOLDER / "authors.csv", keep_default_na=False).query("paper == 'zhang2023'")
    assert own.to_numpy().tolist() == table.to_numpy().tolist()
