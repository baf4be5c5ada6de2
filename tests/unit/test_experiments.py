"""Configuration and experiments: refusals and their hints."""

from pathlib import Path

import pytest
import yaml

from tests.refusals import put, refusals
from twotowers.errors import InputError
from twotowers.experiment.components import components
from twotowers.experiment.config import read_config
from twotowers.experiment.matrix import expanded
from twotowers.experiment.paper import load_paper
from twotowers.experiment.parts import Examination
from twotowers.experiment.simulated import SimulatedLog
from twotowers.files.yamls import read_yaml
from twotowers.root import ROOT

CONFIG = read_yaml(ROOT / "config.yaml")

EXPERIMENT = yaml.safe_load("""
title: T
citation: C
datasets: {mslr30k: {prepare: top_labels, top: 25}, yandex: {}}
positions: 25
scales:
  smoke: {seeds: [1], sessions: {train: 3, validation: 2, test: 1}}
  laptop: {seeds: [1], sessions: {train: 3, validation: 2, test: 1}}
  paper: {seeds: [1], sessions: {train: 3, validation: 2, test: 1}}
rankers: {svm: {kind: svm, share: 0.1, cost: 200}}
training:
  deep: {learning_rate: 0.1, batch: 1, steps: 1, epochs: 1, patience: 1, min_delta: 0}
logs:
  main:
    dataset: mslr30k
    relevance: annotated
    policy: {ranker: expert, strength: [-1, 0.5], temperature: [0, 1]}
settings: {fit: {log: main, model: {tower: deep}}}
studies: {lemma: {views: 2}, real: {dataset: yandex, seeds: [8, 9]}}
items:
  fig1:
    title: T
    kind: figure
    needs: [fit, lemma, real]
    caption: c
    expected: e
    draw: {kind: position_bias, settings: {fit: F}, where: {strength: 1}}
""")
STUDIES = {"lemma": ", views, draws=1", **dict.fromkeys(("real", "a", "b"), "")}
"""Modules of studies, and their parameters."""


# config.yaml


CONFIG_REFUSED = """
scal: smoke -> config.yaml | 'scal' | did you mean 'scale'
result: x -> config.yaml | 'result' | did you mean 'results'
scale: huge -> ^ | 'huge' | one of 'laptop', 'paper', 'smoke'
scale: ~ -> config.yaml | 'scale' is missing
papers: hager2025 -> ^ | 'hager2025' | expected a list
datasets.mslr30k.foldr: x -> datasets.mslr30k | 'foldr' | did you mean 'folder'
datasets.mslr30k.standin.smoke.train: 0 -> ^ | at least 1
datasets.mslr30k.standin.smoke.test: ~ -> datasets.mslr30k.standin.smoke | 'test' is missing
datasets.yandex.standin.smoke: {} -> ^ | queries per split, or 'log'
replace: {mslr30k: mq2008} -> ^ | 'mq2008'
"""


@pytest.mark.parametrize(("path", "value", "parts"), refusals(CONFIG_REFUSED))
def test_config_errors_name_file_field_and_the_nearest(path, value, parts):
    with pytest.raises(InputError) as caught:
        read_config(put(CONFIG, path, value))
    for part in ["config.yaml", *parts]:
        assert part in str(caught.value)


# experiment.yaml


def test_lanes_of_users_and_sessions(load):
    log = {
        **EXPERIMENT["logs"]["main"],
        "user": {"kind": "position_based", "eta": [0, 1], "noise": 0.2},
        "sessions": {"train": [10, 100], "validation": [1, 10], "test": 5},
    }
    lanes = load(put(EXPERIMENT, "logs.main", log)).logs["main"].lanes
    assert list(lanes) == ["strength", "temperature", "sessions", "eta"]
    assert (lanes["sessions"], lanes["eta"]) == ([10, 100], [0, 1])


@pytest.fixture
def load(tmp_path):
    """load(experiment, **config) of a paper 'p' in a project of its own."""

    def load(experiment=EXPERIMENT, **config):
        path = tmp_path / "papers" / "p" / "experiment.yaml"
        (path.parent / "studies").mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(experiment))
        for name, parameters in STUDIES.items():
            module = f"def run(inputs, *, seed{parameters}):\n    pass\n"
            (path.parent / "studies" / f"{name}.py").write_text(module)
        return load_paper("p", read_config(CONFIG | config), root=tmp_path)

    return load


