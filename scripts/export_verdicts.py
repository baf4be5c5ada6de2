"""Recorded verdicts, gates that failed, and the authors' own results judged -> docs/verdicts.md.

`python -m scripts.export_verdicts` fills the tables, in three minutes. `make record` fills those of
recorded verdicts alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pandas as pd

from scripts.filling import fill_page, markdown
from scripts.runner import paper_module
from twotowers.claims import published
from twotowers.claims.claims import CONTRADICTED, REPRODUCED, Claims
from twotowers.claims.judging import AUTHORS, authors_of, on_authors
from twotowers.claims.standing import REAL, SIMULATION
from twotowers.experiment.matrix import item_needs
from twotowers.report.paper_page import tally
from twotowers.root import ROOT

PAGE = ROOT / "docs" / "verdicts.md"
RESTS = "rests on fits that fail a gate: "
"""Before the fits, in the reason of a verdict (`twotowers.claims.judging`)."""
FIT = ["paper", "name", "setting"]
DECIDED = (REPRODUCED, CONTRADICTED)


def main() -> None:
    fill_page(PAGE, {**of_records(), "authors": of_authors(papers())})


def papers(root: Path = ROOT) -> list[str]:
    """The papers that claim something."""
    return sorted(path.parent.name for path in root.glob("papers/*/claims.py"))


@cache
def claims_of(paper: str) -> Claims:
    return paper_module(paper, "claims").CLAIMS


def records(root: Path = ROOT) -> pd.DataFrame:
    """All recorded verdicts, with `paper`, the `name` of the record, and `origin`."""
    tables = []
    for paper in papers(root):
        origins = {claim.id: claim.origin for claim in claims_of(paper)}
        for path in sorted(root.glob(f"papers/{paper}/recorded/*.csv")):
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


def of_records(root: Path = ROOT) -> dict[str, str]:
    """The tables of recorded verdicts, by their places."""
    found = records(root)
    return {
        "recorded": verdicts(found),
        "runs": runs(found),
        "other-runs": beside(found),
        "failing": failing(found, gates(root)),
    }


def verdicts(found: pd.DataFrame) -> str:
    """Claims by verdict: a row per paper, record, origin and kind of data, and one per record."""
    keys = ["name", "paper", "origin", "stands_on"]
    rows = []
    for name, record in found.groupby("name"):
        groups = [*record.groupby(keys), ((name, "all", "", ""), record)]
        for (_, paper, origin, data), own in groups:
            counts = tally(own.to_dict("records"))
            whose = origin.removesuffix(" claim")
            rows.append([f"{paper}, {name}", whose, data, len(own), *counts.values()])
    return markdown(["paper, run", "whose claims", "stands on", "claims", *tally([])], rows)


def runs(found: pd.DataFrame) -> str:
    """What each recorded run was: a row per paper and record.

    Minutes add up all jobs. Gigabytes are those of the largest job.
    """
    first = found.groupby(["name", "paper"], as_index=False).first()
    rows = [
        [
            f"{run.paper}, {run.name}", run.seeds, run.date, run.commit, run.processor,
            f"{float(run.seconds) / 60:.0f}" if run.seconds else "–",
            f"{float(run.megabytes) / 1000:.1f}" if run.megabytes else "–",
        ]
        for run in first.itertuples(index=False)
    ]  # fmt: skip
    return markdown(["paper, run", "seeds", "date", "code", "processor", "minutes", "GB"], rows)


def beside(found: pd.DataFrame, base: str = "laptop") -> str:
    """Verdicts of other records beside those of `base`, a row per paper and record.

    Claims that no data set enters are left out. Of claims that only `base` decides, those stand
    apart that each seed of the other run leaves where `base` has them.
    """
    rows = []
    own = found[(found["name"] == base) & (found["stands_on"] != SIMULATION)]
    known = own.set_index(["paper", "claim"])["verdict"].rename("here")
    for (paper, name), other in found[found["name"] != base].groupby(["paper", "name"]):
        there = other.set_index(["paper", "claim"])[["verdict", "held"]]
        both = pd.concat([known, there], axis=1, join="inner")
        here, decided = both["here"].isin(DECIDED), both["verdict"].isin(DECIDED)
        equal = both["here"] == both["verdict"]
        held = both["held"].str.extract(r"^(\d+) of (\d+)$").astype(float)
        alike = (both["here"] == REPRODUCED) & (held[0] == held[1])
        alike |= (both["here"] == CONTRADICTED) & (held[0] == 0)
        kinds = [
            here & equal, here & ~decided & alike, here & ~decided & ~alike,
            here & decided & ~equal, decided & ~here,
        ]  # fmt: skip
        told = (", ".join(both.index[kind].get_level_values("claim")) or "–" for kind in kinds)
        rows.append([f"{paper}, {name}", len(both), *told])
    heads = [
        "the same", "undecided, but so with each seed left out", "undecided", "the opposite",
        "decided by this run alone",
    ]  # fmt: skip
    return markdown(["paper, run", "claims", *heads], rows)


def failing(found: pd.DataFrame, gates: pd.DataFrame) -> str:
    """Fits whose gates fail, and the claims that are undecided for it.

    Args:
        found: Verdicts, from `records`. Their reasons name the fits that they rest on.
        gates: All that fail, from `gates`; records of older code have none.
    """
    rows = found[found["reason"].str.startswith(RESTS)]
    texts = rows["reason"].str.removeprefix(RESTS).str.split("; ")
    rows = rows.assign(fit=texts).explode("fit")
    rows[["setting", "reason"]] = rows["fit"].str.split(" ", n=1, expand=True)
    named = rows.groupby(FIT).agg(claims=("claim", ", ".join), reason=("reason", "first"))
    told = gates.groupby(FIT).agg(text=("text", "; ".join)).join(named, how="outer")
    told["text"] = told["text"].fillna(told["reason"])
    return markdown(
        ["paper, run", "fit", "what fails", "undecided for it"],
        (
            [f"{paper}, {name}", setting, own["text"], own["claims"]]
            for (paper, name, setting), own in told.fillna("–").iterrows()
        ),
    )


def of_authors(names: Iterable[str]) -> str:
    """Claims that fail on their authors' own numbers, or hold in some triples of their runs."""
    rows = []
    for paper in names:
        given, needs = published.results(paper), item_needs(paper)
        if given is None or given.empty:
            continue
        given, told = given.assign(stands_on=REAL), {"fails": [], "holds": []}
        for claim in claims_of(paper):
            own = authors_of(claim, given, needs)
            _, verdict, words = on_authors(claim, own) if len(own) else ("", "", "")
            share = re.search(r"holds in (\d+%)", words)
            # Of printed means, the words say only that.
            fails = words.startswith("fails") or verdict == AUTHORS[CONTRADICTED]
            if fails or (share and share[1] != "100%"):
                text = f"{claim.id} ({share[1]})" if share else claim.id
                told["fails" if fails else "holds"].append(text)
        rows.append([paper, *(", ".join(texts) or "–" for texts in told.values())])
    return markdown(["paper", "fails", "holds, but not in all triples"], rows)


if __name__ == "__main__":
    main()
