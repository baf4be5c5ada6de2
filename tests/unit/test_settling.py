"""Settings of towers, examination, heads and training: lanes and refusals."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from tests.refusals import put
from twotowers.errors import InputError
from twotowers.experiment.components import components, find
from twotowers.experiment.config import read_config
from twotowers.experiment.fields import read
from twotowers.experiment.objects import dumped, files_of, loaded
from twotowers.experiment.paper import load_paper
from twotowers.experiment.parts import Examination
from twotowers.files.yamls import read_yaml
from twotowers.root import ROOT
from twotowers.towers.dense import Layer
from twotowers.towers.lane import Lane
from twotowers.workflow.planning import Planner

CONFIG = read_config(read_yaml(ROOT / "config.yaml"))
EXPERIMENT = yaml.safe_load("""
title: T
citation: C
datasets: {mslr30k: {prepare: ultra}}
scales:
  smoke: {seeds: [1], sessions: {train: 3, validation: 2, test: 1}}
  laptop: {seeds: [1], sessions: {train: 3, validation: 2, test: 1}}
  paper: {seeds: [1], sessions: {train: 3, validation: 2, test: 1}}
rankers:
  linear:
    {kind: linear, learning_rate: 0.1, batch: 1, steps: 1, epochs: 1, patience: 1, min_delta: 0}
training:
  slow:
    optimizer: adam
    learning_rate: [0.1, 0.2]
    batch: 1
    steps: 1
    epochs: 1
    patience: 1
    min_delta: 0
logs: {main: {dataset: mslr30k, relevance: annotated, policy: {ranker: expert}}}
settings:
  fit:
    log: main
    model:
      tower:
        kind: dense
        layers: [512, {width: 256, dropout: 0.1}, 128]
        activation: relu
        dropout: [0, 0.5]
        normalise: batch
      examination: {kind: dense, layers: [16], dropout: [0.1, 0.2, 0.3]}
    method: {kind: likelihood, heads: {reversal: {scale: [0, 1]}}}
    training: slow
