"""docs/extending.md works: its files and changes, one after the other, give a page.

The same run makes an item of a paper of studies.
"""

import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import twotowers as tt
from tests.browser import check_page, find_chromium
from tests.running import ran
from tests.workflow.project import ROOT, SMOKE, Project
from tests.workflow.test_pipeline import check_claims, check_items
from twotowers.files.yamls import read_yaml
from twotowers.logs.sessions import seen_in

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("extending")]

TEXT = (ROOT / "docs" / "extending.md").read_text()
BLOCK = re.compile(r"^\*\*`(?P<path>\S+)`\*\*\n\n```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
STUDIED, STUDY = "chen2024", "fig5"
CONFIG = ["--configfile", "config.yaml", "config/mine.yaml", *SMOKE, f"papers=[mine,{STUDIED}]"]
LONGEST = 25
"""The most non-blank lines of a Python file on the page."""


def blocks() -> Iterator[tuple[str, str, str]]:
    """Path, language and text of each block, in their order."""
    return (found.group("path", "kind", "text") for found in BLOCK.finditer(TEXT))


def changed(text: str, change: str) -> str:
    """A file's text with the added lines behind their context."""
    lines, place = text.splitlines(), None
    for line in change.splitlines():
        if line.startswith("+"):
            place += 1
            lines.insert(place, line[1:])
        else:
            assert lines.count(line[1:]) == 1, line
            place = lines.index(line[1:])
    return "\n".join(lines) + "\n"


def follow(folder: Path) -> None:
    """Apply the page."""
    for path, kind, text in blocks():
        file = folder / path
        if kind == "diff":
            file.write_text(changed(file.read_text(), text))
        else:
            assert not file.exists(), f"{path} is there already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def bring_data(folder: Path) -> None:
    """The files that the page's configuration names."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    for split, queries in {"train": 40, "vali": 15, "test": 15}.items():
        rows = []
        for query in np.repeat(np.arange(queries), 8):
            features = (f"{index}:{rng.random():.3f}" for index in range(1, 6))
            rows.append(" ".join([str(rng.integers(5)), f"qid:{query}", *features]))
        (folder / f"{split}.txt").write_text("\n".join(rows) + "\n")
    pages = []
    for _ in range(600):
        query = int(rng.integers(8))
        shown = [f"q{query}d{number}" for number in rng.permutation(6)]
        clicked = [bool(rng.random() < 0.8 / rank) for rank in range(1, 7)]
        pages.append((f"query {query}", shown, clicked))
    names = ("q", "documents", "clicks")
    columns = dict(zip(names, map(list, zip(*pages, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "pages.parquet")
    lines = [
        "\t".join([q, ",".join(d), ",".join(x for x, c in zip(d, clicks, strict=True) if c)])
        for q, d, clicks in pages
    ]
    # A click on a document that is not on its page.
    (folder / "pages.txt").write_text("\n".join([*lines, "query 1\tq1d0\tq1d1"]) + "\n")


@pytest.fixture(scope="module")
def extended(clean_copy) -> Project:
    project = clean_copy("extending")
    follow(project.folder)
    bring_data(project.folder / "data")
    replace(project, paper=STUDIED).trim((STUDY,))
    run = project.snakemake("--cores", "2", *CONFIG)
    assert run.code == 0, run.text[-5000:]
    return project


def test_files_are_short():
    written = [(path, text) for path, kind, text in blocks() if kind == "python"]
    assert len(written) >= 7
    for path, text in written:
        assert len([line for line in text.splitlines() if line.strip()]) <= LONGEST, path


def test_every_setting_of_the_page_is_drawn_and_on_the_page(extended):
    experiment = read_yaml(extended.folder / "papers" / "mine" / "experiment.yaml")
    drawn = extended.folder / "figures-mine" / "smoke" / "mine"
    with (drawn / "ndcg.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["setting"] for row in rows} == set(experiment["items"]["ndcg"]["needs"])
    assert all(0.3 < float(row["value"]) <= 1 for row in rows)
    assert "real-em & 1." in (drawn / "perplexity.tex").read_text()
    fits = extended.folder / "results-mine" / "smoke" / "fits" / "mine"
    assert {path.name for path in fits.iterdir()} == set(experiment["settings"])
    page = (extended.folder / "figures-mine" / "smoke" / "mine" / "index.html").read_text()
    assert all(f'id="{item}"' in page for item in experiment["items"])
    with (extended.folder / "figures-mine" / "smoke" / "claims.csv").open(newline="") as file:
        (claim,) = (row for row in csv.DictReader(file) if row["paper"] == "mine")
    # One seed tells nothing of chance.
    assert claim["verdict"] == "undecided"
    assert claim["measured"].startswith("nDCG@10 = ")


def test_a_paper_of_studies_gets_to_the_page(extended):
    project = replace(extended, paper=STUDIED, figures="figures-mine")
    check_items(project)
    check_claims(project)
    index = project.folder / project.figures / "smoke" / "index.html"
    page = index.parent / STUDIED / "index.html"
    for name in project.smoke.items:
        assert f'id="{name}"' in page.read_text()
    if find_chromium() is not None:
        assert check_page(index, 1280) + check_page(page, 1280) == []
    # A study with its own seeds, and fits to given lists with the paper's.
    for item in (page.with_name(f"{STUDY}.svg"), index.parent / "mine" / "islands.svg"):
        assert "Data: simulated. Scale: smoke. Seeds: 1." in item.read_text()


def python(project: Project, *arguments: str) -> str:
    """What the project's Python prints, which must end well."""
    environment = project.environment | {"PYTHONPATH": str(project.folder)}
    run = ran([sys.executable, *arguments], cwd=project.folder, env=environment)
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


def test_a_format_of_ones_own_is_one_of_the_command(extended):
    count = ["-m", "twotowers", "count", "data/pages.txt", "--format", "lines"]
    assert "clicks off page: 1" in python(extended, *count, "--out", "cells.parquet")


def test_logs_of_ones_own_are_read_and_what_was_left_out_is_said(extended):
    raw = extended.folder / "results-mine" / "smoke" / "raw"
    files = [raw / name / "pages.parquet" for name in ("shop", "text")]
    logs = [tt.read_log(file) for file in files]
    # The text has one more page, and a click that is on no page.
    assert [log.count().impressions.sum() for log in logs] == [600 * 6, 600 * 6 + 1]
    assert len({log.count().clicks.sum() for log in logs}) == 1
    assert [seen_in(file)["clicks_off_page"] for file in files] == [0, 1]
    logs = extended.folder / "results-mine" / "smoke" / "logs" / "raw"
    assert "clicks off page: 1\n" in (logs / "text" / "pages.log").read_text()


def test_editing_files_of_ones_own_reruns_what_they_change(extended):
    method, reader = "papers/mine/methods/click_rate.py", "twotowers/logs/formats/lines.py"
    with (
        extended.edited(method, lambda text: text.replace("2 * prior", "3 * prior")),
        extended.edited(reader, lambda text: text.replace("start=1", "start=0")),
    ):
        plan = extended.plan(*CONFIG)
    changed = {rule: {path.split("/")[-2] for path in plan[rule]} for rule in ("parse", "fit")}
    assert changed == {"parse": {"text"}, "fit": {"click-rate", "lines-em"}}
    drawn = {"figure", "table", "claims", "page", "overview", "all"}
    assert plan.keys() - drawn == changed.keys(), "nothing else was left to do"
