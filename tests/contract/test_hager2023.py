"""The chapter on IPS and click models: its theory, its printed numbers, its studies and judges."""

import re
from itertools import product
from types import SimpleNamespace

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize

from papers.hager2023 import grid
from papers.hager2023.claims import CLAIMS
from papers.hager2023.items import performance
from papers.hager2023.studies import lists, mechanism, theory
from papers.hager2023.studies import onehot as onehot_study
from tests.claimed import claimed
from tests.items import drawing, experiment
from tests.unit.simulated import write_world
from twotowers.claims.claims import REPRODUCED, RUNS, UNDECIDED, judge
from twotowers.claims.published import bands, runs
from twotowers.claims.statistics import select
from twotowers.claims.verdicts import decide
from twotowers.files.rankings import Rankings, write_rankings
from twotowers.losses.cells import cell_losses
from twotowers.models.position_based import PositionBased
from twotowers.splits import SPLITS

AT = {claim.id: claim for claim in CLAIMS}


@pytest.fixture(scope="module")
def theories() -> pd.DataFrame:
    return theory.run(None, seed=0).assign(setting="theory", seed=0)


@pytest.fixture(scope="module")
def printed() -> pd.DataFrame:
    return bands("hager2023")


# Theory.


def test_the_losses_are_those_that_are_fitted():
    # The click model's loss in the study and in the library, at the same clicks.
    y, o, estimate = 0.7, 0.3, 0.4
    logits = np.log(estimate / (1 - estimate)), np.log(o / (1 - o))
    fitted = cell_losses(
        PositionBased(),
        np.float32([logits[0]]),
        np.float32([logits[1]]),
        np.ones((1, 1)),
        np.full((1, 1), o * y, np.float32),
    )
    assert float(fitted[0, 0]) == pytest.approx(theory.pbm_loss(y, o, estimate, o), rel=1e-5)
    # Eq. 2.5 by hand.
    ips = -(y * np.log(estimate) + (1 - y) * np.log(1 - estimate))
    assert theory.ips_loss(y, o, estimate, o) == pytest.approx(ips, rel=1e-12)


@pytest.mark.parametrize(("one", "other"), [((0.9, 0.1), (0.1, 1.0)), ((0.2, 0.9), (0.7, 0.4))])
def test_two_documents_in_closed_form_is_where_the_derivative_vanishes(one, other):
    p = theory.shared_by_two(one, other)
    slope = sum(-(o * y) / p + (1 - o * y) * o / (1 - o * p) for y, o in (one, other))
    assert 0 < p < 1
    assert slope == pytest.approx(0, abs=1e-9)


def test_one_printed_mark_does_not_follow(theories):
    found = judge(AT["19"], theories)
    ending = "marks not given = istella naive arp; differences not marked = none"
    assert found.measured.endswith(ending)
    # 9.191 (.154) against 8.911 (.212) over ten runs, by scipy.
    p = stats.ttest_ind_from_stats(9.191, 0.154, 10, 8.911, 0.212, 10).pvalue
    assert 0.003 < p < 0.004


# Printed numbers.


def test_printed_means_are_those_of_the_runs(printed):
    """To the digits that are printed; a production ranker has a deviation of its own."""
    table = printed[(printed["sessions"] == 1e8) & printed["method"].isna() & printed["sd"].notna()]
    table = table[table["metric"] != "epochs"]
    own = runs("hager2023").query("sessions == 1e8")
    for row in table.itertuples():
        values = select(own, setting=row.setting, metric=row.metric)["value"]
        digits = 3 if "ndcg" in row.metric else 1
        assert round(abs(values.mean() - row.value), 5) <= 0.51 * 10**-digits, row
        assert round(abs(values.std() - row.sd), 5) <= 0.51 * 10**-digits, row


# Judges.


def of_seeds(count: int) -> pd.DataFrame:
    return claimed("hager2023").query("seed < @count")


def test_the_thesis_test_needs_its_runs():
    for name in (name for name in AT if name.rstrip("abc") in ("11", "12", "16")):
        enough, few = (decide(AT[name], of_seeds(count)) for count in (10, 9))
        assert (few.verdict, few.cause) == (UNDECIDED, RUNS)
        assert enough.verdict == REPRODUCED or enough.cause != RUNS


