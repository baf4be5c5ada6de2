"""The plan of a made-up paper, without Snakemake: files, inputs, parameters and order."""

import json
import re
import sys
from contextlib import redirect_stderr
from io import StringIO
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
import yaml

from twotowers.errors import InputError
from twotowers.experiment.config import read_config
from twotowers.experiment.objects import dumped, files_of, loaded
from twotowers.experiment.paper import AnyLog, Paper, load_paper
from twotowers.root import ROOT
from twotowers.workflow import dataset_jobs, planning
from twotowers.workflow import plan as plans
from twotowers.workflow.descriptions import _names, needs_data, page_paper, source_note
from twotowers.workflow.plan import Plan, read_plan
from twotowers.workflow.planning import Planner
from twotowers.workflow.provenance import _closure

TRAINING = {
    "learning_rate": 0.1, "batch": 10, "steps": 100, "epochs": 1, "patience": 1, "min_delta": 0,
}  # fmt: skip
TEXTS = {"title": "T", "caption": "c", "expected": "e"}
LOG = {
    "dataset": "web",
    "relevance": "annotated",
    "policy": {"ranker": "linear", "strength": [0, 1], "temperature": [0, 0.5, 1]},
    "sessions": {"train": 3, "validation": 2, "test": 1},
}
SCALE = {"seeds": [7, 8, 9]}
PAPER = {
    "title": "A paper",
    "citation": "A. Author",
    "datasets": {"web": {"prepare": "ultra"}, "shop": {}},
    "positions": 5,
    "scales": dict.fromkeys(("smoke", "laptop", "paper"), SCALE),
    "rankers": {"linear": TRAINING | {"kind": "linear"}, "deep": TRAINING | {"kind": "deep"},
                "svm": {"kind": "svm", "share": 0.5, "cost": 1}},
    "training": {"brief": TRAINING},
    "logs": {
        "main": LOG,
        "one": LOG | {"relevance": "deep", "policy": LOG["policy"] | {"ranker": "deep"},
                      "queries": "train", "positions": 7},
    },
    "settings": {
        "small": {"log": "main", "model": {"tower": "linear"}, "training": "brief",
                  "lanes": {"strength": [1]}},
        "large": {"log": "one", "model": {"tower": "deep"}, "training": "brief"},
    },
    "studies": {
        "theory": {"draws": 3},
        "real": {"module": "logs", "dataset": "shop", "seeds": [1], "top": 2},
        "ranked": {"dataset": "web", "ranker": "svm", "depth": 4},
        "unranked": {"dataset": "web"},
        "bare": {"module": "unranked", "dataset": "web", "raw": True},
    },
    "items": {
        "fig1": {**TEXTS, "kind": "figure", "needs": ["small", "real"], "highlight": {"n": [1]},
                 "draw": {"kind": "curve", "x": "n"}},
        "table1": {**TEXTS, "kind": "table", "needs": ["theory"]},
    },
}  # fmt: skip
OTHER = {name: PAPER[name] for name in ("title", "citation", "datasets")} | {
    "scales": {scale: {"seeds": [1]} for scale in ("smoke", "laptop", "paper")},
    "studies": {"theory": {"draws": 1}},
    "items": {"a.b": {**TEXTS, "kind": "table", "needs": ["theory"], "draw": "table1"}},
}
TABLE = "def table(results, published):\n    pass\n\n\ndef tex(table):\n    pass\n"
CODE = {
    "paper/studies/theory.py": "def run(inputs, *, seed, draws):\n    pass\n",
    "paper/studies/logs.py": "def run(inputs, *, seed, top):\n    pass\n",
    "paper/studies/ranked.py": "def run(inputs, *, seed, depth):\n    pass\n",
    "paper/studies/unranked.py": "def run(inputs, *, seed):\n    pass\n",
    "paper/items/curve.py": "def table(results, published):\n    pass\n\n\n"
    "def draw(table, *, x):\n    pass\n",
    "paper/items/table1.py": TABLE,
    "other/studies/theory.py": "def run(inputs, *, seed, draws):\n    pass\n",
    "other/items/table1.py": TABLE,
}
LOGS = [get_args(each)[0] for each in get_args(get_args(AnyLog)[0])]
"""The classes of logs."""
SIZES = {"train": 3, "validation": 2, "test": 1}
CONFIG = {
    "scale": "smoke",
    "papers": ["paper", "other"],
    "only": [],
    "device": "cuda",
    "results": "out",
    "figures": "shown",
    "datasets": {
        "web": {"source": "mslr_web30k", "folder": None, "standin": {"smoke": SIZES}},
        "shop": {"source": "yandex_20_queries", "folder": "/data"},
        "text": {
            "source": "baidu_mlm_uva",
            "standin": {"smoke": {"log": 9, "annotations": 4}},
            "law": {"agreement": 1},
            "encoder": {"smoke": {"steps": 7}},
        },
    },
    "replace": {},
}


