"""Recorded verdicts: written, read, and weighed against those of this run."""

import json
from itertools import pairwise
from types import SimpleNamespace
from unittest.mock import Mock

import pandas as pd
import pytest

from scripts.record_evidence import record
from tests.sites import claim
from twotowers.claims.claims import CONTRADICTED, NOT_TESTABLE, REPRODUCED, UNDECIDED
from twotowers.claims.data_provenance import REAL, SIMULATION, STAND_IN, UNVERIFIED
from twotowers.claims.recorded import RUN, VERDICT, read_recorded, strongest
from twotowers.errors import InputError
from twotowers.experiment.config import DataSet
from twotowers.workflow.descriptions import evidence_digest
from twotowers.workflow.records import processor


def kept(verdict=REPRODUCED, stands_on=STAND_IN, **run):
    found = {"name": "laptop", "verdict": verdict, "stands_on": stands_on}
    return {**found, "scale": "paper", "seeds": "1–3", "changed": False, **run}


def test_the_strongest_evidence():
    """Each is stronger than all before it, whether or not it decides."""
    rising = [
        kept(NOT_TESTABLE, SIMULATION),
        kept(changed=True),
        kept(stands_on=REAL, scale="smoke"),
        kept(scale="laptop", seeds="1, 3"),
        kept(CONTRADICTED, scale="laptop"),
        kept(scale="laptop", seeds="1–3, 7"),
        kept(UNDECIDED, scale="laptop", seeds="1–10"),
        kept(seeds="7"),
        kept(),
        kept(stands_on=UNVERIFIED, scale="laptop"),
        kept(stands_on=REAL, scale="laptop"),
        kept(UNDECIDED, REAL),
        kept(stands_on=SIMULATION, scale="laptop"),
    ]
    for weaker, stronger in pairwise(rising):
        assert strongest([weaker, stronger]) is strongest([stronger, weaker]) is stronger
    assert strongest([]) is None
    search = kept(stands_on=SIMULATION, name="zhang2023_search-laptop")
    assert strongest([*rising, search]) is rising[-1]


def page(folder, **provenance):
    about = {
        "scale": "laptop", "datasets": {"mslr30k": STAND_IN}, "seeds": [1, 2, 3],
        "version": "abc123", "seconds": 61.4, "megabytes": 811.7,
    }  # fmt: skip
    rows = [claim("1", "fig1"), claim("2a", "fig1", CONTRADICTED, reason="fails: it, and that")]
    about_run = {"provenance": about | provenance, "claims": rows, "digest": "of today"}
    about_run["gates"] = [("deep", "predicts clicks worse"), ("deep", "still falls, at the limit")]
    (folder / "sample2025").mkdir()
    (folder / "sample2025" / "summary.json").write_text(json.dumps(about_run))


def test_verdicts_are_kept_and_read_again(tmp_path):
    page(tmp_path)
    path = record(tmp_path, "sample2025", name="mine-laptop", scale="laptop", root=tmp_path)
    assert path == tmp_path / "papers/sample2025/recorded/mine-laptop.csv"
    assert list(pd.read_csv(path)) == [*VERDICT, *RUN]
    gates = pd.read_csv(path.parent / "gates" / path.name)
    assert gates.to_numpy().tolist() == [
        ["deep", "predicts clicks worse"], ["deep", "still falls, at the limit"],
    ]  # fmt: skip
    found = read_recorded([path], digest="of today")
    assert set(found) == {"1", "2a"}
    (row,) = found["2a"]
    assert (row["verdict"], row["reason"]) == (CONTRADICTED, "fails: it, and that")
    assert (row["name"], row["changed"]) == ("mine-laptop", False)
    assert (row["seconds"], row["megabytes"]) == ("61", "812")
    assert (row["datasets"], row["commit"]) == ("mslr30k: stand-in", "abc123")
    assert row["processor"] == processor()
    assert read_recorded([path], digest="another")["1"][0]["changed"]


def test_a_run_on_files_without_provenance_is_left_out(tmp_path):
    page(tmp_path)
    kept = {"scale": "laptop", "root": tmp_path}
    plain = record(tmp_path, "sample2025", name="laptop", **kept)
    files = record(tmp_path, "sample2025", name="files", **kept)
    table = pd.read_csv(files).assign(datasets="mq2008: unverified data")
    table.loc[table["claim"] == "1", "measured"] = "another number"
    table["stands_on"] = STAND_IN
    table.to_csv(files, index=False)
    found = read_recorded([plain, files], digest="")
    assert [row["name"] for row in found["1"]] == ["laptop", "files"]
    assert [row["name"] for row in found["2a"]] == ["laptop"]
    table.assign(stands_on=UNVERIFIED).to_csv(files, index=False)
    both = read_recorded([plain, files], digest="")["2a"]
    assert [row["name"] for row in both] == ["laptop", "files"], "it may agree by chance"


@pytest.mark.parametrize(
    ("provenance", "said"),
    [
        ({"version": "abc123-dirty"}, "in no commit"),
        ({"scale": "smoke"}, "no page of sample2025 at scale laptop"),
    ],
)
def test_what_is_not_kept(tmp_path, provenance, said):
    page(tmp_path, **provenance)
    with pytest.raises(InputError, match=said):
        record(tmp_path, "sample2025", name="laptop", scale="laptop", root=tmp_path)


def test_the_digest_is_of_code_and_settings_but_not_of_texts(tmp_path):
    folder = tmp_path / "papers" / "p"
    (folder / "items").mkdir(parents=True)

    def code(*files):
        return sorted(str(file) for file in files if "papers" in str(file))

    def digest(text):
        (folder / "experiment.yaml").write_text(text)
        return evidence_digest(SimpleNamespace(root=tmp_path, code=code), "p")

    first = digest("title: A\nsettings: {a: {model: {tower: linear}}}\nitems: {fig1: {title: B}}\n")
    texts = digest("title: C\nsettings: {a: {model: {tower: linear}}}\nitems: {fig1: {title: D}}\n")
    other = digest("title: A\nsettings: {a: {model: {tower: deep}}}\nitems: {fig1: {title: B}}\n")
    assert first == texts != other
    (folder / "items" / "drawing.py").touch()
    assert digest("title: A\nsettings: {a: {model: {tower: deep}}}\n") == other
    (folder / "claims.py").touch()
    assert digest("title: A\nsettings: {a: {model: {tower: deep}}}\n") != other


def test_the_digest_has_whatever_makes_a_paper_s_data(tmp_path):
    """Nothing else names the encoder of a log with text, or the reader of rankings."""
    folder = tmp_path / "papers" / "p"
    folder.mkdir(parents=True)
    (folder / "experiment.yaml").write_text("datasets: {a: {}}\n")
    datasets = {
        "rankings": DataSet(source="mslr_web30k"),
        "pages": DataSet(source="wscd_2012"),
        "texts": DataSet(source="baidu_mlm_uva", encoder={"smoke": {"steps": 0}}),
    }
    seen = {}
    for name, dataset in datasets.items():
        plan = Mock(root=tmp_path, code=Mock(return_value=""))
        plan.dataset.return_value = dataset
        evidence_digest(plan, "p")
        seen[name] = plan.code.call_args.args
    encoder, reader = "scripts/encode.py", "twotowers/datasets/letor.py"
    assert [encoder in seen[name] for name in datasets] == [False, False, True]
    assert [reader in seen[name] for name in datasets] == [True, False, False]