@pytest.mark.parametrize(
    ("own", "at_scale", "seeds", "expected"),
    [
        (None, None, 1, [5, 9]),
        (None, None, 4, [5, 9, 10, 11]),
        ([7], None, 4, [7]),
        ([2, 3, 4, 6, 8], None, 4, [2, 3, 4, 6, 8]),
        (None, [5], 1, [5]),
        (None, [5], 4, [5, 9, 10, 11]),
        (None, [1, 2, 3, 4, 5], 4, [1, 2, 3, 4, 5]),
    ],
)
def test_a_configuration_asks_for_more_seeds(load, own, at_scale, seeds, expected):
    changed = put(EXPERIMENT, "scales.laptop.seeds", [5, 9])
    if own:
        changed = put(changed, "settings.fit.seeds", own)
    if at_scale:
        changed = put(changed, "scales.laptop.settings", {"fit": {"seeds": at_scale}})
    assert load(changed, scale="laptop", seeds=seeds).seeds_of("fit") == expected


def test_an_experiment_is_filled_in(load):
    paper = load()
    fit, log = paper.settings["fit"], paper.logs["main"]
    assert fit.lanes == {
        "log": {"strength": [-1, 0.5], "temperature": [0, 1]},
        "method": {"weighting": ["none"], "start": ["random"]},
    }
    assert (fit.model.kind, fit.model.tower.name, fit.model.features) == ("additive", "deep", 1)
    assert fit.model.examination == Examination()
    assert (fit.method.name, list(fit.method.options)) == ("likelihood", ["weighting", "start"])
    assert (fit.log, fit.training.batch) == (log, 1)
    assert isinstance(log, SimulatedLog)
    assert [log.sessions.of(split) for split in ("train", "validation", "test")] == [[3], [2], [1]]
    assert ([each.name for each in log.user.models], log.positions) == (["additive"], 25)
    assert (paper.key, paper.seeds) == ("p", (1,))
    assert {name: each.steps for name, each in paper.datasets.items()} == EXPERIMENT["datasets"]


def test_an_item_of_some_scales_takes_along_what_only_it_needs(load):
    slow = EXPERIMENT["items"]["fig1"] | {"needs": ["fit", "slow", "lemma"], "scales": ["paper"]}
    changed = put(EXPERIMENT, "items.fig2", slow)
    changed = put(changed, "settings.slow", EXPERIMENT["settings"]["fit"])
    laptop, paper = load(changed, scale="laptop"), load(changed, scale="paper")
    assert (set(laptop.items), set(paper.items)) == ({"fig1"}, {"fig1", "fig2"})
    assert (set(laptop.settings), set(paper.settings)) == ({"fit"}, {"fit", "slow"})
    assert laptop.studies.keys() == paper.studies.keys() == EXPERIMENT["studies"].keys()
    for key in ("only", "also"):
        asked = load(changed, scale="laptop", **{key: ["p/fig2", "other/fig1"]})
        assert (set(asked.items), set(asked.settings)) == ({"fig1", "fig2"}, {"fit", "slow"})
    assert set(load(put(changed, "items.fig2.scales", []), scale="paper").items) == {"fig1"}