items: {}
""")


def drawn(kind: str, **parameters) -> dict:
    """An item with a drawing of groups of settings."""
    return {
        "title": "T", "kind": "figure", "needs": ["fit"], "caption": "C", "expected": "E",
        "draw": {"kind": kind, **parameters},
    }  # fmt: skip


@pytest.fixture
def load(tmp_path):
    """load(path, value): load a paper 'p' with another value."""

    def load(path="", value=None):
        experiment = put(EXPERIMENT, path, value) if path else EXPERIMENT
        file = tmp_path / "papers" / "p" / "experiment.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(experiment))
        return load_paper("p", CONFIG, root=tmp_path)

    return load


def planned(paper) -> Planner:
    return Planner(CONFIG, {"p": paper})


def inputs_of(paper, name: str, seed: int) -> dict[str, str]:
    """The inputs of a fit."""
    setting = paper.settings[name]
    return setting.log.fit_inputs(planned(paper).files("p"), seed, setting)


def test_lists_of_numbers_are_lanes(load):
    fit = load().settings["fit"]
    assert fit.lanes["parts"] == {
        "tower_dropout": [0, 0.5],
        "examination_dropout": [0.1, 0.2, 0.3],
        "reversal_scale": [0, 1],
    }
    assert fit.lanes["training"] == {"learning_rate": [0.1, 0.2]}
    assert fit.model.tower.options["layers"] == (512, Layer(256, 0.1), 128)
    assert fit.model.tower.options["dropout"] == Lane("tower_dropout", (0, 0.5))
    assert fit.model.examination.kind.options == {"layers": (16,)}
    assert [head.name for head in fit.method.options["heads"]] == ["reversal"]


def test_single_numbers_are_no_lanes(load):
    examination = {"kind": "table", "dropout": 0.3}
    fit = load("settings.fit.model", {"tower": "linear", "examination": examination})
    fit = fit.settings["fit"]
    assert fit.lanes["parts"] == {"reversal_scale": [0, 1]}
    assert fit.model.examination == Examination("table", 0.3)


@pytest.mark.parametrize(("section", "name"), [("settings", "fit"), ("logs", "main")])
def test_a_job_gets_the_objects_that_the_plan_has_made(load, section, name):
    own = getattr(load(), section)[name]
    assert loaded(json.loads(json.dumps(dumped(own)))) == own


PAGED = {
    "dataset": "mslr30k", "relevance": "annotated", "policy": {"ranker": "expert"},
    "record": "sessions", "queries": "train",
}  # fmt: skip
LISTS = {
    "from": "lists", "user": "position_based", "views": [10, 100],
    "lists": {"components": 1, "links": [[1, 2]], "documents": 3, "queries": 5, "exchanged": 1,
              "shares": [1], "drift": [0], "seed": None},
    "repairs": {"none": {}, "near": {"merge": "nearest"}},
}  # fmt: skip
RANKED = {
    "from": "lists", "user": "position_based", "views": [10, 100], "dataset": "mslr30k",
    "policy": {"ranker": "linear", "seed": 5},
    "repairs": {"none": {}, "near": {"merge": "nearest"}},
    "contexts": {"types": 3, "features": 2, "deviation": 1, "position_weight": 10, "seed": 0},
}  # fmt: skip
FIT, LOG = "settings.fit", "logs.main"
TOWER, EXAMINED = "settings.fit.model.tower", "settings.fit.model.examination"
HEADS, TRAINED = "settings.fit.method.heads", "training.slow"


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        (TOWER, ["linear", "deep"], "model.tower | ['linear', 'deep'] | a kind, alone"),
        (f"{TOWER}.kind", ["dense", "deep"], "model.tower | ['dense', 'deep'] is unknown"),
        (f"{TOWER}.layers", [[3], [4]], "tower.layers.0 | [3] | an integer"),
        (f"{TOWER}.activation", ["elu", "relu"], "['elu', 'relu'] | 'elu'"),
        (f"{TOWER}.dropout", [0, 1.5], "tower.dropout.1 | 1.5 | at most 0.99"),
        (TOWER, {"kind": "hashed", "ratio": [2, 0.5]}, "tower.ratio.1 | 0.5 | at least 1"),
        (EXAMINED, "embedding", "'embedding' is unknown | 'table'"),
        (EXAMINED, {"kind": "table", "layers": [3]}, "'table' has no parameter 'layers'"),
        (HEADS, {"reversal": {"scal": 1}}, "heads.reversal.scal | 'scale'"),
        ("settings.fit.model.kind", "document_rate", "heads.reversal | has no examination"),
        (HEADS, ["reversal"], "method.heads: ['reversal'] | a mapping"),
        (f"{TRAINED}.weight_decay", 0.1, "slow.weight_decay | 'adam' has no weight decay"),
        ("scales.smoke.seeds", [1, 1], "smoke.seeds | [1, 1] | different values"),
        ("settings.fit.measure", ["uncertainty"], "fit.measure | per pair"),
        ("items.i", drawn("curves", panels={"A": {"x": "fitt"}}, metric="n", along="strength",
                          label="l", xlabel="x"), "'fitt' | mean 'fit'"),
        ("items.i", drawn("dots", groups={"A": {"x": {"setting": "f"}}}, metrics={}),
         "'f' | i.draw"),
        (FIT, {"log": "main", "model": {"tower": {"kind": "dense", "layers": [4]}}},
         "settings.fit.model.tower: 'dense' is not declared"),
        (FIT, {"log": "main", "model": {"kind": "cascade", "tower": "embedding"},
               "method": "counting"}, "model 'cascade' needs the clicks of whole pages"),
        (f"{FIT}.transfer", {"trees": 5, "leaves": 4}, "there are no test queries to rank"),
        (LOG, {**PAGED, "record": "cells", "user": "user_browsing"},
         "user 'user_browsing' needs | 'record: sessions'"),
        (LOG, {**PAGED, "user": {"kind": ["position_based", "cascade"], "eta": 1}},
         "user.eta: unknown setting"),
        *((LOG, LISTS | changed, parts) for changed, parts in [
            ({"repairs": {"a": {"merge": "nearest", "swap": "random"}}},
             "one of 'merge', 'swap' and"),
            ({"repairs": {"a": {"merge": "nearest", "split": True}}},
             "'merge', 'swap' and 'split'"),
            ({"repairs": {"a": {"empty": True}}}, "repairs.a | unknown setting 'empty'"),
            ({"user": "cascade"}, "user 'cascade' needs the clicks of whole pages"),
            ({"user": {"kind": "position_based", "eta": [1, 2]}},
             "'eta' is [1.0, 2.0] | one value"),
            ({"views": [10, 10]}, "views: is [10, 10]"),
            ({"repairs": {"a": {"swap": "cheap"}}}, "repairs.a.swap | one of 'cheapest'"),
        ]),
        *((LOG, RANKED | changed, parts) for changed, parts in [
            ({"policy": {"ranker": "linear"}}, "policy: 'seed' is missing"),
            ({"contexts": {"types": 3}}, "contexts"),
            ({"repairs": {"a": {"merge": [[1, 2]]}}}, "repairs.a.merge | 'nearest'"),
        ]),
    ],
)  # fmt: skip
def test_what_is_refused_before_anything_is_computed(load, path, value, parts):
    with pytest.raises(InputError) as caught:
        load(path, value)
    for part in [str(Path("papers", "p", "experiment.yaml")), *parts.split(" | ")]:
        assert part in str(caught.value)


BY_PAIR, UNMERGED = EXPERIMENT["logs"]["main"] | {"queries": "train"}, {"repair": ["none"]}
DENSE = {"tower": "embedding", "examination": {"kind": "dense", "layers": [2]}}


@pytest.mark.parametrize(
    ("log", "changes", "message"),
    [
        (BY_PAIR, {"measure": ["queries"]}, ""),
        (BY_PAIR, {"training": "slow"}, "'learning_rate' cannot differ between lanes of method"),
        (BY_PAIR, {"model": DENSE}, "model.examination: method 'newton' has a parameter per"),
        (BY_PAIR, {"measure": ["epochs"]}, "fit.measure.*'epochs'.*a method that trains"),
        (LISTS, {}, "fit.method: method 'newton' takes positions"),
        (LISTS, {"lanes": UNMERGED}, ""),
        (LISTS, {"lanes": UNMERGED, "measure": ["places"]}, "'places' cannot .*a ranker sorts"),
    ],
)
def test_what_a_method_that_trains_no_towers_asks_for(load, monkeypatch, log, changes, message):
    monkeypatch.setitem(EXPERIMENT["logs"], "main", log)
    setting = {"log": "main", "model": {"tower": "embedding"}, "method": "newton"}
    with pytest.raises(InputError, match=message) if message else nullcontext():
        load("settings.fit", setting | changes)


PAPERS_OWN = """
from typing import Literal

