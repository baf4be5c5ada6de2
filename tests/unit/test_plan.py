"""The plan of a made-up paper, without Snakemake: files, inputs, parameters and order."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest
from twotowers.experiment.experiments import Experiment

from twotowers import ROOT
from twotowers.errors import InputError
from twotowers.workflow.descriptions import (
    crate_data,
    items_needs,
    needs_data,
    outlines,
    page_paper,
    source_note,
)
from twotowers.workflow.order import Order
from twotowers.workflow.plan import ENDINGS, ENVIRONMENTS, FILES, LOGS, Plan

TRAINING = {"batch": 10, "steps": 100}
LANES = {"strength": [0, 1], "temperature": [0, 0.5, 1]}
TEXTS = {"title": "T", "caption": "c", "expected": "e"}


def log(**changes) -> dict:
    return {
        "dataset": "web",
        "relevance": "annotated",
        "ranker": "linear",
        "lanes": LANES,
        "sessions": {"train": [3]},
        "user": {"kind": "additive"},
    } | changes


def setting(log: str, tower: str = "linear", **changes) -> dict:
    return {
        "log": log,
        "model": {"kind": "additive", "tower": tower},
        "method": {"kind": "likelihood"},
        "training": "brief",
        "lanes": {"log": LANES, "method": {"weighting": ["none"]}},
    } | changes


PAPER = Experiment(
    key="paper",
    title="A paper",
    citation="A. Author",
    datasets={"web": {"prepare": "ultra"}, "shop": {}},
    positions=5,
    seeds=[7, 8, 9],
    sessions={"train": 3},
    rankers={},
    training={"brief": TRAINING},
    logs={"main": log(), "one": log(relevance="deep", ranker="deep", queries="train")},
    settings={
        "small": setting("main", lanes={"log": {**LANES, "strength": [1]}, "method": {}}),
        "large": setting("one", "deep"),
    },
    studies={
        "theory": {"draws": 3},
        "real": {"module": "logs", "dataset": "shop", "seeds": [1], "top": 2},
        "ranked": {"dataset": "web", "ranker": "svm", "depth": 4},
        "unranked": {"dataset": "web"},
    },
    items={
        "fig1": {
            **TEXTS,
            "kind": "figure",
            "needs": ["small", "real"],
            "highlight": {"n": [1]},
            "draw": {"kind": "curves", "x": "n"},
        },
        "table1": {**TEXTS, "kind": "table", "needs": ["theory"]},
    },
)
OTHER = replace(
    PAPER,
    key="other",
    seeds=[1],
    logs={},
    settings={},
    studies={"theory": {}},
    items={"a.b": {**TEXTS, "kind": "table", "needs": ["theory"]}},
)
PAGES = ("index.html", "summary.json")
SIZES = {"train": 3, "validation": 2, "test": 1}
CONFIG = {
    "scale": "smoke",
    "device": "cuda",
    "results": "out",
    "figures": "shown",
    "datasets": {
        "web": {"source": "mslr_web30k", "folder": None, "standin": {"smoke": SIZES}},
        "shop": {"source": "yandex_20_queries", "folder": "/data"},
    },
}


@pytest.fixture
def plan(tmp_path) -> Plan:
    return Plan(CONFIG, {"paper": PAPER, "other": OTHER}, root=tmp_path)


def test_the_plan_needs_no_snakemake_and_nothing_heavy():
    heavy = ("snakemake", "numpy", "pandas", "pyarrow", "jax", "matplotlib")
    code = "import sys; import twotowers.workflow.descriptions; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {*heavy} & {*run.stdout.split()}


# Files


def test_what_is_not_named_stays_a_wildcard(plan):
    assert plan.file("fit") == "out/smoke/fits/{paper}/{setting}/{seed}.parquet"
    named = plan.file("fit", paper="paper", setting="small", seed=7)
    assert named == "out/smoke/fits/paper/small/7.parquet"
    assert plan.file("item", ending="pdf") == "shown/{paper}/{item}.pdf"
    assert plan.log("fit", seed=7) == "out/smoke/logs/fits/{paper}/{setting}/7.log"


def test_a_name_that_a_file_does_not_have_is_an_error(plan):
    with pytest.raises(TypeError, match="'study'"):
        plan.file("fit", study="theory")


def test_every_log_can_be_told_from_its_artefacts_wildcards():
    """Wildcards of files and logs agree, as Snakemake requires. A job has one log."""
    for kind, template in LOGS.items():
        assert {*re.findall(r"{\w+}", template)} <= {
            *re.findall(r"{\w+}", FILES[kind]),
            "{results}",
        }


def test_results_are_those_of_all_seeds(plan):
    assert plan.results_of("paper", ["small", "real"]) == [
        *(f"out/smoke/fits/paper/small/{seed}.parquet" for seed in (7, 8, 9)),
        "out/smoke/fits/paper/real/1.parquet",
    ]
    assert len(plan.results_of("paper")) == (2 + 3) * 3 + 1
    assert plan.logs_of("paper", ["real"]) == ["out/smoke/logs/fits/paper/real/1.log"]


def test_a_run_makes_every_item_the_pages_and_the_crate(plan):
    assert plan.item_files("paper", "fig1") == [f"shown/paper/fig1.{e}" for e in ENDINGS["figure"]]
    assert set(plan.targets()) == {
        "shown/index.html",
        *(f"shown/{key}/{name}" for key in ("paper", "other") for name in PAGES),
        "shown/claims.csv",
        "shown/ro-crate-metadata.json",
        *plan.item_files("paper", "fig1"),
        *plan.item_files("paper", "table1"),
        *plan.item_files("other", "a.b"),
    }
    assert plan.of_papers("claims") == ["out/smoke/claims/paper.csv", "out/smoke/claims/other.csv"]


def test_only_papers_that_run_bring_their_rules(plan, tmp_path):
    for paper in ("other", "unselected"):
        (tmp_path / "papers" / paper).mkdir(parents=True)
        (tmp_path / "papers" / paper / "rules.smk").touch()
    assert plan.paper_rules() == [str(tmp_path / "papers" / "other" / "rules.smk")]


# What rules apply to


@pytest.mark.parametrize(
    ("kind", "names", "not_names"),
    [
        ("standin", ["web"], ["shop", "we", "webs"]),
        ("files", ["shop"], ["web"]),
        ("setting", ["small", "large"], ["theory", "smal", ""]),
        ("study", ["theory", "real", "ranked"], ["small"]),
        ("figure", ["fig1"], ["table1", "a.b"]),
        ("table", ["table1", "a.b"], ["fig1", "a-b"]),
    ],
)
def test_a_constraint_matches_the_names_of_its_kind_only(plan, kind, names, not_names):
    pattern = plan.constraint(kind)
    assert all(re.fullmatch(pattern, name) for name in names)
    assert not any(re.fullmatch(pattern, name) for name in not_names)


def test_some_items_instead_of_everything(tmp_path):
    papers = {"paper": PAPER, "other": OTHER}
    some = Plan(CONFIG | {"only": ["paper/table1", "other/a.b"]}, papers, root=tmp_path)
    assert some.targets() == [
        *("shown/paper/table1.tex", "shown/paper/table1.csv"),
        *("shown/other/a.b.tex", "shown/other/a.b.csv"),
    ]
    wrong = Plan(CONFIG | {"only": ["paper/tabel1"]}, papers, root=tmp_path)
    with pytest.raises(InputError, match=r"only: 'paper/tabel1' .*did you mean 'paper/table1'"):
        wrong.targets()


def test_a_constraint_without_names_matches_nothing():
    plan = Plan(CONFIG | {"datasets": {}}, {"other": OTHER})
    for kind in ("standin", "files", "setting", "figure"):
        assert not any(re.fullmatch(plan.constraint(kind), text) for text in ("", "a", "web"))


def test_jobs_that_train_have_the_environment_of_the_device(plan, tmp_path):
    assert plan.environment("fit") == str(tmp_path / "envs" / "jax-cuda.yaml")
    assert plan.environment("page") == str(tmp_path / "envs" / "plots.yaml")
    on_cores = Plan(CONFIG | {"device": "cpu"}, {}, root=tmp_path)
    changed = {r for r in ENVIRONMENTS if on_cores.environment(r) != plan.environment(r)}
    assert changed == {"policy", "fit"}


def test_every_rule_says_what_it_makes():
    for path in [ROOT / "Snakefile", *ROOT.glob("rules/*.smk")]:
        for body in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            assert re.search(r'^    message:\n        "[A-Z]', body, re.MULTILINE), body[:20]


# Inputs and parameters


def test_a_fit_reads_rankings_who_ranked_them_and_clicks(plan):
    rankings = {
        split: f"out/smoke/rankings/paper/web/{split}.parquet"
        for split in ("train", "validation", "test")
    }
    assert plan.fit_inputs("paper", "large", "8") == {
        **rankings,
        "policy": "out/smoke/policies/paper/web/deep-deep/8.parquet",
        "clicks": "out/smoke/clicks/paper/web/one/8.parquet",
    }


def test_a_fit_is_told_its_training_and_what_its_log_is_like(plan):
    assert plan.fit_parameters("paper", "large") == {
        **PAPER.settings["large"],
        "log": {"queries": "train", "user": {"kind": "additive"}},
        "training": TRAINING,
    }


def test_clicks_are_simulated_from_scores(plan):
    policy = "out/smoke/policies/paper/web/annotated-linear/7.parquet"
    assert plan.clicks_inputs("paper", "main", 7) == {"policy": policy}
    assert plan.clicks_parameters("paper", "main") == {
        "lanes": LANES,
        "sessions": {"train": [3]},
        "user": {"kind": "additive"},
    }


def test_a_study_without_a_module_is_told(plan):
    folder = plan.root / "papers" / "paper" / "studies"
    folder.mkdir(parents=True)
    (folder / "log.py").touch()
    with pytest.raises(InputError, match=r"studies\.real: .*'logs' .*did you mean 'log'"):
        plan.study_sources("paper", "real")


def test_a_data_set_has_a_folder_or_a_stand_in_of_this_scale():
    plan = Plan(CONFIG | {"datasets": {"shop": {"source": "yandex_20_queries"}}}, {})
    with pytest.raises(InputError, match=r"datasets\.shop: .* no stand-in .*expected 'folder'"):
        plan.standin("shop")


def test_a_study_reads_nothing_a_click_log_or_rankings(plan):
    assert plan.study_inputs("paper", "theory") == {}
    assert plan.study_inputs("paper", "real") == {"log": "out/smoke/raw/shop/log.parquet"}
    assert plan.study_inputs("paper", "unranked") == plan.rankings("paper", "web")
    assert plan.study_inputs("paper", "ranked") == {
        **plan.rankings("paper", "web"),
        "policy": "out/smoke/policies/paper/web/annotated-svm/7.parquet",
    }


def test_a_study_is_called_with_what_the_road_does_not_use_itself(plan):
    assert plan.study_parameters("paper", "real") == {"top": 2}
    assert plan.study_parameters("paper", "ranked") == {"depth": 4}
    modules = [plan.study_module("paper", study) for study in ("theory", "real")]
    folder = plan.root / "papers" / "paper" / "studies"
    folder.mkdir(parents=True)
    (folder / "logs.py").touch()
    assert modules == ["theory", "logs"]
    assert plan.study_sources("paper", "real") == ["papers/paper/studies/logs.py"]


def test_published_numbers_belong_to_what_draws_and_judges(plan, tmp_path):
    folder = tmp_path / "papers" / "paper" / "published"
    folder.mkdir(parents=True)
    for name in ("b.csv", "a.csv", "notes.md"):
        (folder / name).touch()
    items = tmp_path / "papers" / "paper" / "items"
    items.mkdir()
    (items / "curves.py").write_text("def table(r, p): ...\ndef draw(t, *, x): ...\n")
    for name in ("published.py", "claims.py"):
        (folder.parent / name).touch()
    files = ("published.py", "published/a.csv", "published/b.csv")
    published = [f"papers/paper/{name}" for name in files]
    assert plan.item_sources("paper", "fig1") == ["papers/paper/items/curves.py", *published]
    assert plan.claims_sources("paper") == ["papers/paper/claims.py", *published]
    # A paper without claims.py has no claims.
    assert plan.claims_sources("other") == []


# The order of jobs


def measured(**seconds: float) -> Order:
    folders = {f"out/smoke/fits/paper/{need}": value for need, value in seconds.items()}
    return Order(Plan(CONFIG, {"paper": PAPER, "other": OTHER}), seconds=folders)


def sorted_jobs(order: Order) -> list[tuple[str, int]]:
    jobs = [(need, seed) for need in PAPER.needs for seed in PAPER.seeds_of(need)]
    return sorted(jobs, key=lambda job: -order.of_result("paper", *job))


def test_never_measured_long_fits_are_first_and_studies_last():
    order = measured()
    fits = [("large", 7), ("small", 7), ("large", 8), ("large", 9), ("small", 8), ("small", 9)]
    assert sorted_jobs(order)[: len(fits)] == fits
    assert order.of_result("paper", "theory", 7) == order.of_page("paper")


def test_measured_seconds_replace_guesses():
    order = measured(small=100, large=10)
    first = [("small", 7), ("large", 7), ("small", 8), ("small", 9), ("large", 8), ("large", 9)]
    assert sorted_jobs(order)[: len(first)] == first
    assert order.expected_seconds("paper", "small") == 100


def test_a_study_that_was_measured_takes_its_place_among_fits():
    order = measured(small=1, large=10, real=100, theory=5)
    jobs = sorted_jobs(order)
    assert jobs[:4] == [("real", 1), ("large", 7), ("theory", 7), ("small", 7)]
    assert {need for need, _ in jobs[-6:]} == {"ranked", "unranked"}, "not measured"


def test_measured_and_guessed_fits_are_compared_in_seconds():
    order = measured()
    guess = order.fit_guess("paper", "large")
    assert order.expected_seconds("paper", "large") == guess > 0
    assert order.fit_guess("paper", "large") > order.fit_guess("paper", "small")
    assert sorted_jobs(measured(small=guess * 2))[0] == ("small", 7)
    assert sorted_jobs(measured(small=guess / 2))[0] == ("large", 7)


@pytest.mark.parametrize("seconds", [{}, {"small": 1e9}, {"small": 0, "large": 0}])
def test_inputs_then_results_then_pages_and_one_paper_after_the_other(seconds):
    """So that the first paper is on the page while the others still run."""
    order = measured(**seconds)
    results = [order.of_result("paper", *job) for job in sorted_jobs(order)]
    assert order.of_inputs("paper") > max(results) >= min(results) >= order.of_page("paper")
    assert order.of_page("paper") > order.of_inputs("other") > order.of_page("other")


def test_a_data_set_is_made_when_its_first_paper_needs_it():
    alone = replace(OTHER, datasets={"own": {}})
    order = Order(Plan(CONFIG, {"paper": PAPER, "other": alone}))
    assert order.of_dataset("web") == order.of_inputs("paper")
    assert order.of_dataset("own") == order.of_inputs("other")


def test_measured_elsewhere_does_not_count():
    """At another scale, or of another paper of the same setting."""
    seconds = {"out/laptop/fits/paper/small": 9, "out/smoke/fits/other/small": 9}
    order = Order(Plan(CONFIG, {"paper": PAPER}), seconds=seconds)
    assert order.expected_seconds("paper", "small") == order.fit_guess("paper", "small")


# Descriptions for items, the page and the crate


def test_an_item_says_where_its_numbers_came_from(plan):
    note = "Data: generated stand-in for web, real shop. Scale: smoke. Seeds: 1, 7, 8, 9."
    assert source_note(plan, "paper", "fig1") == note
    assert source_note(plan, "other", "a.b") == "Data: simulated. Scale: smoke. Seeds: 1."


def test_every_need_reads_one_kind_of_data(plan):
    """Real data have checksums. A simulation without data reads none."""
    kinds = needs_data(plan, "paper")
    assert kinds == {
        **dict.fromkeys(("small", "large", "ranked", "unranked"), "stand-in"),
        "theory": "simulation",
        "real": "real data",
    }
    assert items_needs(plan, "paper") == {"fig1": ["small", "real"], "table1": ["theory"]}
    unknown = {"source": "tiangong_st", "folder": "/data"}
    others = Plan(CONFIG | {"datasets": CONFIG["datasets"] | {"shop": unknown}}, {"paper": PAPER})
    assert needs_data(others, "paper")["real"] == "unverified data"


def test_a_page_is_told_of_its_paper_every_item_and_every_setting(plan):
    outline = outlines(plan)["paper"]
    assert (outline["title"], list(outlines(plan))) == ("A paper", ["paper", "other"])
    assert {name: item["kind"] for name, item in outline["items"].items()} == {
        "fig1": "figure",
        "table1": "table",
    }
    paper = page_paper(plan, "paper")
    assert (paper["key"], paper["readme"]) == ("paper", "papers/paper/README.md")
    assert paper["datasets"] == {"web": "stand-in", "shop": "real data"}
    assert paper["claims"] == "out/smoke/claims/paper.csv"
    assert paper["logs"] == plan.logs_of("paper")
    assert paper["items"]["fig1"] == {
        **TEXTS,
        "kind": "figure",
        "needs": ["small", "real"],
        "highlight": {"n": [1]},
        "answer": None,
        "files": plan.item_files("paper", "fig1"),
        "logs": plan.logs_of("paper", ["small", "real"]),
        "datasets": {"web": "stand-in", "shop": "real data"},
        "seeds": [1, 7, 8, 9],
    }
    assert paper["items"]["table1"]["datasets"] == {}
    assert paper["items"]["table1"]["highlight"] is None
    large = paper["needs"]["large"]
    assert (large["kind"], large["seeds"]) == ("setting", [7, 8, 9])
    assert large["parameters"]["training"] == TRAINING
    assert large["parameters"]["log"]["relevance"] == "deep"
    assert paper["needs"]["theory"]["parameters"] == {"draws": 3}


FOUND = {"text": "Yes.", "datasets": {"web": "stand-in"}, "seeds": [7, 8, 9]}


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"smoke": FOUND}, "Yes."),
        ({"laptop": FOUND}, None),
        ({"smoke": {**FOUND, "seeds": [7]}}, None),
        ({"smoke": {**FOUND, "datasets": {"web": "real data"}}}, None),
        ({"smoke": {**FOUND, "datasets": {"mslr30k": "stand-in"}}}, None),
    ],
)
def test_an_answer_is_shown_only_where_it_was_found(tmp_path, answer, shown):
    item = {**TEXTS, "kind": "figure", "needs": ["small"], "answer": answer}
    plan = Plan(CONFIG, {"paper": replace(PAPER, items={"fig1": item})}, root=tmp_path)
    assert page_paper(plan, "paper")["items"]["fig1"]["answer"] == shown


def test_the_crate_is_told_how_data_was_made_or_where_it_is_listed(plan):
    assert crate_data(plan) == [
        {"name": "web", "generated": {"sizes": SIZES, "seed": 0}},
        {"name": "shop", "manifest": "out/smoke/raw/shop/manifest.json"},
    ]


def test_a_log_may_have_positions_of_its_own(plan, monkeypatch):
    assert plan.positions("paper", "main") == 5
    monkeypatch.setitem(plan.experiments["paper"].logs, "main", log(positions=201))
    assert plan.positions("paper", "main") == 201


def test_a_study_may_read_data_that_are_not_prepared(plan, monkeypatch):
    bare = {"dataset": "web", "raw": True, "most": 3}
    monkeypatch.setitem(plan.experiments["paper"].studies, "bare", bare)
    assert plan.study_inputs("paper", "bare")["train"] == "out/smoke/raw/web/train.parquet"
    assert plan.study_parameters("paper", "bare") == {"most": 3}