def test_a_scale_may_fit_the_logs_of_some_data_sets(load):
    other = EXPERIMENT["logs"]["main"] | {"dataset": "yahoo"}
    changed = put(EXPERIMENT, "datasets.yahoo", {"prepare": "top_labels", "top": 25})
    changed = put(changed, "logs.other", other)
    changed = put(changed, "settings.far", EXPERIMENT["settings"]["fit"] | {"log": "other"})
    changed = put(changed, "items.fig1.needs", ["far", "fit", "lemma"])
    draw = EXPERIMENT["items"]["fig1"]["draw"] | {"settings": {"fit": "F", "far": "G"}}
    changed = put(changed, "items.fig1.draw", draw)
    alone = EXPERIMENT["items"]["fig1"] | {
        "needs": ["far"],
        "draw": draw | {"settings": {"far": "G"}},
    }
    changed = put(changed, "items.fig2", alone)
    changed = put(changed, "scales.smoke.datasets", ["mslr30k"])
    smoke, laptop = load(changed, scale="smoke"), load(changed, scale="laptop")
    assert (set(smoke.settings), set(laptop.settings)) == ({"fit"}, {"fit", "far"})
    # The items have what is left, and one of nothing is not made. Studies stay.
    assert (set(smoke.items), set(laptop.items)) == ({"fig1"}, {"fig1", "fig2"})
    assert smoke.items["fig1"].needs == ("fit", "lemma")
    assert smoke.items["fig1"].draw["settings"] == {"fit": "F"}
    assert laptop.items["fig1"].draw["settings"] == {"fit": "F", "far": "G"}
    assert set(smoke.studies) == {"lemma", "real"}
    # A data set that a configuration puts in place of another is always fitted.
    mine = load(changed, scale="smoke", replace={"yahoo": "istella_s"})
    assert set(mine.settings) == {"fit", "far"}
    with pytest.raises(InputError, match=r"scales\.smoke\.datasets.*'yaho'"):
        load(put(changed, "scales.smoke.datasets", ["yaho"]), scale="smoke")


def test_overrides_of_a_scale_apply_to_that_scale_only(load):
    overrides = {
        "rankers": {"svm": {"cost": 3}},
        "training": {"deep": {"steps": 7}},
        "studies": {"lemma": {"views": 9}},
        "settings": {"fit": {"seeds": [8]}},
    }
    changed = put(
        EXPERIMENT, "scales.smoke", EXPERIMENT["scales"]["smoke"] | {"seeds": [5]} | overrides
    )
    smoke, laptop = load(changed, scale="smoke"), load(changed, scale="laptop")
    trained = smoke.settings["fit"].training
    assert (smoke.seeds, trained.steps, trained.epochs) == ((5,), 7, 1)
    assert (smoke.rankers["svm"].share, smoke.rankers["svm"].cost) == (0.1, 3)
    assert smoke.studies["lemma"].parameters == {"views": 9}
    assert (smoke.seeds_of("fit"), laptop.seeds_of("fit")) == ([8], [1])
    assert (laptop.seeds, laptop.settings["fit"].training.steps) == ((1,), 1)
    assert laptop.rankers["svm"].cost == 200
    assert laptop.studies["lemma"].parameters == {"views": 2}


def test_overrides_apply_to_one_of_two_names_that_share_an_anchor(load):
    """YAML reads both names as one object."""
    entry = EXPERIMENT["studies"]["lemma"] | {"module": "lemma"}
    shared = put(EXPERIMENT, "studies", {"lemma": entry, "other": entry})
    changed = put(put(shared, "items", {}), "scales.smoke.studies", {"lemma": {"views": 7}})
    assert "*id" in yaml.safe_dump(changed)
    found = load(changed, scale="smoke").studies
    assert [found[name].parameters["views"] for name in ("lemma", "other")] == [7, 2]


def replaced(**names):
    """A configuration in which data sets stand for others."""
    datasets = CONFIG["datasets"] | {"mine": {"source": "mq2008"}}
    return {"datasets": datasets, "replace": names}


def test_a_data_set_is_replaced_wherever_it_is_named(load):
    study = {"dataset": "mslr30k", "ranker": "svm"}
    experiment = put(EXPERIMENT, "studies", EXPERIMENT["studies"] | {"a": study, "b": study})
    assert "*id" in yaml.safe_dump(experiment), "a and b are one object"
    found = load(experiment, **replaced(mslr30k="mine"))
    assert list(found.datasets) == ["mine", "yandex"]
    assert found.datasets["mine"].steps == EXPERIMENT["datasets"]["mslr30k"]
    assert found.logs["main"].dataset == "mine"
    datasets = {name: study.dataset for name, study in found.studies.items()}
    assert datasets == {"lemma": None, "real": "yandex", "a": "mine", "b": "mine"}


