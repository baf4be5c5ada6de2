"""Simulated logs on the road: cells in both layouts, pages, and what fits make of either."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flax import nnx

from scripts import simulate_clicks
from twotowers import SPLITS
from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, mask, pad, write_rankings
from twotowers.fitting.gradient import mean_loss
from twotowers.fitting.newton import fit_embedding, fit_linear
from twotowers.logs import counts as counts_module
from twotowers.logs import lane_sessions
from twotowers.logs import simulation as logs_simulation
from twotowers.logs.cells import read_logs, write_logs
from twotowers.logs.counts import Cells, Counts, Rows, lay_out
from twotowers.logs.lane_sessions import counts_of, read_lane_sessions
from twotowers.logs.policies import read_policy
from twotowers.logs.sessions import read_sessions
from twotowers.methods import likelihood, newton
from twotowers.methods.starts import starts_of
from twotowers.methods.task import Split, Task
from twotowers.models.additive import Additive
from twotowers.models.position_based import PositionBased
from twotowers.models.towers import two_towers
from twotowers.running import simulation
from twotowers.running.fit import fit_setting
from twotowers.running.settling import queries_of, settle_log

POSITIONS, QUERIES, WIDTH = 5, 8, 3
TRAINING = {"learning_rate": 0.05, "batch": 20, "steps": 30, "epochs": 4, "patience": 2,
            "min_delta": 1e-5}  # fmt: skip
LOG = {
    "dataset": "any",
    "relevance": "annotated",
    "policy": {"ranker": "expert", "strength": [0, 1], "temperature": [0, 0.5]},
    "queries": {"split": "train", "first": 6, "ranked": "once"},
    "sessions": {"train": 900, "validation": 400, "test": 300},
}
LANES = {"strength": [0.0, 1.0], "temperature": [0.0, 0.5]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rankings and a policy of three splits, 8 queries of 2 to 5 documents each."""
    folder = tmp_path_factory.mktemp("world")
    tables = []
    for number, split in enumerate(SPLITS):
        rng = np.random.default_rng(number)
        lengths = rng.integers(2, POSITIONS + 1, QUERIES)
        query = np.repeat(100 * number + np.arange(QUERIES), lengths)
        document = np.concatenate([rng.permutation(n) for n in lengths]).astype(np.int32)
        features = rng.normal(size=(len(query), WIDTH)).astype(np.float32)
        relevance = (features[:, 0] + 2).clip(0, 4).astype(np.float32)
        write_rankings(Rankings(query, document, relevance, features), folder / f"{split}.parquet")
        columns = {"query": query, "document": document, "relevance": relevance}
        tables.append(
            pa.table({"split": pa.repeat(split, len(query)), **columns, "score": relevance})
        )
    pq.write_table(pa.concat_tables(tables), folder / "policy.parquet")
    return folder


def settled(**changes) -> dict:
    return settle_log("log", {**LOG, **changes}, {}, path="experiment.yaml", paper=None)


def simulated(folder, name: str, **changes):
    path = folder / f"{name}.parquet"
    if not path.exists():
        inputs = SimpleNamespace(policy=folder / "policy.parquet")
        log = settled(**changes)
        simulate_clicks.main(inputs, [path], paper=None, log=log, positions=POSITIONS, seed=3)
    return path


@pytest.fixture(scope="module")
def pages(folder):
    return simulated(folder, "pages", record="sessions")


def policies(folder, log) -> dict:
    return {
        split: read_policy(folder / "policy.parquet", *queries_of(log, split)) for split in SPLITS
    }


def read(folder, path, lanes=None):
    pairs = {split: policy.pairs for split, policy in policies(folder, LOG).items()}
    lanes = lanes or [{"strength": s, "temperature": t} for s in (0.0, 1.0) for t in (0.0, 0.5)]
    return read_lane_sessions(path, lanes, pairs=pairs, length=POSITIONS)


