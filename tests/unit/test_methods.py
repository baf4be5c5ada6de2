"""A setting from files to results, and the nDCG of a log's rankings."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.simulated_logs import cells_of, simulate_sessions
from tests.tasks import setting_of
from tests.training import short
from tests.unit import simulated
from tests.unit.simulated import POSITIONS
from twotowers.claims.metrics import shown_ndcg
from twotowers.experiment.fields import read
from twotowers.experiment.log import tower_inputs
from twotowers.experiment.paper import AnyLog
from twotowers.files.rankings import Rankings, mask
from twotowers.jobs.fit import fit_setting
from twotowers.logs.counts import Counts
from twotowers.logs.policies import ranking_order
from twotowers.methods import likelihood
from twotowers.splits import SPLITS

STRENGTHS, TEMPERATURES = [-1, 1], [0, 1]
TRAINING = short(0.05, batch=4, epochs=3, steps=6, patience=2, min_delta=1e-5)


# nDCG of a log.


@pytest.mark.parametrize("topn", [1, 3, 10])
def test_shown_ndcg_is_the_mean_over_sessions(topn):
    lengths = np.array([6, 2, 1, 4, 3])
    where = mask(lengths, 6)
    rng = np.random.default_rng(0)
    relevance = np.where(where, rng.uniform(0, 4, where.shape), 0)
    relevance[3] = 0  # nothing relevant
    order = ranking_order(rng.random(where.shape), where, tiebreak=relevance)
    sessions = simulate_sessions(
        order, np.full((5, 6, 6), 0.5), lengths, sessions=60, temperature=0.6, rng=rng
    )

    def session_ndcg(query, documents):
        gain = 2.0 ** relevance[query, documents[: lengths[query]]] - 1
        discount = 1 / np.log2(1 + np.arange(1, len(gain) + 1))
        best = (np.sort(gain)[::-1] * discount)[:topn].sum()
        return (gain * discount)[:topn].sum() / best if best else 0.0

    values = [[] for _ in lengths]
    for query, documents in zip(sessions.query, sessions.documents, strict=True):
        values[query].append(session_ndcg(query, documents))
    result = shown_ndcg(cells_of(sessions, 5), relevance, where=where, topn=topn)
    np.testing.assert_allclose(result, [np.mean(each) for each in values], rtol=1e-12)


def test_shown_ndcg_of_a_query_without_sessions_is_zero():
    impressions = np.zeros((2, 3, 3), np.uint8)
    impressions[0, [0, 1, 2], [0, 1, 2]] = 200
    relevance = np.array([[3.0, 2, 1], [3, 2, 1]])
    result = shown_ndcg(Counts(impressions, 0), relevance, where=np.ones((2, 3), bool))
    np.testing.assert_allclose(result, [1, 0])


def test_tower_inputs():
    lists = Rankings(np.array([4, 4, 9]), np.zeros(3), np.zeros(3), np.arange(12.0).reshape(3, 4))
    where = mask(lists.lengths, 3)
    assert tower_inputs(lists, where, None).tolist() == [[0, 1, 2], [3, 4, 5]]
    half = tower_inputs(lists, where, 0.5)
    assert half.tolist() == [[[0, 1], [4, 5], [0, 0]], [[8, 9], [0, 0], [0, 0]]]


# A world on disk: three splits, a policy of scores, and its clicks.


LOG = {
    "dataset": "any", "relevance": "annotated", "positions": POSITIONS,
    "policy": {"ranker": "expert", "strength": STRENGTHS, "temperature": TEMPERATURES},
    "sessions": dict.fromkeys(SPLITS, 600),
}  # fmt: skip
SETTING = {
    "model": {"tower": "linear"}, "method": {"kind": "likelihood", "weighting": ["none", "ips"]},
    "training": TRAINING, "log": LOG,
}  # fmt: skip
PLAIN = {"method": "likelihood", "lanes": {"strength": [1], "temperature": [0]}}


def run(folder, files=None, **changes):
    names = (*SPLITS, "policy", "clicks")
    files = {name: folder / f"{name}.parquet" for name in names} | (files or {})
    return fit_setting(files, setting_of(SETTING | changes), seed=3)


METRICS = {
    *("ndcg@5", "ndcg@10", "arp", "mrr@10", "nll", "epochs"),
    *("policy_ndcg@5", "policy_ndcg@10", "policy_arp"),
    *("held_out_loss", "gain_over_constant", "gain_over_ranks", "fall_at_limit"),
}
LANES = ["strength", "temperature", "weighting"]


def write_world(folder, **changes):
    """Expert ranking by relevance: at strength 1 and temperature 0 its nDCG is 1."""
    simulated.write_world(folder)
    files = {"policy": folder / "policy.parquet"}
    read(AnyLog, LOG | changes).simulate(files, folder / "clicks.parquet", seed=3)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    write_world(folder)
    return folder, run(folder)


def test_nothing_is_said_of_positions_that_training_does_not_show(tmp_path):
    longer = {"positions": POSITIONS + 2}
    write_world(tmp_path, **longer)
    bias = run(tmp_path, log=LOG | longer, **PLAIN).query("metric == 'position_bias'")
    assert bias["position"].tolist() == list(range(1, POSITIONS + 1))


def test_results_have_the_documented_columns_and_all_lanes(world):
    _, results = world
    assert set(results) == {*LANES, "start", "metric", "position", "value", "model", "method"}
    assert results["position"].dtype == "Int64"
    assert np.isfinite(results["value"]).all()
    lanes = results.groupby(LANES)
    assert sorted(lanes.groups) == sorted(
        (s, t, w) for s in STRENGTHS for t in TEMPERATURES for w in ("none", "ips")
    )
    for _, lane in lanes:
        bias = lane[lane["metric"] == "position_bias"]
        assert bias["position"].tolist() == list(range(1, POSITIONS + 1))
        assert bias["value"].iloc[0] == 0  # relative to the first position
        rest = lane[lane["metric"] != "position_bias"]
        assert set(rest["metric"]) == METRICS
        assert len(rest) == len(METRICS)
        assert rest["position"].isna().all()


def test_lanes_are_labelled_with_their_own_log(world):
    _, results = world
    wide = results[results["metric"] != "position_bias"].pivot(
        index=LANES, columns="metric", values="value"
    )
    policy = wide["policy_ndcg@10"]
    for weighting in ("none", "ips"):
        assert policy[1, 0, weighting] == pytest.approx(1)
        assert policy[-1, 0, weighting] < policy[1, 1, weighting] < 1
        # Fully random rankings give the same log at every strength.
        assert policy[-1, 1, weighting] == pytest.approx(policy[1, 1, weighting])
    # Weighting changes the results only with randomisation.
    bias = results[results["metric"] == "position_bias"]
    bias = bias.pivot(index=["strength", "temperature", "position"], columns="weighting")["value"]
    gap = (bias["ips"] - bias["none"]).abs().groupby(["strength", "temperature"]).max()
    assert gap[1, 0] < 1e-4
    assert gap[1, 1] > 1e-3


def test_a_log_of_training_queries_for_the_embedding_tower(tmp_path):
    write_world(tmp_path, queries="train")
    lanes = {"strength": [1], "temperature": [1]}
    log = LOG | {"queries": "train"}
    results = run(tmp_path, model={"tower": "embedding"}, log=log, **PLAIN | {"lanes": lanes})
    assert set(results["metric"]) == {*METRICS, "position_bias", "gain_over_documents"}
    assert len(results) == POSITIONS + len(METRICS) + 1
    assert np.isfinite(results["value"]).all()


# Numbers of towers, heads and training as lanes.

PARTS = {
    "tower": {"kind": "dense", "layers": [6], "dropout": [0.0, 0.4], "normalise": "batch"},
    "examination": {"kind": "dense", "layers": [4], "dropout": [0.0, 0.2]},
}


def fit_parts(folder, model, heads):
    return run(
        folder,
        model=model,
        method={"kind": "likelihood", "heads": heads},
        lanes={"strength": [1], "temperature": [1]},
        training=TRAINING | {"optimizer": "adam", "learning_rate": 0.02},
    )


def test_lanes_of_parts_and_training_are_columns_and_equal_settings_of_their_own(world):
    folder, _ = world
    together = fit_parts(folder, PARTS, {"reversal": {"scale": [0.0, 2.0]}})
    columns = ["tower_dropout", "reversal_scale", "examination_dropout"]
    keys = ["metric", "position"]
    lanes = dict(list(together.groupby(columns)))
    assert sorted(lanes) == sorted(product([0.0, 0.4], [0.0, 2.0], [0.0, 0.2]))
    losses = {lane: rows[rows["metric"] == "nll"]["value"].item() for lane, rows in lanes.items()}
    assert len(set(losses.values())) == 8
    model = {part: own | {"dropout": own["dropout"][1]} for part, own in PARTS.items()}
    alone = fit_parts(folder, model, {"reversal": {"scale": 2.0}})
    assert not set(columns) & set(alone)
    pair = lanes[0.4, 2.0, 0.2].merge(alone, on=keys, suffixes=("", "_alone"))
    assert len(pair) == len(alone)
    np.testing.assert_allclose(pair["value"], pair["value_alone"], rtol=1e-3, atol=1e-4)


def test_what_is_measured_besides(world):
    folder, _ = world
    plain = run(folder, **PLAIN)
    assert not {"query", "epoch"} & set(plain)
    results = run(folder, **PLAIN, measure=["validation", "queries", "epochs"])
    values = results.groupby("metric")["value"]
    assert values.get_group("query_ndcg@5").mean() == pytest.approx(
        values.get_group("ndcg@5").item(), abs=1e-6
    )
    losses = results[results["metric"] == "watched_loss"]
    assert list(losses["epoch"]) == [1, 2, 3]
    # The kept parameters are those of the lowest loss, so that it is measured again: per
    # impression, of lists of several lengths.
    assert {"validation_nll", "validation_ndcg@5"} <= set(results["metric"])
    assert losses["value"].min() == values.get_group("validation_loss").item()
    assert losses["value"].mean() == values.get_group("validation_loss_mean").item()
    assert losses["value"].min() == pytest.approx(
        values.get_group("validation_nll").item(), rel=0.1
    )
    merged = results[results[["query", "epoch"]].isna().all(axis=1)]
    assert set(plain["metric"]) < set(merged["metric"])


@pytest.mark.parametrize("label", ["relevance", "prediction"])
def test_labels_of_adversaries(world, label, monkeypatch):
    """Relevance / 4, or the scores of a tower trained alone between their outer percentiles."""
    folder, _ = world
    kept, labels_of = [], likelihood._labels

    def watched(task, model, again):
        kept.append((task, again, labels_of(task, model, again)))
        return kept[-1][2]

    monkeypatch.setattr(likelihood, "_labels", watched)
    heads = {"reversal": {"scale": [0.0, 0.5], "label": label}}
    fit_parts(folder, {"tower": "linear"}, heads)
    ((task, again, labels),) = kept
    (name,) = labels
    assert name == label
    train = task.splits["train"]
    expected = train.relevance / 4
    if label == "prediction":
        (log, values), *_ = task.lanes
        own = {name: value for name, value in values.items() if name != "reversal_scale"}
        (alone,) = again(replace(task, lanes=[(log, own)]))
        scores = alone.scores(train.inputs)
        low, high = np.percentile(scores[train.where], [5, 95])
        expected = np.clip((scores - low) / (high - low), 0, 1)
    for found in np.asarray(labels[label]):
        np.testing.assert_allclose(found[train.where], expected[train.where], atol=1e-5)