def test_one_data_set_cannot_be_prepared_in_two_ways(load):
    both = replaced(mslr30k="mine", yahoo="mine")
    steps = EXPERIMENT["datasets"]["mslr30k"]
    alike = put(EXPERIMENT, "datasets.yahoo", steps)
    assert list(load(alike, **both).datasets) == ["mine", "yandex"]
    unlike = put(EXPERIMENT, "datasets.yahoo", steps | {"top": 10})
    with pytest.raises(InputError, match=r"datasets\.yahoo: 'mine' .* prepared differently"):
        load(unlike, **both)


@pytest.mark.parametrize("form", ["cells", "tiangong"])
def test_a_data_set_of_counts_has_no_pages_to_fit(load, form):
    counts = {"source": {"name": "counts", "format": form, "splits": {"log": "a"}}}
    log = {"from": "dataset", "dataset": "counts"}
    log["split"] = {"train": 0.8, "validation": 0.1, "test": 0.1}
    changed = put(put(EXPERIMENT, "datasets.counts", {}), "logs.real", log)
    with pytest.raises(InputError, match=rf"dataset: 'counts' of format '{form}' has no pages"):
        load(changed, datasets=CONFIG["datasets"] | {"counts": counts})


REFUSED = """
titel: x -> 'titel' | did you mean 'title'
settings: [fit] -> ^: ['fit'] | a mapping
logs.main: 3 -> ^: 3 | a mapping
items.fig1.needs: fit -> ^: 'fit' | a list
logs.main.policy.strength: [0, 1.5] -> ^.1 | 1.5 | at most 1
logs.main.policy.ranker: expret -> ^ | 'expret'
logs.main.policy.ranker: deep -> ^ | 'deep' is not declared
settings.fit.log: mian -> ^ | did you mean 'main'
settings.fit.model.tower: linear -> ^ | 'linear' is not declared
settings.fit.lanes: {strength: [0.25]} -> ^.strength | 0.25 | [-1.0, 0.5]
settings.fit.lanes: {strengt: [0.5]} -> ^ | no lanes 'strengt' | did you mean 'strength'
settings.fit.method: {kind: likelihood, weighting: [none, ipw]}
    -> ^.weighting | 'ipw' | did you mean 'ips'
settings.fit.method: liklihood -> did you mean 'likelihood'
settings.fit.model: {kind: position_based, tower: deep, eta: [1, 2]}
    -> ^ | eta | [1, 2] | a number
settings.fit.model.tower: embedding -> ^ | queries: train
logs.main: {from: dataset, dataset: yandex, split: {train: 0.8, validation: 0.1, test: 0.1}}
    -> settings.fit.model.tower | 'deep' reads features
logs.main: {from: dataset, dataset: yandex} -> ^ | 'split'
logs.main.user: {kind: position_based, eta: [1, two]} -> ^.eta | 'two' | a number
logs.main.policy.mixing_weight: 0.5 -> logs.main.policy | both a strength and a mixing weight
logs.main.sessions: {train: [9, 3], validation: 2, test: 1} -> ^ | do not rise
logs.main.sessions: {train: [3, 9], validation: [1, 2, 3], test: 1} -> ^ | lists of one length
settings.fit.log: {dataset: mslr30k} -> ^ | declared
logs.main.policy.strength: .nan -> policy.strength | a number
items.fig1.needs: [fti] -> ^ | did you mean 'fit'
datasets: {mslr30: {}} -> ^ | did you mean 'mslr30k'
datasets.yandex.prepare: ultr -> ^ | 'ultra'
logs.main.dataset: ~ -> logs.main | 'dataset' is missing
# Known to the configuration, but not declared by the experiment.
logs.main.dataset: yahoo -> ^ | 'yahoo' is not declared
studies.lemma.dataset: yandx -> ^ | 'yandx' is not declared | did you mean 'yandex'
studies.lemma: {dataset: mslr30k, ranker: smv}
    -> ^.ranker | 'smv' is not declared | did you mean 'svm'
studies.lemma.ranker: svm -> studies.lemma | 'dataset'
datasets.mslr30k: {prepare: top_labels} -> ^ | 'top'
studies.lemma.module: lema -> studies.lemma | did you mean 'lemma'
studies.lemma.views: ~ -> studies.lemma | 'views' is missing
scales.laptop.sessions: ~ -> logs.main: 'sessions' is missing
rankers.large: {learning_rate: 0.1} -> rankers.large: 'kind' is missing
scales.laptop.towers: {net: {layers: [2]}} -> scales.laptop.towers.net | 'net' is not declared
settings.fit.model: {tower: deep, examination: knwon} -> did you mean 'known'
logs.main.dataset: yandex -> ^ | 'yandex' is a click log
logs.main.record: pages -> ^ | 'cells', 'sessions'
logs.main: {dataset: mslr30k, relevance: annotated, policy: {ranker: expert, noise: session},
    queries: {ranked: once}} -> noise in each session ranks anew each time
logs.real: {from: dataset, dataset: mslr30k, split: {train: 0.8, validation: 0.1, test: 0.1}}
    -> logs.real.dataset | 'mslr30k' is rankings with labels
logs.real: {from: dataset, dataset: yandex, split: {train: 0.8, validation: 0.1, test: 0.1},
    user: additive} -> logs.real | unknown setting 'user'
logs.real: {from: dataset, dataset: yandex, split: {train: 0.8, validation: 0.1, test: 0.2}}
    -> logs.real.split | add up to 1
logs.main.user: {kind: additive, centre: []} -> user.centre | []
logs.main.policy.strength: [1, 0, 1.0] -> strength: is [1.0, 0.0, 1.0]
settings.fit.method: {kind: likelihood, weighting: [ips, ips]}
    -> fit.method.weighting | is ['ips', 'ips'] | different values
items.fig1.draw: {kind: position_bias, settings: 3} -> ^.settings: 3 | a mapping
"""


