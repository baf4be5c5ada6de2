"""Recorded verdicts, gates that fail, and the authors' own results judged -> docs/verdicts/*.csv.

`python -m scripts.export_verdicts` writes the tables, in three minutes. `make record` writes those
of recorded verdicts alone. `docs/verdicts/thresholds.csv` is kept by hand.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from scripts.filling import fill_page, markdown
from scripts.runner import paper_module
from twotowers.claims import published
from twotowers.claims.claims import CONTRADICTED, REPRODUCED
from twotowers.claims.data_provenance import REAL, SIMULATION
from twotowers.claims.judging import AUTHORS, authors_of, on_authors
from twotowers.experiment.matrix import item_needs
from twotowers.files.artefacts import atomic
from twotowers.report.evidence import tally
from twotowers.root import ROOT

PAGE = ROOT / "docs" / "verdicts.md"
FOLDER = PAGE.with_suffix("")
RESTS = "rests on fits that fail a gate: "
"""Before the fits, in the reason of a verdict (`twotowers.claims.judging`)."""
FIT = ["paper", "name", "setting"]
PARTLY = "holds, but not in all triples"
DECIDED = (REPRODUCED, CONTRADICTED)
SHOWN = ("laptop", "ten_seeds-laptop")
"""The runs that the page has: five seeds, and ten."""


def main() -> None:
    papers = sorted(path.parent.name for path in ROOT.glob("papers/*/claims.py"))
    write({**of_records(), "authors": of_authors(papers)})


def records(root: Path = ROOT) -> pd.DataFrame:
    """All recorded verdicts, with `paper`, the `name` of the record, and `origin`."""
    tables = []
    for path in sorted(root.glob("papers/*/recorded/*.csv")):
        paper = path.parts[-3]
        origins = {claim.id: claim.origin for claim in paper_module(paper, "claims").CLAIMS}
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        table = table.assign(paper=paper, name=path.stem, origin=table["claim"].map(origins))
        tables.append(table.dropna(subset="origin"))  # A claim may be gone.
    return pd.concat(tables, ignore_index=True)


def gates(root: Path = ROOT) -> pd.DataFrame:
    """All recorded gates that fail: `paper`, the `name` of the record, `setting` and `text`."""
    tables = [pd.DataFrame(columns=[*FIT, "text"])]
    for path in sorted(root.glob("papers/*/recorded/gates/*.csv")):
        tables.append(pd.read_csv(path).assign(paper=path.parts[-4], name=path.stem))
    return pd.concat(tables, ignore_index=True)


def of_records(root: Path = ROOT) -> dict[str, pd.DataFrame]:
    """The tables of recorded verdicts, by the names of their files."""
    recorded = records(root)
    return {
        "recorded": counts(recorded),
        "runs": runs(recorded),
        "other_runs": other_runs(recorded),
        "failing_gates": failing(recorded, gates(root)),
    }


def write(tables: dict[str, pd.DataFrame]) -> None:
    """Write tables to docs/verdicts, and fill docs/verdicts.md."""
    for name, table in tables.items():
        with atomic(FOLDER / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False, lineterminator="\n")
    fill_page(PAGE, {"recorded": summary(tables["recorded"])})


def counts(recorded: pd.DataFrame) -> pd.DataFrame:
    """Claims by verdict: a row per paper, run, origin and kind of data."""
    rows = []
    for keys, own in recorded.groupby(["name", "paper", "origin", "stands_on"]):
        name, paper, origin, data = map(str, keys)
        rows.append(
            {"paper": paper, "run": name, "whose claims": origin.removesuffix(" claim")}
            | {"stands on": data, "claims": len(own), **tally(own.to_dict("records"))}
        )
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> str:
    """The counts of the runs that are shown, a row per paper; a number once if all have it."""
    own = table[table["run"].isin(SHOWN)].drop(columns=["whose claims", "stands on"])
    totals = own.groupby(["paper", "run"]).sum().astype(str).groupby("paper")
    cells = totals.agg(lambda each: ", ".join(dict.fromkeys(each))).reset_index()
    return markdown(list(cells), cells.to_numpy().tolist())


def runs(recorded: pd.DataFrame) -> pd.DataFrame:
    """What each recorded run was: a row per paper and run.

    Minutes add up all jobs. Gigabytes are those of the largest job.
    """
    first = recorded.groupby(["name", "paper"], as_index=False).first()
    minutes = pd.to_numeric(first["seconds"]) / 60
    gigabytes = pd.to_numeric(first["megabytes"]) / 1000
    first = first.assign(minutes=minutes.round(), GB=gigabytes.round(1))
    columns = ["paper", "name", "seeds", "date", "commit", "processor", "minutes", "GB"]
    return first[columns].rename(columns={"name": "run"}).convert_dtypes()


def other_runs(recorded: pd.DataFrame, base: str = "laptop") -> pd.DataFrame:
    """Verdicts of other runs against those of `base`, a row per paper and run.

    Claims that no data set enters are left out. Of claims that only `base` decides, those have a
    column of their own that each seed of the other run leaves where `base` has them.
    """
    rows = []
    own = recorded[(recorded["name"] == base) & (recorded["stands_on"] != SIMULATION)]
    known = own.set_index(["paper", "claim"])["verdict"].rename("here")
    for keys, other in recorded[recorded["name"] != base].groupby(["paper", "name"]):
        there = other.set_index(["paper", "claim"])[["verdict", "held"]]
        both = pd.concat([known, there], axis=1, join="inner")
        here, decided = both["here"].isin(DECIDED), both["verdict"].isin(DECIDED)
        equal = both["here"] == both["verdict"]
        held = both["held"].str.extract(r"^(\d+) of (\d+)$").astype(float)
        alike = (both["here"] == REPRODUCED) & (held[0] == held[1])
        alike |= (both["here"] == CONTRADICTED) & (held[0] == 0)
        kinds = {
            "the same": here & equal,
            "undecided, but so with each seed left out": here & ~decided & alike,
            "undecided": here & ~decided & ~alike,
            "the opposite": here & decided & ~equal,
            "decided by this run alone": decided & ~here,
        }
        claims = both.index.get_level_values("claim")
        named = {heading: ", ".join(claims[kind]) for heading, kind in kinds.items()}
        rows.append(dict(zip(("paper", "run"), keys, strict=True)) | {"claims": len(both)} | named)
    return pd.DataFrame(rows)


def failing(recorded: pd.DataFrame, gates: pd.DataFrame) -> pd.DataFrame:
    """Fits whose gates fail, and the claims that are undecided for it, by their reasons.

    Records of older code have no gates.
    """
    rows = recorded[recorded["reason"].str.startswith(RESTS)]
    texts = rows["reason"].str.removeprefix(RESTS).str.split("; ")
    rows = rows.assign(fit=texts).explode("fit")
    rows[["setting", "reason"]] = rows["fit"].str.split(" ", n=1, expand=True)
    named = rows.groupby(FIT).agg(claims=("claim", ", ".join), reason=("reason", "first"))
    failed = gates.groupby(FIT).agg(text=("text", "; ".join)).join(named, how="outer")
    failed["text"] = failed["text"].fillna(failed["reason"])
    names = {"name": "run", "setting": "fit", "text": "what fails", "claims": "undecided for it"}
    return failed.drop(columns="reason").reset_index().rename(columns=names)


def of_authors(names: Iterable[str]) -> pd.DataFrame:
    """Claims that fail on their authors' own numbers, or hold in some triples of their runs."""
    rows = []
    for paper in names:
        given, needs = published.results(paper), item_needs(paper)
        if given.empty:
            continue
        given, claims = given.assign(stands_on=REAL), {"fails": [], PARTLY: []}
        for claim in paper_module(paper, "claims").CLAIMS:
            if claim.against_printed:
                continue
            own = authors_of(claim, given, needs)
            _, verdict, words = on_authors(claim, own) if len(own) else ("", "", "")
            share = re.search(r"holds in (\d+%)", words)
            # Of printed means, the words say only that.
            fails = words.startswith("fails") or verdict == AUTHORS[CONTRADICTED]
            if fails or (share and share[1] != "100%"):
                text = f"{claim.id} ({share[1]})" if share else claim.id
                claims["fails" if fails else PARTLY].append(text)
        rows.append({"paper": paper} | {name: ", ".join(each) for name, each in claims.items()})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