@pytest.fixture(scope="module", autouse=True)
def web():
    """A stand-in of another name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dataset_jobs.STANDINS, "web", "rankings")
        yield


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A project with two papers of its own."""
    root = tmp_path_factory.mktemp("project")
    for name in ("twotowers", "scripts"):
        (root / name).symlink_to(ROOT / name)
    for name, text in CODE.items():
        (root / "papers" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "papers" / name).write_text(text)
    for key, paper in {"paper": PAPER, "other": OTHER}.items():
        (root / "papers" / key / "experiment.yaml").write_text(yaml.safe_dump(paper))
    return root


@pytest.fixture(scope="module")
def papers(root) -> dict[str, Paper]:
    return {key: load_paper(key, read_config(CONFIG), root) for key in CONFIG["papers"]}


@pytest.fixture(scope="module")
def made(root, papers):
    """made(changes, papers): what computes the jobs of a configuration."""

    def made(changes=(), those=papers) -> Planner:
        return Planner(read_config(CONFIG | dict(changes)), those, root)

    return made


@pytest.fixture(scope="module")
def plan(made) -> Planner:
    return made()


@pytest.fixture(scope="module")
def read(made, root) -> Plan:
    """The plan as a Snakefile reads it."""
    return Plan(json.loads(json.dumps(made().content())), root)


def inputs(read: Plan, rule: str, **wildcards):
    return read.get(rule, "inputs")(SimpleNamespace(**wildcards))


def params(read: Plan, rule: str, **wildcards) -> dict:
    return {name: of(SimpleNamespace(**wildcards)) for name, of in read.params(rule).items()}


# What rules apply to


@pytest.mark.parametrize(
    ("rule", "wildcard", "names", "not_names"),
    [
        ("generate_standin", "dataset", ["web", "text"], ["shop", "we", "webs"]),
        ("parse", "dataset", ["shop"], ["web"]),
        ("fit", "setting", ["small", "large"], ["theory", "smal", ""]),
        ("study", "study", ["theory", "real", "ranked"], ["small"]),
        ("figure", "item", ["fig1"], ["table1", "a.b"]),
        ("table", "item", ["table1", "a.b"], ["fig1", "a-b"]),
    ],
)
def test_a_constraint_matches_the_names_of_its_rule_only(read, rule, wildcard, names, not_names):
    pattern = read.constraint(rule, wildcard)
    assert all(re.fullmatch(pattern, name) for name in names)
    assert not any(re.fullmatch(pattern, name) for name in not_names)


def test_some_items_instead_of_everything(made, papers):
    assert made({"only": ["paper/table1", "other/a.b"]}).targets() == [
        *("shown/smoke/paper/table1.tex", "shown/smoke/paper/table1.csv"),
        *("shown/smoke/other/a.b.tex", "shown/smoke/other/a.b.csv"),
    ]
    # `also` may name items of papers that do not run.
    alone = {"paper": papers["paper"]}
    assert made({"also": ["other/a.b"]}, alone).targets() == made({}, alone).targets()