@pytest.mark.parametrize(("path", "value", "parts"), refusals(REFUSED))
def test_experiment_errors_name_file_field_and_the_nearest(load, path, value, parts):
    with pytest.raises(InputError) as caught:
        load(put(EXPERIMENT, path, value), scale="laptop")
    for part in [str(Path("papers", "p", "experiment.yaml")), *parts]:
        assert part in str(caught.value)


def test_a_drawing_chooses_rows_by_columns_that_there_are(load):
    changes = {"needs": ["fit"], "draw": EXPERIMENT["items"]["fig1"]["draw"]}
    only = put(EXPERIMENT, "items.fig1", EXPERIMENT["items"]["fig1"] | changes)
    load(put(only, "items.fig1.draw.where", {"weighting": "none", "position": 3}))
    wrong = "items.fig1.draw.where", {"strenght": 1}
    with pytest.raises(InputError, match=r"fig1.draw.where: .*'strenght' .*mean 'strength'"):
        load(put(only, *wrong))
    sweep = {"kind": "sweep", "metrics": {"ndcg@10": "n"}, "keys": [], "xlabel": "x"}
    sweep |= {"along": "strength", "curves": "temperature"}
    for key in ("along", "curves"):
        drawn = put(only, "items.fig1.draw", sweep | {key: "temperatur"})
        with pytest.raises(InputError, match=rf"fig1.draw.{key}: .*'temperatur' .*'temperature'"):
            load(drawn)
    load(put(EXPERIMENT, *wrong))  # The item needs studies, too, whose columns are not known.


BY_PAIR, SHOWN = {"queries": "train"}, {"record": "sessions"}
NEEDED = """
alternation | {kind: position_based, tower: deep} | model.tower | embedding
alternation | {tower: embedding} | model.kind | position_based
backdoor | {tower: deep} | log | record: sessions
backdoor | {tower: embedding} | model.tower | features
chance | {kind: global_rate, tower: deep} | |
conditional | {tower: deep} | model.tower | embedding
counting | {tower: embedding} | method | em
dla | {kind: document_rate, tower: deep} | model.kind | examination
dla | {tower: deep} | |
em | {tower: embedding} | method | expectations
em | {kind: document_rate, tower: embedding} | method | counting
harvesting | {tower: embedding} | |
ips | {tower: deep} | |
lambdamart | {tower: deep} | log | record: sessions
lambdarank | {tower: deep} | log | record: sessions
likelihood | {kind: rank_rate, tower: deep} | model | record: sessions
newton | {tower: deep} | model.tower | embedding
newton | {kind: position_based, tower: embedding} | model.kind | additive
pairwise_debiasing | {tower: deep} | log | record: sessions
regression_em | {tower: deep} | log | record: sessions
softmax | {tower: deep} | |
"""


