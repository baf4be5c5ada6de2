"""Pages of stand-ins: their program runs, and the committed pages are complete."""

import re
from dataclasses import replace

import numpy as np
import pytest
import yaml

from scripts.filling import filled, markdown
from scripts.standins import mslr, uva, wscd
from scripts.standins.__main__ import PAGES
from scripts.standins.targets import HEADS, Target, descend, missed, moved, written
from twotowers.experiment.simulated import Sessions
from twotowers.files.rankings import Rankings
from twotowers.root import ROOT
from twotowers.splits import SPLITS

BRIEF = {"batch": 8, "steps": 2, "epochs": 1}


def quantities(page: str) -> list[str]:
    return re.findall(r"^\| ([^|]+) \|", page, flags=re.MULTILINE)


def page_of(name: str) -> str:
    return (ROOT / "docs" / f"{PAGES[name]}.md").read_text()


def agrees(found, name: str) -> None:
    """Other sizes fill the same places of a page with the same rows."""
    new, committed = filled(page_of(name), written(found)), page_of(name)
    assert new != committed
    assert quantities(new) == quantities(committed)
    assert "nan" not in new


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")  # constant columns
def test_mslr_from_tiny_sizes(monkeypatch, tmp_path):
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    config["datasets"]["mslr30k"]["standin"]["laptop"] = {"train": 20, "validation": 10, "test": 10}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    load = mslr.load_paper

    def briefly(*arguments):
        paper = load(*arguments)
        setting = paper.settings[mslr.TOWER]
        sessions = Sessions(**dict.fromkeys(SPLITS, 500))
        tower = setting.model_copy(
            update={
                "training": setting.training.model_copy(update=BRIEF),
                "log": setting.log.model_copy(update={"sessions": sessions}),
            }
        )
        ranker = paper.rankers["deep"].model_copy(update=BRIEF)
        few = {"seeds": paper.seeds[:1], "rankers": {"deep": ranker}}
        return paper.model_copy(update=few | {"settings": {mslr.TOWER: tower}})

    monkeypatch.setattr(mslr, "load_paper", briefly)
    found = mslr.tables(tmp_path / "config.yaml")
    assert any("**" in row for row in missed(found))
    agrees(found, "mslr")


@pytest.mark.parametrize(("name", "module"), [("wscd", wscd), ("uva", uva)])
def test_logs_from_few_sessions(name, module):
    agrees(module.tables(2_000), name)


@pytest.mark.parametrize(
    ("name", "rows"),
    [("mslr", 16), ("lists", 14), ("vectors", 0), ("wscd", 7), ("uva", 10), ("baidu", 26)],
)
def test_the_committed_pages_miss_no_target(name, rows):
    page = page_of(name)
    head = markdown(HEADS, [], "---:")
    tables = re.findall(re.escape(head) + r"\n((?:\|.*\n)+)", page)
    assert sum(table.count("\n") for table in tables) == rows
    assert "**" not in "".join(tables)
    assert not re.search(r"<!-- [\w-]+ -->\s*<!-- /", page)


def test_a_target():
    target = Target.within("clicks", 0.99, 1.0, 0.02)
    assert str(target) == "clicks | 0.990 | ± 2% | 1.000"
    assert str(replace(target, accepted="")) == "clicks | 0.990 | 0.980 to 1.020 | 1.000"
    assert missed({"a": [target, replace(target, found=0.97)], "b": "text"}) == [
        "clicks | **0.970** | ± 2% | 1.000"
    ]


def test_targets_of_one_quantity_share_a_row():
    rates = [Target.within("rate, at", value, 1.0, 0.02, k) for k, value in enumerate((1, 0.9, 1))]
    page = written({"a": [*rates, Target.within("rate, at", 1, 1.0, 0.5, 3), rates[0]]})["a"]
    assert page.splitlines()[2:] == [
        "| rate, at: 0 to 2 | 1.000, **0.900**, 1.000 | ± 2% | 1.000, 1.000, 1.000 |",
        "| rate, at: 3 | 1.000 | ± 50% | 1.000 |",
        "| rate, at: 0 | 1.000 | ± 2% | 1.000 |",
    ]


def test_the_search_finds_a_law():
    wanted = moved(uva.LAW, {"eta": 0.8, "level": -1.0, "readers": 0.7})

    def distance(law):
        return (law.users.eta - 0.8) ** 2 + (law.level + 1) ** 2 + (law.users.readers - 0.7) ** 2

    found = descend(uva.LAW, ["eta", "level", "readers"], distance, positive=("eta",))
    assert distance(found) < 1e-4
    assert found.thresholds == wanted.thresholds
    assert found.users.patience == wanted.users.patience


@pytest.mark.parametrize(("shift", "share"), [(0.0, 0.0), (1e3, 1.0)])
def test_variance_between_queries(shift, share):
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(4), 500)
    features = rng.normal(size=(2000, 3)) + shift * query[:, None]
    lists = Rankings(query, np.tile(np.arange(500), 4), np.zeros(2000), features)
    assert mslr.likeness({"train": lists}).found == pytest.approx(share, abs=0.01)