# Pages.


def test_a_log_of_pages_has_all_lanes_and_splits_and_the_first_queries_only(folder, pages):
    found = read(folder, pages)
    for split, sessions in LOG["sessions"].items():
        assert [len(log.query) for log in found[split]] == [sessions] * 4
        assert {int(query) for query in found[split][0].query} == set(range(6))
    ids = {query for batch in read_sessions(pages) for query in batch["query"].to_pylist()}
    assert ids == set(range(6))


def test_pages_show_the_policys_ranking_or_a_random_one(folder, pages):
    policy = policies(folder, LOG)["train"]
    best = pad(policy.relevance, policy.pairs.offsets, POSITIONS).argmax(1)
    found = read(folder, pages)["train"]
    share = [(log.documents[:, 0] == best[log.query]).mean() for log in found]
    assert share[2] == 1  # strength 1, temperature 0
    assert 0.5 < share[3] < 0.9
    lengths = policy.pairs.lengths
    for log in found:
        assert (log.where.sum(1) == lengths[log.query]).all()
        for query, documents, where in zip(log.query, log.documents, log.where, strict=True):
            assert sorted(documents[where]) == list(range(lengths[query]))


def test_pages_and_cells_are_records_of_one_distribution(folder, pages):
    many = {"sessions": {"train": 60_000, "validation": 10, "test": 10}}
    lane = {"strength": 1.0, "temperature": 0.5}
    by_page = read(folder, simulated(folder, "more-pages", record="sessions", **many), [lane])
    one = counts_of(by_page["train"], 6, POSITIONS)
    pairs = policies(folder, LOG)["train"].pairs
    two = read_logs(
        simulated(folder, "more-cells", **many), [lane], split="train", pairs=pairs,
        length=POSITIONS,
    )  # fmt: skip
    np.testing.assert_allclose(one.impressions / 6e4, two.impressions / 6e4, atol=0.006)
    np.testing.assert_allclose(one.clicks / 6e4, two.clicks / 6e4, atol=0.006)


def test_larger_logs_of_pages_begin_with_the_smaller_ones(folder):
    sessions = {"train": [200, 500], "validation": 50, "test": 50}
    path = simulated(folder, "grown-pages", record="sessions", sessions=sessions)
    lanes = [{"strength": 0.0, "temperature": 0.5, "sessions": n} for n in (200.0, 500.0)]
    found = read(folder, path, lanes)
    few, many = found["train"]
    assert (len(few.query), len(many.query)) == (200, 500)
    for column in ("query", "documents", "clicks"):
        np.testing.assert_array_equal(getattr(many, column)[:200], getattr(few, column))
    one, other = found["validation"]
    np.testing.assert_array_equal(one.documents, other.documents)


@pytest.mark.parametrize("ranked", ["once", "per split"])
def test_a_policy_ranks_once_for_all_splits_or_for_each_anew(folder, ranked):
    path = simulated(
        folder, ranked, record="sessions", queries={"split": "train", "ranked": ranked}
    )
    pairs = policies(folder, {"queries": "train"})
    pairs = {split: policy.pairs for split, policy in pairs.items()}
    lane = {"strength": 0.0, "temperature": 0.0}
    found = read_lane_sessions(path, [lane], pairs=pairs, length=POSITIONS)
    shown = [counts_of(found[split], QUERIES, POSITIONS).impressions > 0 for split in SPLITS]
    alike = [(shown[0] == other).all() for other in shown[1:]]
    assert all(alike) == (ranked == "once")