@pytest.mark.parametrize("row", NEEDED.strip().splitlines())
def test_a_method_says_what_it_needs(load, row):
    method, model, field, expected = (cell.strip() for cell in row.split("|"))
    model, pages = yaml.safe_load(model), expected == "features"
    log = EXPERIMENT["logs"]["main"] | (BY_PAIR if model["tower"] == "embedding" else {})
    changed = put(EXPERIMENT, "logs.main", log | (SHOWN if pages else {}))
    fit = {"log": "main", "model": model, "method": method}
    changed = put(changed, "settings.fit", fit | {"training": "deep"})
    if not field:
        assert load(changed).settings["fit"].method.name == method
        return
    with pytest.raises(InputError, match=rf"settings\.fit\.{field}: .*{expected}"):
        load(changed)


def test_every_method_is_tried():
    assert {row.split(" ")[0] for row in NEEDED.strip().splitlines()} == {*components("methods")}


@pytest.mark.parametrize("method", ["conditional", "harvesting"])
def test_a_method_of_bias_alone_may_be_tested_on_other_queries(load, method):
    fit = EXPERIMENT["settings"]["fit"] | {"model": {"tower": "embedding"}, "method": method}
    assert not load(put(EXPERIMENT, "settings.fit", fit)).settings["fit"].log.same_queries


def test_a_mistake_is_blamed_on_the_file_that_has_it(tmp_path):
    ours, mine = tmp_path / "config.yaml", tmp_path / "mine.yaml"
    ours.write_text("scale: smoke\ndatasets:\n  yandex: {source: yandex_20_queries}\n")
    mine.write_text("\npaperz: [zhang2023]\n")
    with pytest.raises(InputError, match=r"mine\.yaml:2: paperz: unknown setting"):
        read_config(CONFIG | {"paperz": ["zhang2023"]}, [ours, mine])
    mine.write_text("datasets:\n  mine:\n    foldr: x\n")
    datasets = CONFIG["datasets"] | {"mine": {"source": "yandex_20_queries", "foldr": "x"}}
    with pytest.raises(InputError, match=r"mine\.yaml:3: datasets\.mine\.foldr"):
        read_config(CONFIG | {"datasets": datasets}, [ours, mine])
    with pytest.raises(InputError, match=r"/config\.yaml:1: scale"):
        read_config(CONFIG | {"scale": "huge"}, [ours, mine])


def test_a_setting_may_name_a_tower_which_a_scale_may_override(load):
    changed = put(EXPERIMENT, "towers", {"net": {"kind": "dense", "layers": [8, 4]}})
    changed = put(
        changed, "settings.fit", {"log": "main", "model": {"tower": "net"}, "training": "deep"}
    )
    changed = put(changed, "scales.smoke.towers", {"net": {"layers": [2]}})
    for scale, layers in (("smoke", [2]), ("paper", [8, 4])):
        tower = load(changed, scale=scale).settings["fit"].model.tower
        assert (tower.name, tower.options) == ("dense", {"layers": tuple(layers)})


# Products of settings


def test_a_matrix_is_a_setting_for_each_combination(load):
    fit = {
        "model": {"tower": "deep"},
        "matrix": {"log": ["main", "other"], "method": ["likelihood", "ips"]},
    }
    changed = put(EXPERIMENT, "settings.{log}-by-{method}", fit)
    changed = put(changed, "logs.other", EXPERIMENT["logs"]["main"])
    changed = put(changed, "items.fig1.needs", ["fit", "{log}-by-{method}"])
    paper = load(changed)
    found = paper.settings
    names = [f"{log}-by-{method}" for log in ("main", "other") for method in ("likelihood", "ips")]
    assert list(found) == [*paper.items["fig1"].needs] == ["fit", *names]
    assert found["other-by-ips"].log.name == "other"
    assert found["other-by-ips"].method.name == "ips"
    alone = {"log": "other", "method": "ips", "model": {"tower": "deep"}}
    changed = put(changed, "items.fig1.needs", ["fit"])
    written = put(changed, "settings", EXPERIMENT["settings"] | {"other-by-ips": alone})
    assert load(written).settings["other-by-ips"] == found["other-by-ips"]


