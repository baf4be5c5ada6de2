"""The table of stand-ins: its script runs, and the committed page is complete."""

import importlib
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
import yaml

from twotowers import ROOT, SPLITS
from twotowers.experiment.simulated import Sessions
from twotowers.files.rankings import Rankings

BRIEF = {"batch": 8, "steps": 2, "epochs": 1}


@pytest.fixture
def script(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "scripts"), *sys.path])
    return importlib.import_module("describe_standins")


def quantities(page: str) -> list[str]:
    return re.findall(r"^\| ([^|]+) \|", page, flags=re.MULTILINE)


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")  # constant columns
def test_the_page_is_written_from_tiny_sizes(script, monkeypatch, tmp_path):
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    config["datasets"]["mslr30k"]["standin"]["laptop"] = {"train": 20, "validation": 10, "test": 10}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    load = script.load_paper

    def briefly(*arguments):
        paper = load(*arguments)
        setting = paper.settings[script.TOWER]
        sessions = Sessions(**dict.fromkeys(SPLITS, 500))
        tower = setting.model_copy(
            update={
                "training": setting.training.model_copy(update=BRIEF),
                "log": setting.log.model_copy(update={"sessions": sessions}),
            }
        )
        ranker = paper.rankers["deep"].model_copy(update=BRIEF)
        return replace(
            paper, seeds=paper.seeds[:1], rankers={"deep": ranker}, settings={script.TOWER: tower}
        )

    monkeypatch.setattr(script, "load_paper", briefly)
    met = script.main([tmp_path / "standins.md"], config=tmp_path / "config.yaml")
    page = (tmp_path / "standins.md").read_text()
    assert not met
    assert "| **no** |" in page
    assert "nan" not in page
    committed = (ROOT / "docs" / "standins.md").read_text()
    assert quantities(page) == quantities(committed)


def test_the_committed_page_misses_no_target():
    page = (ROOT / "docs" / "standins.md").read_text()
    assert page.count("| yes |") == 16
    assert "**no**" not in page


@pytest.mark.parametrize(("shift", "share"), [(0.0, 0.0), (1e3, 1.0)])
def test_variance_between_queries(shift, share, script):
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(4), 500)
    features = rng.normal(size=(2000, 3)) + shift * query[:, None]
    lists = Rankings(query, np.tile(np.arange(500), 4), np.zeros(2000), features)
    assert script.likeness_row({"train": lists}).measured == pytest.approx(share, abs=0.01)