def test_pages_that_are_not_those_of_the_rankings(folder, pages):
    lanes = [{"strength": 0.0, "temperature": 0.25}]
    with pytest.raises(InputError, match="no pages of split 'train' with strength"):
        read(folder, pages, lanes)
    with pytest.raises(InputError, match=r"has lanes \['temperature'\]"):
        read(folder, pages, [{"strength": 0.0}])
    others = {"train": read_policy(folder / "policy.parquet", "train", 2).pairs}
    with pytest.raises(InputError, match="is not in the rankings"):
        read_lane_sessions(pages, [{"strength": 0.0, "temperature": 0.0}], pairs=others, length=5)
    pairs = {"train": policies(folder, LOG)["train"].pairs}
    with pytest.raises(InputError, match="pages show 2 to 5 documents"):
        read_lane_sessions(pages, [{"strength": 0.0, "temperature": 0.0}], pairs=pairs, length=4)


# Dense and listed.


def columns(log: Counts | Cells) -> list[np.ndarray]:
    if isinstance(log, Cells):
        return [log.query, log.document, log.position, log.impressions, log.clicks]
    place = np.nonzero(log.impressions)
    return [*place, log.impressions[place], log.clicks[place]]


def in_both_layouts(folder, monkeypatch, log):
    """The lanes of the training log as they are held densely, and listed."""
    policy = policies(folder, log)["train"]
    found = []
    for longest in (32, 1):
        for module in (counts_module, logs_simulation, simulation, lane_sessions):
            monkeypatch.setattr(module, "LONGEST_DENSE", longest)
        found.append(list(simulation.simulate("train", policy, log, positions=POSITIONS, seed=3)))
    assert isinstance(found[0][0].counts, Counts)
    assert isinstance(found[1][0].counts, Cells)
    return found