from twotowers.towers.lane import Lanes
from twotowers.towers.parts import Rate, Tower

Shape = Literal["flat", "steep"]


class Wide(Tower):
    def __init__(self, width, *, decay: Lanes[Rate], shape: Shape = "flat", rngs):
        pass
"""


def write_own(root: Path, paper: str, family: str, name: str, text: str) -> None:
    """Write the file of a paper's own kind below a root, such as `papers/own/models/mine.py`."""
    path = root / "papers" / paper / family / f"{name}.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_a_paper_brings_towers_of_its_own(tmp_path):
    write_own(tmp_path, "towers_of_its_own", "towers", "wide", PAPERS_OWN)
    own = components("towers", "towers_of_its_own", root=tmp_path)["wide"]
    assert (own.holds.__name__, list(own.options.model_fields)) == ("Wide", ["decay", "shape"])
    assert read(own.options, {"decay": [0, 0.5]}).decay == Lane("decay", (0, 0.5))
    for given, words in (
        ({}, "'decay' is missing"),
        ({"decay": 2}, "decay: 2 .*at most 0.99"),
        ({"decay": 0, "shape": "flta"}, "shape: 'flta' .*did you mean 'flat'"),
    ):
        with pytest.raises(InputError, match=words):
            read(own.options, given)
    with pytest.raises(InputError, match="did you mean 'wide'"):
        find("towers", "wied", "towers_of_its_own", root=tmp_path)
    assert set(components("towers")) == {
        "baseline", "deep", "deep_cross", "dense", "embedding", "hashed", "linear",
        "quotient_remainder",
    }  # fmt: skip
    assert set(components("heads")) == {"reversal"}


@pytest.mark.parametrize(("family", "name"), [("towers", "deep"), ("methods", "ips")])
def test_a_papers_file_has_no_name_of_the_librarys(tmp_path, family, name):
    write_own(tmp_path, "p", family, name, "")
    message = rf"{name}.py: '{name}' is one of the library's {family} .*another name of the file"
    with pytest.raises(InputError, match=message):
        components(family, "p", root=tmp_path)


def test_users_of_several_kinds_are_lanes_and_a_job_depends_on_the_files_of_all(load):
    names = ["additive", "cascade"]
    experiment = load("logs.main", {**PAGED, "user": {"kind": names}})
    assert experiment.logs["main"].lanes["user_kind"] == names
    assert [each.name for each in experiment.logs["main"].user.models] == names
    sources = set(files_of(dumped(experiment.settings["fit"])))
    assert sources >= {"twotowers/models/additive.py", "twotowers/models/cascade.py"}


DESCRIBED = {
    "from": "dataset", "dataset": "baidu_ultr_uva", "features": True,
    "split": {"train": 0.5, "validation": 0.25, "test": 0.25},
}  # fmt: skip


