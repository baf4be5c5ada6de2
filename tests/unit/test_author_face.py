"""The face for authors of methods: rankings, simulated clicks, two towers; as papers have them."""

import numpy as np
import pytest

import twotowers as tt
from twotowers.experiment.fields import read
from twotowers.experiment.settings import Setting
from twotowers.jobs.fit import fit_setting
from twotowers.workflow.planning import plain

QUICK = {"steps": 5, "epochs": 2, "batch": 8}


@pytest.fixture(scope="module")
def clicks():
    rankings = tt.stand_in("mslr30k", queries=30)
    policy = tt.policy(strength=[0, 1], temperature=0.5)
    return tt.simulate(rankings, policy=policy, user=tt.PositionBased(eta=0.5), sessions=500)


@pytest.fixture(scope="module")
def fitted(clicks):
    model = tt.TwoTower(tt.Dense([4]), click_model="position_based")
    return tt.fit(clicks, model, training=QUICK, seeds=[1, 2])


def test_rankings_have_three_splits_with_labels_and_lists_of_some_length():
    rankings = tt.stand_in("mslr30k", queries=30, top=7)
    assert {split: lists.lengths.max() for split, lists in rankings.splits.items()} == {
        "train": 7, "validation": 7, "test": 7,
    }  # fmt: skip
    assert {*np.unique(rankings.train.label)} <= {0, 1, 2, 3, 4}


def test_a_fit_of_python_is_that_of_a_paper(clicks, fitted):
    setting = read(Setting, plain(fitted.setting))  # as the plan hands it to a job
    results = fit_setting(clicks.files, setting, seed=2)
    bias = fitted.examination().query("seed == 2")
    theirs = results.query("metric == 'position_bias'")
    np.testing.assert_array_equal(bias["estimate"], theirs["value"])
    ndcg = fitted.evaluate(clicks.rankings.test).query("seed == 2")["ndcg@10"]
    np.testing.assert_allclose(ndcg, results.query("metric == 'ndcg@10'")["value"], rtol=1e-6)


def test_lanes_and_seeds_are_columns(fitted, clicks):
    found = fitted.evaluate(clicks.rankings.test)
    assert found[["strength", "seed"]].to_numpy().tolist() == [[0, 1], [1, 1], [0, 2], [1, 2]]
    assert fitted.examination().groupby(["strength", "seed"]).size().eq(25).all()


def test_the_same_seed_gives_the_same_clicks(clicks):
    again = tt.simulate(
        clicks.rankings, policy=tt.policy(strength=[0, 1], temperature=0.5),
        user={"kind": "position_based", "eta": 0.5}, sessions=500,
    )  # fmt: skip
    for name, path in clicks.files.items():
        with open(path, "rb") as ours, open(again.files[name], "rb") as theirs:
            assert ours.read() == theirs.read(), name


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model": "pbm"}, "expected a `TwoTower`"),
        ({"model": tt.TwoTower("depe")}, "model.tower: 'depe' is unknown .*did you mean 'deep'"),
        ({"method": tt.Method("likelihod")}, "method: .*did you mean 'likelihood'"),
        ({"method": tt.Method("ips", weighting="all")}, "method.weighting: 'all' is unknown"),
        ({"training": {"bacth": 3}}, "training: unknown setting 'bacth' .*did you mean 'batch'"),
        ({"model": tt.TwoTower("embedding")}, "model.tower: an embedding per pair"),
    ],
)
def test_a_wrong_argument_is_named(clicks, change, told):
    given = {"model": tt.TwoTower("linear"), **change}
    with pytest.raises(tt.InputError, match=told):
        tt.fit(clicks, **given)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"policy": tt.policy(strengt=1)}, "policy: unknown setting 'strengt'"),
        ({"user": "positional"}, "user: 'positional' is unknown"),
        ({"positions": 3}, "positions: 3 is out of range"),
        ({"sessions": {"train": 5}}, "sessions: 'validation' is missing"),
    ],
)
def test_a_wrong_simulation_is_named(clicks, change, told):
    with pytest.raises(tt.InputError, match=told):
        tt.simulate(clicks.rankings, **change)


def test_towers_are_refused_for_a_log_without_features():
    with pytest.raises(tt.InputError, match="needs features"):
        tt.fit("log.csv", tt.TwoTower())