def test_a_matrix_may_have_parts_of_settings_and_a_scale_may_name_it(load):
    parts = {"own": {"method": {"start": "zero"}}, "weighted": {"method": "ips"}}
    fit = {"log": "main", "model": {"tower": "deep"}, "method": {"kind": "likelihood"}}
    changed = put(EXPERIMENT, "settings.{part}", fit | {"matrix": {"part": parts}})
    changed = put(changed, "items.fig1.needs", ["fit", "{part}"])
    changed = put(changed, "scales.smoke.settings", {"{part}": {"seeds": [7]}})
    found = load(changed, scale="smoke").settings
    assert [found[name].method.name for name in parts] == ["likelihood", "ips"]
    assert found["own"].method.lanes["start"] == ["zero"]
    assert [each.seeds for each in found.values()] == [None, (7,), (7,)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"{a}": {"matrix": {"a": 1}}}, r"settings.{a}.matrix: .* is no matrix .*per key"),
        ({"{a}": {"matrix": {"a": [{}]}}}, "is no matrix .*names or numbers"),
        ({"{a}": {"matrix": {"a": {"b": 1}}}}, "is no matrix .*parts of settings by name"),
        ({"{b}": {"matrix": {"a": [1]}}}, "the name has 'b', .*expected {a}"),
        ({"{a}": {"matrix": {"a": [1], "b": [2, 3]}}}, "not tell all .* apart .*{a} and {b}"),
        ({"x1": {}, "x{a}": {"matrix": {"a": [1]}}}, "'x1' is declared twice"),
    ],
)
def test_what_is_no_matrix(settings, message):
    with pytest.raises(InputError, match=message):
        expanded(settings)


# Lines


LINES = """\
title: T
citation: C
datasets: {mslr30k: {prepare: ultra}}
scales:
  smoke:
    seeds: [1]
    training:
      deep: {steps: 0}
  laptop: {seeds: [1, -1]}
  paper: {seeds: [1]}
training:
  deep: {learning_rate: 0.1, batch: 1, epochs: 1, patience: 1, min_delta: 0,
         steps: 1}
logs:
  main:
    dataset: mslr30k
    sessions: {train: 3, validation: 2, test: 1}
    relevance: annotated
    policy: {ranker: expert, strength: [1,
                                        2]}
settings:
  "{log}-fit":
    matrix: {log: [main]}
    model:
      towr: deep
      tower: deep
items: {}
"""


@pytest.mark.parametrize(
    ("mended", "line", "field"),
    [
        ([], "  laptop: {seeds: [1, -1]}", "scales.laptop.seeds.1"),
        # The scale has put it in the place of another.
        ([", -1"], "      deep: {steps: 0}", "training.deep.steps"),
        ([", -1", "{steps: 0}"], " " * 40 + "2]}", "logs.main.policy.strength.1"),
        ([", -1", "{steps: 0}", "2]}"], "      towr: deep", "settings.main-fit.model.towr"),
    ],
)
def test_a_message_names_the_line(tmp_path, mended, line, field):
    path = tmp_path / "papers" / "p" / "experiment.yaml"
    path.parent.mkdir(parents=True)
    text = LINES
    for wrong in mended:
        assert wrong in text
        text = text.replace(wrong, {"{steps: 0}": "{steps: 9}", "2]}": "0]}"}.get(wrong, ""))
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_paper("p", read_config(CONFIG | {"scale": "smoke"}), root=tmp_path)
    assert text.splitlines()[caught.value.line - 1] == line
    assert str(caught.value).startswith(f"{path}:{caught.value.line}: {field}: ")