def test_a_real_log_of_documents_with_features(load, monkeypatch):
    monkeypatch.setitem(EXPERIMENT, "datasets", {"mslr30k": {}, "baidu_ultr_uva": {}})

    simulated = EXPERIMENT["logs"]["main"]

    def paper(log, tower):
        monkeypatch.setitem(EXPERIMENT, "logs", {"main": log})
        setting = {"log": "main", "model": {"tower": tower}, "training": "slow"}
        return load("settings.fit", setting)

    for tower, parts in [("deep_cross", {"documents", "annotations"}), ("baseline", set())]:
        plan = planned(found := paper(DESCRIBED, tower))
        inputs = inputs_of(found, "fit", 1)
        assert set(inputs) == {"log", *parts}
        assert inputs["log"].endswith("raw/baidu_ultr_uva/pages.parquet")
    sizes = {part: plan.standin_size("baidu_ultr_uva", part) for part in ("pages", "documents")}
    assert len(set(sizes.values())) == 1
    assert plan.standin_size("baidu_ultr_uva", "annotations") == 1000
    with pytest.raises(InputError, match=r"'annotations' is no part of the stand-in .*'log'"):
        plan.standin_size("wscd", "annotations")
    without = {key: value for key, value in DESCRIBED.items() if key != "features"}
    with pytest.raises(InputError, match=r"reads features, and this log has none.*features: true"):
        paper(without, "deep_cross")
    with pytest.raises(InputError, match="features: unknown setting"):
        paper(simulated | {"features": True}, "deep_cross")


def test_a_log_of_given_lists_needs_no_data_and_no_sessions(load, monkeypatch):
    monkeypatch.setitem(EXPERIMENT, "logs", {"main": LISTS})
    model = {"kind": "position_based", "tower": "embedding"}
    setting = {"log": "main", "model": model, "lanes": {"views": [100]}, "method": "alternation"}
    experiment = load("settings.fit", setting)
    fit = experiment.settings["fit"]
    assert fit.lanes["log"] == {"repair": ["near", "none"], "views": [100.0]}
    assert fit.log.clicks_inputs(planned(experiment).files("p"), 1) == {}
    inputs = inputs_of(experiment, "fit", 1)
    assert list(inputs) == ["clicks"]
    assert inputs["clicks"].endswith("clicks/p/lists/main/1.parquet")
    assert planned(experiment).datasets_of("p", ["fit"]) == []


def test_a_log_of_ranked_lists_has_one_policy_for_all_seeds(load, monkeypatch):
    monkeypatch.setitem(EXPERIMENT, "logs", {"main": RANKED})
    model = {"kind": "position_based", "tower": "embedding"}
    setting = {"log": "main", "model": model, "method": "alternation"}
    paper = load("settings.fit", setting)
    inputs = paper.logs["main"].clicks_inputs(planned(paper).files("p"), 7)
    assert {name: path.split("/", 2)[2] for name, path in inputs.items()} == {
        "train": "rankings/p/mslr30k/train.parquet",
        "policy": "policies/p/mslr30k/annotated-linear/5.parquet",
    }
    clicks = inputs_of(paper, "fit", 7)
    assert list(clicks) == ["clicks"]
    assert clicks["clicks"].endswith("clicks/p/mslr30k/main/7.parquet")
    assert planned(paper).datasets_of("p", ["fit"]) == ["mslr30k"]
    ranking = {**setting, "transfer": {"trees": 5, "leaves": 4}}
    paper = load("settings.fit", ranking)
    found = inputs_of(paper, "fit", 7)
    assert set(found) == {"train", "test", "policy", "clicks"}
    for wrong, message in (
        ({"method": "em"}, "fit.method: method 'em' takes positions for bias factors"),
        ({"measure": ["recovery"]}, "'recovery' cannot be measured .*not lists that a ranker"),
    ):
        with pytest.raises(InputError, match=message):
            load("settings.fit", setting | wrong)
    assert found["policy"] == inputs["policy"]


def test_a_scale_may_draw_an_item_from_other_settings(load, monkeypatch):
    """What it alone needs is made there alone."""
    monkeypatch.setitem(EXPERIMENT["settings"], "few", EXPERIMENT["settings"]["fit"])
    items = {name: drawn("position_bias", settings={"fit": "F"}) for name in "ij"}
    monkeypatch.setitem(EXPERIMENT, "items", items)
    few = drawn("position_bias", settings={"few": "F"})
    other = {"i": {"needs": ["few"], "draw": few["draw"]}}
    here, there = (load(f"scales.{scale}.items", other) for scale in (CONFIG.scale, "paper"))
    assert [paper.items["i"].needs for paper in (here, there)] == [("few",), ("fit",)]
    assert [set(paper.settings) for paper in (here, there)] == [{"few", "fit"}, {"fit"}]
    monkeypatch.setitem(EXPERIMENT, "items", {"i": items["i"]})
    assert set(load(f"scales.{CONFIG.scale}.items", other).settings) == {"few"}