def test_the_least_significant_difference_has_the_p_of_the_test():
    least = grid.least_significant(0.2, 0.1, 10, 0.01)
    t, p = stats.ttest_ind_from_stats(0.5 + least, 0.2, 10, 0.5, 0.1, 10)
    assert t > 0
    assert p == pytest.approx(0.01)


# Studies.


def test_onehot_documents_are_the_same_in_every_split():
    splits = onehot_study.draw(1, 8, 5, [100, 1000])
    shown = [np.sort(part.inputs.ravel()) for part in splits.values()]
    for each in shown:
        np.testing.assert_array_equal(each, np.arange(40))
    by_document = [
        part.relevance.ravel()[np.argsort(part.inputs.ravel())] for part in splits.values()
    ]
    np.testing.assert_array_equal(by_document[0], by_document[1])
    assert not np.array_equal(splits["train"].inputs, splits["test"].inputs)
    train = splits["train"].counts
    assert train.impressions[0].sum() == 100 * 5
    assert (train.impressions[0] <= train.impressions[1]).all()


def test_onehot_recovers_relevance_and_collisions_hurt_the_click_model_more(monkeypatch):
    """Of two methods and the largest budget, whose fits with and without collisions are of one
    compiled program."""
    methods = {name: onehot_study.METHODS[name] for name in ("ips", "pbm")}
    monkeypatch.setattr(onehot_study, "METHODS", methods)
    monkeypatch.setattr(onehot_study, "BUDGETS", (1e8,))
    found = onehot_study.run(
        None, seed=0, sessions=1e8, queries=20, documents=10, collisions=[0, 0.9]
    )
    most = found.set_index(["method", "collisions"])["value"]
    assert most["ips", 0] > 0.995
    assert most["pbm", 0] > 0.995
    assert most["ips", 0] > most["ips", 0.9] > most["pbm", 0.9]


@pytest.mark.parametrize("kind", mechanism.KINDS)
def test_losses_are_those_of_single_documents(kind):
    rng = np.random.default_rng(0)
    z, y, o = rng.normal(size=50), rng.random(50), rng.uniform(0.05, 1, 50)
    rows = zip(z, y, o, strict=True)
    alone = [theory.LOSSES[kind](y, o, 1 / (1 + np.exp(-z)), o) for z, y, o in rows]
    with jax.enable_x64(True):
        np.testing.assert_allclose(mechanism.value(z, y, o, kind), alone, rtol=1e-7)


def test_the_linear_optimum_is_that_of_a_plain_minimiser():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(60, 3)).astype(np.float32)
    label = np.clip(np.round(features[:, 0] + rng.normal(size=60) + 1), 0, 4).astype(np.float32)
    lists = Rankings(np.repeat(np.arange(6), 10), np.tile(np.arange(10), 6), label, features)
    place = np.tile(np.arange(1, 11), 6)
    both = {"train": (lists, place), "test": (lists, place)}
    attraction, examined = seen = mechanism.expected(lists, place)
    rows = {row["metric"]: row["value"] for row in mechanism.linear(both, "pbm", seen)}
    assert rows["gradient"] < 1e-5

    def loss(weights):
        logits = features @ weights[:3] + weights[3]
        return float(mechanism.value(logits, attraction, examined, "pbm").sum()) / 6

    plain = minimize(loss, np.zeros(4), method="Nelder-Mead", options={"maxiter": 5000})
    expected = mechanism.measured(lists, features @ plain.x[:3])
    assert rows["ndcg@10"] == pytest.approx(expected["value"], abs=1e-3)


def test_sampled_clicks_are_those_of_the_user():
    attraction, examined = np.array([0.1, 1.0, 0.4]), np.array([1.0, 0.5, 0.1])
    drawn = mechanism.sampled(attraction, examined, 1e6, np.random.default_rng(0))
    np.testing.assert_allclose(drawn, attraction, atol=0.02)
    one = [mechanism.sampled(attraction, examined, 1, np.random.default_rng(s)) for s in range(99)]
    # A click or none, over examination.
    assert set(np.ravel(one)) == {0.0, 1.0, 2.0, 10.0}