USERS = {
    "additive": {},
    "position based, eta in lanes": {
        "user": {"kind": "position_based", "eta": [0.5, 2], "noise": 0.2}
    },
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("sessions", [700, [100, 700]])
def test_listed_cells_are_the_dense_ones(folder, monkeypatch, user, sessions):
    log = settled(**USERS[user], sessions={"train": sessions, "validation": 1, "test": 1})
    dense, listed = in_both_layouts(folder, monkeypatch, log)
    assert len(dense) == len(listed) == np.prod([len(lane) for lane in log["lanes"].values()])
    for one, other in zip(dense, listed, strict=True):
        assert one.lane == other.lane
        for left, right in zip(columns(one.counts), columns(other.counts), strict=True):
            np.testing.assert_array_equal(left, right)
        assert one.counts.impressions.sum() > one.counts.clicks.sum() > 0


def test_listed_cells_through_a_file_are_the_dense_ones(folder, monkeypatch, tmp_path):
    log = settled()
    pairs = policies(folder, log)["train"].pairs
    lanes = [{"strength": s, "temperature": t} for s in (0.0, 1.0) for t in (0.0, 0.5)]
    dense, listed = in_both_layouts(folder, monkeypatch, log)
    for name, lane_logs in {"dense": dense, "listed": listed}.items():
        write_logs(tmp_path / name, lane_logs, {"train": pairs})
    assert (tmp_path / "dense").read_bytes() == (tmp_path / "listed").read_bytes()
    rows = read_logs(tmp_path / "listed", lanes, split="train", pairs=pairs, length=POSITIONS)
    assert isinstance(rows, Rows)
    for number, log in enumerate(listed):
        shown = rows.impressions[number] > 0
        np.testing.assert_array_equal(rows.clicks[number][shown], log.counts.clicks)
        np.testing.assert_array_equal(rows.document[number][shown], log.counts.document)


@pytest.mark.parametrize("layout", [0, 1])
def test_larger_logs_contain_the_smaller_ones(folder, monkeypatch, layout):
    log = settled(sessions={"train": [100, 700, 5000], "validation": 1, "test": 1})
    found = in_both_layouts(folder, monkeypatch, log)[layout]
    dense = np.zeros((2, len(found), 6, POSITIONS, POSITIONS), int)
    for number, lane in enumerate(found):
        *place, shown, clicked = columns(lane.counts)
        dense[(0, number, *place)], dense[(1, number, *place)] = shown, clicked
    by_size = dense.reshape(2, 4, 3, 6, POSITIONS, POSITIONS)
    assert (np.diff(by_size, axis=2) >= 0).all()
    assert (by_size[0, ..., 0].sum((-1, -2)) == [100, 700, 5000]).all()


def test_steeper_users_click_less_below_the_top(folder, monkeypatch):
    log = settled(**USERS["position based, eta in lanes"])
    for lanes in in_both_layouts(folder, monkeypatch, log):
        rates = {}
        for lane in lanes:
            *_, position, shown, clicked = columns(lane.counts)
            low = position > 1
            rates.setdefault(lane.lane["eta"], []).append(clicked[low].sum() / shown[low].sum())
        assert (np.array(rates[2.0]) < np.array(rates[0.5])).all()


# Fits.


def task_of(folder, pages, *, lanes, tower="embedding", model=None, users=True, paged=True) -> Task:
    found = read(folder, pages)
    splits = {}
    for split, policy in policies(folder, LOG).items():
        where = mask(policy.pairs.lengths, POSITIONS)
        splits[split] = Split(
            inputs=np.arange(where.size, dtype=np.int32).reshape(where.shape)
            if tower == "embedding"
            else np.random.default_rng(0).normal(size=(*where.shape, WIDTH)),
            where=where,
            relevance=pad(policy.relevance, policy.pairs.offsets, POSITIONS),
            counts=counts_of(found[split], 6, POSITIONS),
            sessions=found[split] if paged else None,
        )
    return Task(
        model or Additive(), tower, splits, lanes, TRAINING, POSITIONS, 3,
        users=[Additive()] * 4 if users else None,
    )  # fmt: skip


def started(*starts) -> list:
    return [(3, {"weighting": "none", "start": start}) for start in starts]


def fresh(task: Task):
    where = task.splits["train"].where
    return two_towers(
        task.tower, width=WIDTH, pairs=where.size, positions=POSITIONS, seed=1, model=task.model
    )


@pytest.mark.parametrize("model", [Additive(), PositionBased()])
def test_sessions_and_their_counts_are_one_objective(folder, pages, model):
    lanes = [(log, {"weighting": "none"}) for log in range(4)]
    task = task_of(folder, pages, lanes=lanes, model=model)
    graph, state = nnx.split(fresh(task))
    for split in task.splits.values():
        by_page = likelihood.session_loss(split, lanes)
        by_cell = likelihood.count_loss(split, lanes)
        for lane in range(4):
            one, other = (
                mean_loss(graph, state, jnp.int32(lane), objective=loss)
                for loss in (by_page, by_cell)
            )
            assert float(one) == pytest.approx(float(other), rel=1e-5)


def test_sessions_fit_in_batches_of_sessions(folder, pages):
    lanes = started("random")
    by_page, by_cell = (
        likelihood.split_loss(task_of(folder, pages, lanes=lanes, paged=paged).splits[split], lanes)
        for paged, split in ((True, "train"), (False, "train"))
    )
    assert (by_page.units, by_cell.units) == (900, 6)
    some = likelihood.some_sessions(by_page, 300)
    np.testing.assert_array_equal(some.query[0], by_page.query[0][::3])
    assert likelihood.some_sessions(by_page, 5000).units == 900


def test_sessions_are_not_weighted_and_lanes_are_of_one_size(folder, pages):
    split = task_of(folder, pages, lanes=[]).splits["train"]
    with pytest.raises(InputError, match="sessions have no weights"):
        likelihood.session_loss(split, [(0, {"weighting": "ips"})])
    uneven = SimpleNamespace(
        sessions=[split.sessions[0], read(folder, pages)["test"][0]], inputs=split.inputs
    )
    with pytest.raises(InputError, match=r"lanes of \[300, 900\] sessions cannot share"):
        likelihood.session_loss(uneven, [(0, {}), (1, {})])


def test_starts(folder, pages):
    task = task_of(folder, pages, lanes=started("zero", "truth", "random"))
    model = fresh(task)
    graph, state = nnx.split(model)
    vectors = starts_of(task, model)
    unravel = jax.flatten_util.ravel_pytree(state)[1]
    zero, truth, random = (nnx.merge(graph, unravel(vector)) for vector in vectors)
    train = task.splits["train"]
    assert not np.any(zero.relevance(train.inputs))
    assert not np.any(zero.position_bias)
    np.testing.assert_array_equal(random.relevance(train.inputs), model.relevance(train.inputs))
    logits = np.asarray(truth.relevance(train.inputs))
    np.testing.assert_allclose(logits[train.where], train.relevance[train.where] - 2)
    np.testing.assert_allclose(truth.position_bias, -np.log(np.arange(1, POSITIONS + 1)), rtol=1e-6)
    # Random alone is the fit as it always was.
    assert starts_of(task_of(folder, pages, lanes=started("random")), model) is None


def test_the_truth_of_a_position_based_user_is_finite(folder, pages):
    task = task_of(folder, pages, lanes=started("truth"), model=PositionBased())
    task.users[:] = [PositionBased(eta=2)] * 4
    (vector,) = starts_of(task, fresh(task))
    assert np.isfinite(vector).all()


@pytest.mark.parametrize(
    ("start", "changes", "message"),
    [
        ("truht", {}, "'truht' is unknown.*'truth'"),
        ("truth", {"users": False}, "nobody knows the truth of a real log"),
        ("truth", {"tower": "linear"}, "a linear tower cannot start at the truth"),
        ("truth", {"model": PositionBased()}, "parameters are not those of the model"),
        ("zero", {"tower": "deep"}, "a deep tower does not learn from zeros"),
    ],
)
def test_starts_that_there_are_not(folder, pages, start, changes, message):
    task = task_of(folder, pages, lanes=started(start), **changes)
    with pytest.raises(InputError, match=message):
        starts_of(task, fresh(task))


def test_a_lane_from_the_truth_begins_nearer_to_it(folder, pages):
    task = task_of(folder, pages, lanes=started("random", "truth"))
    random, truth = likelihood.fit(task)
    error = [
        np.abs(np.diff(fitted.bias) + np.diff(np.log(np.arange(1, POSITIONS + 1)))).max()
        for fitted in (random, truth)
    ]
    assert error[1] < error[0]


def test_what_stops_a_fit(folder, pages):
    task = task_of(folder, pages, lanes=started("random"))
    with pytest.raises(InputError, match="stop_on: 'test' is unknown"):
        likelihood.fit(task, stop_on="test")
    watched = []
    likelihood_fit = likelihood.gradient_fit

    def spy(model, train, validation, *more, **options):
        watched.append((train, validation))
        return likelihood_fit(model, train, validation, *more, **options)

    for paged in (True, False):
        task = task_of(folder, pages, lanes=started("random"), paged=paged)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(likelihood, "gradient_fit", spy)
            likelihood.fit(task, stop_on="train")
    (train, validation), (counts, same) = watched
    assert validation.units == 400
    assert np.isin(np.asarray(validation.query), np.asarray(train.query)).all()
    assert counts is same


# Newton.


def test_newton_is_the_exact_optimum_of_the_sessions_counts(folder, pages):
    task = task_of(folder, pages, lanes=[(log, {}) for log in (1, 3)])
    train = task.splits["train"]
    for fitted, log in zip(newton.fit(task), (1, 3), strict=True):
        counts = train.counts.of_log(log)
        exact = fit_embedding(counts.impressions[train.where], counts.clicks[train.where])
        np.testing.assert_allclose(fitted.bias, exact.bias)
        logits = fitted.scores(train.inputs)[train.where]
        known = np.isfinite(exact.relevance)
        np.testing.assert_allclose(logits[known], exact.relevance[known])
        assert np.isfinite(logits).all()
        # The likelihood of no other parameters is higher: not of the truth's, for one.
        truth = Additive().chance(train.relevance, POSITIONS)
        at_truth = -(
            counts.clicks * np.log(truth)
            + (counts.impressions - counts.clicks.astype(float)) * np.log(1 - truth)
        ).sum()
        assert fitted.cell_losses(train).sum() < at_truth
        assert np.isfinite(fitted.values["nll"])


def test_newton_of_a_linear_tower(folder, pages):
    task = task_of(folder, pages, lanes=[(3, {})], tower="linear")
    train = task.splits["train"]
    (fitted,) = newton.fit(task)
    counts = train.counts.of_log(3)
    exact = fit_linear(
        train.inputs[train.where], counts.impressions[train.where], counts.clicks[train.where]
    )
    np.testing.assert_allclose(fitted.bias, exact.bias, atol=1e-6)
    np.testing.assert_allclose(fitted.scores(train.inputs)[train.where], exact.relevance, atol=1e-6)


def test_newton_is_the_same_on_listed_cells(folder, pages, monkeypatch):
    task = task_of(folder, pages, lanes=[(3, {})])
    (dense,) = newton.fit(task)
    for module in (counts_module, lane_sessions):
        monkeypatch.setattr(module, "LONGEST_DENSE", 1)
    listed_task = task_of(folder, pages, lanes=[(3, {})])
    assert isinstance(listed_task.splits["train"].counts, Rows)
    (listed,) = newton.fit(listed_task)
    np.testing.assert_allclose(listed.bias, dense.bias)
    assert listed.values["nll"] == pytest.approx(dense.values["nll"])
    monkeypatch.setattr(newton, "MOST_CELLS", 10)
    with pytest.raises(InputError, match="too many for an exact optimum"):
        newton.fit(listed_task)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": PositionBased()}, "no exact optimum of PositionBased"),
        ({"tower": "deep"}, "no exact optimum of a deep tower"),
    ],
)
def test_what_newton_cannot_do(folder, pages, changes, message):
    with pytest.raises(InputError, match=message):
        newton.fit(task_of(folder, pages, lanes=[(0, {})], **changes))


