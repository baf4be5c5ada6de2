"""Hager et al. (2023): every judge on made-up results that bear its claim out, and on others."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from papers.hager2023 import grid
from papers.hager2023.claims import CLAIMS
from papers.hager2023.judges.analyses import UNEVEN
from papers.hager2023.judges.grid import EARLY
from papers.hager2023.studies import theory
from tests.judging import altered, assert_borne_out, by, mutation_tests, times, to
from twotowers.claims.claims import NOT_TESTABLE, REPRODUCED, UNDECIDED, judge
from twotowers.claims.published import bands
from twotowers.claims.verdicts import decide

AT = {claim.id: claim for claim in CLAIMS}
SEEDS = range(grid.RUNS)
# Ten numbers of mean 0 and standard deviation 1: a run each.
SPREAD = (np.arange(10) - 4.5) / np.arange(10).std(ddof=1)


def runs(mean: float, sd: float = 0.0, **lane) -> list[dict]:
    lane = {"metric": "ndcg@10", **lane}
    return [{**lane, "seed": s, "value": mean + sd * z} for s, z in zip(SEEDS, SPREAD, strict=True)]


def noisier(rows: pd.DataFrame) -> pd.Series:
    """The same mean over seeds, which no longer agree."""
    return rows["value"] + rows["seed"].map(lambda seed: 0.5 * SPREAD[seed])


def printed() -> pd.DataFrame:
    """Table 2.2."""
    rows = bands("hager2023").query("sessions == 1e8 and metric != 'epochs'")
    return rows[rows["method"].isna()]


@cache
def made_up() -> pd.DataFrame:
    """Results in the schema of the settings and studies, with the printed means and deviations."""
    rows = []
    for row in printed().query("sd.notna()").itertuples():
        for sessions in (1e8, 1e6) if row.setting.endswith("-naive") else (1e8,):
            rows += runs(
                row.value, row.sd, setting=row.setting, metric=row.metric, sessions=sessions
            )
    for dataset in grid.DATASETS:
        for at, sessions in enumerate(EARLY):
            for method, lead in {"pbm": 0.1, "estimated": 0.2, "ips": 0.0}.items():
                lead -= 0.03 * at * (method != "ips")
                rows += runs(0.4 + lead, setting=f"{dataset}-{method}", sessions=sessions)
        for position in range(1, 6):
            lane = {"sessions": 1e8, "position": position, "metric": "position_bias"}
            bias = -np.log(position)
            rows += runs(bias, 0.05 * bias, setting=f"{dataset}-estimated", **lane)
        for tower, lead in {"document": 0, "linear": 0.1, "sampled": 0.1}.items():
            lane = {"setting": f"mechanism-{dataset}", "tower": tower}
            if tower == "linear":
                for kind in ("ips", "pbm"):
                    rows += runs(1e-7, kind=kind, **lane, metric="gradient")
                    fitted = 0.7 + 0.02 * (kind == "ips")
                    rows += runs(fitted, 0.001, kind=kind, **lane | {"metric": "ndcg@10_train"})
            rows += runs(0.6 + lead, 0.01, kind="ips", **lane)
            rows += runs(0.6, 0.01 * (tower == "document"), kind="pbm", **lane)
        for metric, value in {"share_moved": 0.003, "share_kept": 0.9}.items():
            rows += [{"setting": f"lists-{dataset}", "metric": metric, "seed": 0, "value": value}]
    for method, loss in {"naive": 0.5, "ips": 0.2, "pbm": 0.3, "estimated": 0.4}.items():
        for share in (0, 0.5, 0.9):
            lane = {"setting": "onehot", "method": method, "collisions": share}
            rows += runs(1 - loss * share, 0.01 * share, sessions=1e8, **lane)
            rows += runs(0.6, sessions=1e2, **lane)
    for eta in (0, 1, 2):
        rows += runs(0.7 - 0.001 * eta, setting="eta-ips", eta=eta)
        rows += runs(0.7 - 0.03 * eta, 0.003 * eta, setting="eta-pbm", eta=eta)
    level = printed().query("metric == 'ndcg@10'")
    for sessions, lead in zip(UNEVEN, (0.07, 0.04), strict=True):
        for method, value in {"pbm": 0.4 + lead, "ips": 0.4}.items():
            spread = 0.001 * (method == "ips")
            rows += runs(value, spread, setting=f"raw-{method}", sessions=sessions)
            rows += runs(value, setting=f"istella-few-{method}", sessions=sessions)
    for method in grid.METHODS:
        mean = level.set_index("setting")["value"][f"mslr-{method}"]
        rows += runs(mean, 0.001, setting=f"weak-{method}", sessions=1e8)
    rows += runs(0.33, 0.001, setting="weak-pbm", sessions=1e8, metric="policy_ndcg@10")
    numbers = theory.run(None, seed=0).assign(setting="theory", seed=0)
    found = pd.concat([pd.DataFrame(rows), numbers], ignore_index=True)
    found["value"] = found["value"].astype(float)
    # As the printed mark has it that the test does not give (claim 19).
    lane = {"setting": "theory", "metric": "mark_tested", "dataset": "istella", "method": "naive"}
    return altered(found, to(1), {**lane, "measure": "arp"})


NUMBERS = {"setting": "theory"}
CURVE = {**NUMBERS, "metric": "loss", "kind": "pbm"}
BOTH = {**NUMBERS, "metric": "toy_minimum", "curve": "both"}
TESTED = {**NUMBERS, "metric": "mark_tested", "dataset": "mslr"}
MARKED, UNMARKED = ({**TESTED, "method": m, "measure": "ndcg@5"} for m in ("Production", "ips"))
FULL = {"metric": "ndcg@10", "sessions": grid.FULL}
RAW = {"setting": "raw-ips", "metric": "ndcg@10"}
IPS, PBM = ({"setting": f"eta-{method}", "eta": 2} for method in ("ips", "pbm"))

# Claim, change, rows to change, and words of the condition that the change must break.
MUTATIONS = [
    ("1", to(1e-5), {"metric": "proposition_1"}, ""),
    ("2", to(1e-5), {"metric": "proposition_2"}, "largest difference"),
    ("3", to(1e-5), {"metric": "theorem_1"}, ""),
    ("4", by(0.01), {**NUMBERS, "metric": "minimum", "kind": "pbm", "examined": 0.4}, "minimum"),
    ("4", times(3), {**CURVE, "examined": 0.4}, "range"),
    ("4", by(0.01), {**CURVE, "kind": "ips", "examined": 0.4}, "IPS's loss"),
    ("18", by(0.01), {**BOTH, "kind": "ips"}, "mean"),
    ("18", by(0.01), {**BOTH, "kind": "pbm"}, "closed form"),
    ("18", to(0.8), {**BOTH, "kind": "pbm"}, "examined more"),
    ("19", to(0), {**MARKED, "comparisons": 36}, "does not give"),
    ("19", times(-1), MARKED, "does not give"),
    ("19", to(1), {**UNMARKED, "comparisons": 3}, "without a mark"),
    ("6", to(0.02), {"setting": "lists-istella", "metric": "share_moved"}, "share of a label"),
    ("6", to(0.7), {"setting": "lists-yahoo", "metric": "share_kept"}, "stay"),
    ("11", by(0.1), {**FULL, "setting": "istella-estimated"}, ""),
    ("16", by(0.03), {**FULL, "setting": "mslr-ips"}, ""),
    ("16", by(-0.03), {**FULL, "setting": "mslr-ips"}, ""),
    ("20", to(0.9), {"setting": "onehot", "method": "estimated", **FULL, "collisions": 0}, ""),
    ("22", by(-0.05), IPS, "what IPS loses in"),
    ("22", by(0.055), PBM, "what PBM loses is above"),
    ("22", by(-0.3), IPS, "times what PBM loses"),
    ("23", by(0.2), {**RAW, "sessions": 1e3}, "over IPS"),
    ("23", by(-0.05), {**RAW, "sessions": 1e4}, "difference"),
    ("30", to(0), {"rule": "mean", "metric": "agrees", "dataset": "mslr"}, "mean over epochs"),
    ("30", to(1), {"rule": "lowest", "metric": "agrees"}, "lowest loss"),
    ("31", by(0.1), {"rule": "lowest", "method": "pbm", "metric": "ndcg@10"}, "lowest"),
    ("31", by(0.1), {"rule": "chosen", "method": "estimated", "metric": "ndcg@10"}, "chosen"),
    ("2", by(0.01), {"metric": "ignored_minimum"}, "minimum"),
    ("26", by(0.1), {"setting": "weak-pbm", "metric": "policy_ndcg@10"}, "production ranker"),
    ("26", by(-0.1), {**FULL, "setting": "weak-pbm"}, "naive"),
    ("26", by(-0.1), {**FULL, "setting": "weak-estimated"}, "naive"),
]  # fmt: skip
for letter, dataset in zip("abc", grid.DATASETS, strict=True):
    pbm, ips, naive, estimated = (
        {**FULL, "setting": f"{dataset}-{method}"}
        for method in ("pbm", "ips", "naive", "estimated")
    )
    early = {"metric": "ndcg@10", "sessions": EARLY}
    fit = {"setting": f"mechanism-{dataset}", "metric": "ndcg@10", "kind": "ips"}
    MUTATIONS += [
        (f"5{letter}", by(-3), {**pbm, "metric": "policy_arp"}, ""),
        (f"7{letter}", by(0.2), {**pbm, "metric": "policy_ndcg@10"}, ""),
        (f"8{letter}", by(0.01), {**naive, "sessions": 1e6}, ""),
        (f"8{letter}", by(-0.01), {**naive, "sessions": 1e6}, ""),
        (f"10{letter}", by(-0.2), pbm, ""),
        (f"28{letter}", by(-0.2), pbm, ""),
        (f"12{letter}", by(0.2), estimated, ""),
        (f"12{letter}", by(-0.2), estimated, ""),
        (f"13{letter}", times(20), {**pbm, "metric": "ndcg@5"}, ""),
        (f"14{letter}", by(-0.11), {**early, "setting": pbm["setting"], "sessions": 1e2}, ""),
        (f"14{letter}", by(-0.12), {**early, "setting": estimated["setting"], "sessions": 1e5}, ""),
        (f"24{letter}", to(1e-3), {**fit, "metric": "gradient", "seed": 3}, "derivative"),
        (f"25{letter}", times(0.7), {**estimated, "metric": "position_bias"}, ""),
        (f"25{letter}", times(1.5), {**estimated, "metric": "position_bias", "seed": 2}, ""),
        (f"17{letter}", by(0.2), naive, ""),
        (f"24{letter}", by(0.01), {**fit, "tower": "document"}, "per document"),
        (f"24{letter}", by(-0.01), {**fit, "tower": "document"}, "per document"),
        (f"24{letter}", noisier, {**fit, "tower": "document"}, "per document"),
        *(
            (f"14{letter}", by(-0.12), {**early, "setting": pbm["setting"], "sessions": at}, "")
            for at in (1e3, 1e4)
        ),
        (
            f"24{letter}",
            by(-0.1),
            {**fit, "tower": "linear", "metric": "ndcg@10_train"},
            "linear ranker",
        ),
    ]  # fmt: skip
for numbers, winner, datasets in (
    (("9", "27"), "estimated", ("mslr", "yahoo")),
    (("15", "29"), "ips", ("istella", "yahoo")),
):
    for number, (letter, dataset) in product(numbers, zip("ab", datasets, strict=True)):
        where = {**FULL, "setting": f"{dataset}-{winner}"}
        MUTATIONS += [(number + letter, by(-0.2), where, "difference")]
for letter, method in zip("ab", ("pbm", "estimated"), strict=True):
    lane = {"setting": "onehot", **FULL}
    MUTATIONS += [
        (f"21{letter}", by(-0.01), {**lane, "method": method, "collisions": 0}, "without"),
        (f"21{letter}", by(0.3), {**lane, "method": method, "collisions": 0.5}, "at .5"),
        (f"21{letter}", by(-0.3), {**lane, "method": "ips", "collisions": 0.9}, "at .9"),
    ]


@pytest.mark.parametrize("name", AT)
def test_results_as_the_thesis_has_them_bear_out_every_claim(name):
    assert_borne_out(AT[name], made_up())


test_that_judges_fail, test_that_mutations_are_all = mutation_tests(AT, made_up, MUTATIONS)


def test_lists_of_one_data_set_are_not_those_of_three():
    assert judge(AT["6"], made_up().query("setting != 'lists-yahoo'")).verdict == NOT_TESTABLE


@pytest.mark.parametrize(
    ("name", "change", "where"),
    [
        ("15a", by(0.2), {**FULL, "setting": "istella-naive"}),
        ("29b", by(0.2), {**FULL, "setting": "yahoo-naive"}),
        ("22", by(-0.11), {"setting": "eta-pbm"}),
    ],
)
def test_a_click_model_whose_training_failed_is_no_evidence(name, change, where):
    found = judge(AT[name], altered(made_up(), change, where))
    assert found.verdict == NOT_TESTABLE
    assert found.reason.endswith("so its training failed")


def of_seeds(count: int) -> pd.DataFrame:
    return made_up()[made_up()["seed"] < count]


TESTED_BY_THESIS = [name for name in AT if name.rstrip("abc") in ("9", "10", "11", "12", "15")]


@pytest.mark.parametrize("name", TESTED_BY_THESIS)
def test_the_thesis_test_needs_ten_runs(name):
    assert decide(AT[name], made_up()).verdict == REPRODUCED
    found = decide(AT[name], of_seeds(9))
    assert found.verdict == UNDECIDED
    assert found.reason == "the thesis tests over 10 runs, and here are 9"


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("7a", {**FULL, "setting": "mslr-naive"}),
        ("27b", {**FULL, "setting": "yahoo-estimated"}),
        ("28c", {**FULL, "setting": "yahoo-naive"}),
        ("29a", {**FULL, "setting": "istella-ips"}),
        ("21a", {"setting": "onehot", **FULL, "method": "ips", "collisions": 0.5}),
        ("22", PBM),
        ("23", RAW),
        (
            "24b",
            {
                "setting": "mechanism-istella",
                "tower": "linear",
                "kind": "ips",
                "metric": "ndcg@10_train",
            },
        ),
        ("26", {**FULL, "setting": "weak-estimated"}),
    ],
)
def test_runs_that_do_not_agree_leave_a_difference_undecided(name, where):
    assert decide(AT[name], made_up()).verdict == REPRODUCED
    found = decide(AT[name], altered(made_up(), noisier, {"metric": "ndcg@10", **where}))
    assert found.verdict == UNDECIDED
    assert found.reason.startswith("open: ")


@pytest.mark.parametrize("name", [name for name in AT if name.rstrip("abc") == "13"])
def test_few_runs_tell_nothing_of_differences_between_runs(name):
    found = decide(AT[name], of_seeds(3))
    assert found.verdict == UNDECIDED
    assert found.reason == "deviations between 3 runs, and the thesis has 10"
    assert decide(AT[name], made_up()).cause != found.cause


def test_the_least_significant_difference_has_the_p_of_the_test():
    least = grid.least_significant(0.2, 0.1, 10, 0.01)
    t, p = grid.t_test(0.5 + least, 0.2, 0.5, 0.1, 10)
    assert t > 0
    assert p == pytest.approx(0.01)