def test_mechanism_on_a_small_world(tmp_path):
    """Neither a document's own parameter nor drawing many clicks makes a gap; all fits converge."""
    write_world(tmp_path)
    files = {split: tmp_path / f"{split}.parquet" for split in ("train", "test")}
    found = mechanism.run(
        SimpleNamespace(**files, policy=tmp_path / "policy.parquet"),
        seed=0,
        queries=6,
        sessions=10**9,
    )
    ndcgs = select(found, metric="ndcg@10").set_index(["tower", "kind"])["value"]
    towers = ("document", "linear", "sampled")
    assert set(ndcgs.index) == set(product(towers, mechanism.KINDS))
    assert ndcgs["document", "ips"] == ndcgs["document", "pbm"]
    for kind in mechanism.KINDS:
        assert ndcgs["sampled", kind] == pytest.approx(ndcgs["linear", kind], abs=0.01)
    assert (select(found, metric="gradient")["value"] < 1e-5).all()


def test_lists_before_and_after_they_are_cut(tmp_path):
    """Queries of 2 and of 4 documents; the longer one keeps one document of each of its labels."""
    whole = Rankings(
        np.repeat([1, 2], [2, 4]),
        np.array([0, 1, 0, 1, 2, 3]),
        np.array([4, 0, 1, 1, 0, 0], np.float32),
        np.zeros((6, 3), np.float32),
    )
    files = {split: tmp_path / f"{split}.parquet" for split in SPLITS}
    for path in files.values():
        write_rankings(whole, path)
    found = lists.run(SimpleNamespace(**files), seed=0, most=2).set_index("metric")["value"]
    expected = {
        "features": 3, "queries": 6, "percent_train": 100 / 3, "fewest": 2, "mean": 3, "median": 3,
        "p90": 4, "most": 4,
        # Of label 4: from a sixth to a quarter. Of label 1: from a third to a quarter.
        "share_moved": 1 / 12, "share_kept": 4 / 6,
    }  # fmt: skip
    for metric, value in expected.items():
        assert found[metric] == pytest.approx(value), metric


# Items.


def made_up(seeds: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (f"{dataset}-{method}", sessions, metric, seed, 0.5 + 0.01 * rng.random())
        for dataset in grid.DATASETS
        for method in grid.METHODS
        for sessions in (1e2, 1e8)
        for metric in (*grid.MEASURES, *(f"policy_{name}" for name in grid.MEASURES))
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows, columns=["setting", "sessions", "metric", "seed", "value"])


NEEDS = [f"{dataset}-{method}" for dataset in grid.DATASETS for method in grid.METHODS]


def test_table_2_2_has_ours_beside_the_printed_and_marks_of_ten_runs(printed):
    results = made_up(10)
    better = results["setting"].eq("yahoo-ips") & results["metric"].eq("ndcg@10")
    results.loc[better, "value"] += 0.1
    for seeds, marked in ((3, []), (10, [["yahoo", "ips", "ndcg@10", 1]])):
        table = performance.table(results[results["seed"] < seeds], printed, needs=NEEDS)
        assert table.groupby("source").size().to_dict() == {"published": 45, "reproduced": 45}
        ours = table[(table["source"] == "reproduced") & (table["mark"] != 0)]
        assert ours[["dataset", "method", "metric", "mark"]].to_numpy().tolist() == marked
    text = performance.tex(table)
    assert "0.724 (0.004)" in text
    assert text.count(r"\\") == 1 + 30


def test_the_tuning_grid_is_of_scale_paper_and_shows_what_diverged():
    at_paper = experiment("hager2023", "paper")
    needs = at_paper.items["tuning"].needs
    assert len(needs) == 27
    lanes = [
        {"setting": need, "learning_rate": rate, "seed": seed}
        for need in needs
        for rate in at_paper.settings[need].training.lanes["learning_rate"]
        for seed in at_paper.seeds_of(need)
    ]
    assert len(lanes) == 27 * 7 * 5
    rows = pd.concat(
        [
            pd.DataFrame(lanes).assign(metric=metric, position=None, value=value)
            for metric, value in [("validation_loss", 0.25), ("ndcg@10", 0.5), ("epochs", 9)]
        ]
    )
    lost = (rows["metric"] == "validation_loss") & (rows["learning_rate"] == 0.1)
    rows["value"] = rows["value"].mask(lost, np.inf)
    found = drawing("hager2023", "tuning", "paper")
    text = found.tex(found.table(rows, bands("hager2023")))
    # Ours, and the authors' in grey.
    theirs = r"\\textcolor{gray}{\$[\d.,]+\$}"
    assert len(re.findall(rf"\$0\.1\$ & \$\\infty\$ & {theirs} & \$0\.500\$", text)) == 27
    assert "tuning" not in experiment("hager2023").items