def test_counts_of_sessions_are_their_cells(folder, pages):
    logs = read(folder, pages)["train"]
    found = counts_of(logs, 6, POSITIONS)
    for number, log in enumerate(logs):
        counted = log.counts(6)
        np.testing.assert_array_equal(found.impressions[number], counted.impressions)
        np.testing.assert_array_equal(found.clicks[number], counted.clicks)
    assert isinstance(lay_out([(np.zeros(0, int),) * 3], 1, 2), Counts)


# Settings.


@pytest.mark.parametrize(
    ("method", "lanes"),
    [
        ({"kind": "likelihood", "stop_on": "train"}, {"weighting": ["none"], "start": ["zero"]}),
        ({"kind": "newton"}, {}),
    ],
)
def test_a_setting_on_pages(folder, pages, method, lanes):
    files = {name: folder / f"{name}.parquet" for name in (*SPLITS, "policy")}
    setting = {
        "model": {"kind": "additive", "tower": "embedding", "features": 1.0},
        "method": method,
        "lanes": {"log": LANES, "method": lanes},
        "training": TRAINING,
        "log": {"record": "sessions", "queries": LOG["queries"], "user": {"kind": "additive"}},
    }
    results = fit_setting({**files, "clicks": pages}, setting, positions=POSITIONS, seed=3)
    assert np.isfinite(results["value"]).all()
    assert len(results.groupby(["strength", "temperature"])) == 4
    assert {"position_bias", "ndcg@10", "policy_ndcg@10", "nll"} <= set(results["metric"])
    best = results[(results["metric"] == "policy_ndcg@10") & (results["strength"] == 1)]
    assert best.set_index("temperature")["value"][0] == pytest.approx(1)