def test_every_rule_has_its_jobs(read):
    assert {rule for rule, jobs in read["jobs"].items() if not jobs} == set()


WEB = {"web": CONFIG["datasets"]["web"] | {"standin": {"smoke": {"log": 5}}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"only": ["paper/tabel1"]}, r"only: 'paper/tabel1' .*did you mean 'paper/table1'"),
        ({"also": ["other/a"]}, r"also: 'other/a' is unknown"),
        ({"datasets": CONFIG["datasets"] | WEB}, r"datasets\.web: 'train' is no part of"),
        ({"datasets": CONFIG["datasets"] | {"web": {"source": "mslr_web30k"}}},
         r"datasets\.web: .* no stand-in .*expected 'folder'"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned(made, changes, message):
    with pytest.raises(InputError, match=message):
        made(changes).content()


# Inputs and parameters


def test_an_encoder_gives_a_log_with_text_its_documents_and_annotations(read):
    generated = {"law": {"agreement": 1}, "sessions": 9, "seed": 0, "queries": 4}
    params_of_rule = params(read, "encode", dataset="text")
    assert params_of_rule.items() >= {"encoder": {"steps": 7}, "generated": generated}.items()
    generated = {key for key in read["jobs"]["generate_standin"] if key.startswith("text")}
    assert generated == {"text|log", "text|pages"}
    params_of_rule = params(read, "generate_standin", dataset="text", split="pages")
    assert params_of_rule["texts"] == {"law": {"agreement": 1}, "sessions": 9}


def test_a_fit_reads_rankings_who_ranked_them_and_clicks(read):
    rankings = {
        split: f"out/smoke/rankings/paper/web/{split}.parquet"
        for split in ("train", "validation", "test")
    }
    assert inputs(read, "fit", paper="paper", setting="large", seed="8") == {
        **rankings,
        "policy": "out/smoke/policies/paper/web/deep-deep/8.parquet",
        "clicks": "out/smoke/clicks/paper/web/one/8.parquet",
    }


def test_a_job_gets_its_setting(read, papers):
    given = params(read, "fit", paper="paper", setting="large", seed=8)
    assert loaded(given.pop("setting")) == papers["paper"].settings["large"]
    assert given.pop("code")
    assert given == {"paper": "paper", "name": "large", "seed": 8}


def test_a_seed_more_changes_no_other_fit(made, papers):
    large = papers["paper"].settings["large"].model_copy(update={"seeds": (8, 9)})
    settings = papers["paper"].settings | {"large": large}
    own = papers["paper"].model_copy(update={"settings": settings})
    fits = [made(those={"paper": each}).jobs()["fit"] for each in (papers["paper"], own)]
    said, again = (each["paper|large|8"]["params"] for each in fits)
    assert said == again
    assert "paper|large|7" not in fits[1]


@pytest.mark.parametrize("script", ["fit_setting", "simulate_clicks"])
@pytest.mark.parametrize("kind", LOGS)
def test_the_code_of_a_job_is_that_of_its_class_of_logs(script, kind):
    own = files_of(dumped(kind.model_construct()))
    sources = [ROOT / "scripts" / f"{script}.py", *(ROOT / file for file in own)]
    every = _closure(sources, ROOT)
    found = {path.stem for path in every if path.parent.name == "experiment"}
    # A ranker's lists take names from the module of simulated logs.
    needed = {"ranked_lists": {"simulated"}}
    modules = {each.__module__.split(".")[-1] for each in LOGS}
    name = kind.__module__.split(".")[-1]
    assert found & modules == {name, *needed.get(name, ())}


def test_clicks_are_simulated_from_scores(read):
    policy = "out/smoke/policies/paper/web/annotated-linear/7.parquet"
    job = {"paper": "paper", "dataset": "web", "log": "main", "seed": 7}
    assert inputs(read, "clicks", **job) == {"policy": policy}
    assert loaded(params(read, "clicks", **job)["log"]).name == "main"
    named = {"paper": "paper", "dataset": "web", "relevance": "annotated", "ranker": "linear"}
    assert inputs(read, "policy", **named, seed=7) == read.rankings("paper", "web")
    assert params(read, "policy", **named, seed=7)["settings"]["batch"] == 10


def test_a_study_reads_nothing_a_click_log_or_rankings(read):
    def of(study, seed=7):
        return inputs(read, "study", paper="paper", study=study, seed=seed)

    assert of("theory") == {}
    assert of("real", 1) == {"log": "out/smoke/raw/shop/log.parquet"}
    assert of("unranked") == read.rankings("paper", "web")
    assert of("bare")["train"] == "out/smoke/raw/web/train.parquet"
    for seed in (7, 8):  # The seeds of a study share the policy of the first.
        policy = "out/smoke/policies/paper/web/annotated-svm/7.parquet"
        assert of("ranked", seed) == {**read.rankings("paper", "web"), "policy": policy}


def test_a_study_is_called_with_what_the_pipeline_does_not_use_itself(read):
    called = params(read, "study", paper="paper", study="real", seed=1)
    assert (called["module"], called["parameters"]) == ("logs", {"top": 2})


def test_published_numbers_belong_to_what_draws_and_judges(made, root):
    folder = root / "papers" / "paper" / "published"
    before = made().jobs()
    folder.mkdir()
    try:
        (folder / "notes.md").touch()
        assert made().jobs() == before
        (folder / "a.csv").touch()
        after = made().jobs()
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    changed = {rule for rule in before if before[rule] != after[rule]}
    assert changed == {"figure", "table", "claims"}
    assert before["table"]["other|a.b"] == after["table"]["other|a.b"]


# From configuration to plan


def within(monkeypatch):
    """A call of `subprocess.run` that makes the plan in this process."""

    def run(command, *, input, **options):
        monkeypatch.setattr(sys, "argv", command[2:])
        monkeypatch.setattr(sys, "stdin", StringIO(input))
        with redirect_stderr(StringIO()) as params_of_rule:
            try:
                code = planning.main()
            except SystemExit as error:
                code = error.code
        return SimpleNamespace(returncode=code, stderr=params_of_rule.getvalue())

    return run


def test_a_plan_is_made_once(root, tmp_path, monkeypatch):
    monkeypatch.setattr(plans.subprocess, "run", within(monkeypatch))
    made = read_plan(CONFIG, root, tmp_path)
    (path,) = tmp_path.glob("*.json")
    path.write_text(json.dumps(made.content | {"targets": ["marked"]}))
    assert read_plan(CONFIG, root, tmp_path)["targets"] == ["marked"]
    file = root / "papers" / "other" / "experiment.yaml"
    text = file.read_text()
    file.write_text(text.replace("title: T", "titel: T"))
    try:
        with pytest.raises(InputError) as caught:
            read_plan(CONFIG, root, tmp_path)
    finally:
        file.write_text(text)
    assert re.match(rf"{file}:\d+: items.a.b.titel: unknown setting 'titel'", str(caught.value))


@pytest.mark.parametrize(
    ("name", "counts"),
    [("a.html.j2", True), ("a.py", True), ("a.md", False), (".#a.py", False), ("a.pyc", False)],
)
def test_a_plan_follows_all_files_that_digests_read(tmp_path, name, counts):
    folder = tmp_path / "twotowers" / "templates"
    folder.mkdir(parents=True)
    before = plans._state("{}", tmp_path)
    (folder / name).touch()
    assert (plans._state("{}", tmp_path) != before) == counts


# The order of jobs


def priorities(read, rule: str, paper: str) -> dict[str, int]:
    jobs = read["jobs"][rule].items()
    return {key.partition("|")[2]: job["priority"] for key, job in jobs if key.startswith(paper)}


def test_inputs_then_results_then_pages_and_one_paper_after_the_other(read):
    """So that the first paper is on the page while the others still run. Of results, first seeds
    come first."""
    stages = ["clicks", "fit", "claims"]
    ranges = [priorities(read, stage, "paper") for stage in stages]
    for before, after in pairwise(ranges):
        assert min(before.values()) > max(after.values())
    assert ranges[1]["large|7"] == ranges[1]["small|7"] > ranges[1]["large|8"]
    others = (priorities(read, rule, "other").values() for rule in ("study", "claims", "page"))
    assert min(ranges[-1].values()) > max(map(max, others))


def test_a_data_set_is_made_when_its_first_paper_needs_it(made, papers):
    sets = papers["paper"].datasets
    those = {
        key: papers[key].model_copy(update={"datasets": {name: sets[name]}})
        for key, name in (("paper", "web"), ("other", "shop"))
    }
    planner = made(those=those)
    first, last = (planner._priority("parse", name, "log") for name in ("web", "shop"))
    assert (first, last) == (planner._priority("preprocess", "paper", "web"), 3)
    assert first > last


# Descriptions for items and pages


def test_an_item_says_where_its_numbers_came_from(plan):
    note = "Data: generated stand-in for web, real shop. Scale: smoke. Seeds: 1, 7, 8, 9."
    assert source_note(plan, "paper", "fig1") == note
    assert source_note(plan, "other", "a.b") == "Data: simulated. Scale: smoke. Seeds: 1."


def test_every_need_reads_one_kind_of_data(plan, made):
    """Real data have checksums. A simulation without data reads none."""
    kinds = needs_data(plan, "paper")
    assert kinds == {
        **dict.fromkeys(("small", "large", "ranked", "unranked", "bare"), "stand-in"),
        "theory": "simulation",
        "real": "real data",
    }
    unknown = {"source": "tiangong_st", "folder": "/data"}
    others = made({"datasets": CONFIG["datasets"] | {"shop": unknown}})
    assert needs_data(others, "paper")["real"] == "unverified data"


def test_a_page_knows_which_data_stand_in_place_of_its_own(plan, made, root):
    assert page_paper(plan, "paper")["replaced"] == {}
    data = {**CONFIG["datasets"], "mine": CONFIG["datasets"]["web"]}
    changes = {"papers": ["paper"], "datasets": data, "replace": {"web": "mine"}}
    mine = {"paper": load_paper("paper", read_config(CONFIG | changes), root)}
    assert page_paper(made(changes, mine), "paper")["replaced"] == {"web": "mine"}


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({"a": "PAL", "c": "x"}, {"a": "PAL"}),
        ({"PAL": "a"}, {"a": "PAL"}),
        ({"Oracle": [1, "a"], 0: {"Random": ["b"]}}, {"a": "Oracle", "b": "0, Random"}),
        # One with several names has none.
        ({"Yahoo": {"naive": "a", "weighted": "b"}, "Istella-S": {"naive": "a"}},
         {"b": "Yahoo, weighted"}),
        (["a", "b"], {}),
        ("a", {}),
    ],
)  # fmt: skip
def test_settings_are_called_what_the_drawing_calls_them(option, expected):
    assert _names({"groups": option, "order": {"setting": ["a", "b"]}}, {"a", "b"}) == expected


def test_jobs_that_train_ask_for_a_gpu_and_no_others_do():
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    config |= {"scale": "smoke", "papers": ["clax2025"], "device": "cuda"}
    read = read_config(config, [])
    papers = {"clax2025": load_paper("clax2025", read, ROOT)}
    jobs = Planner(read, papers).jobs()["fit"].items()
    asking = {key.split("|")[1] for key, job in jobs if job["gpu"]}
    fits = {name: each.method.name for name, each in papers["clax2025"].settings.items()}
    assert {fits[name] for name in asking} == {"likelihood"}
    assert {fits[name] for name in {*fits} - asking} == {"em", "counting"}
