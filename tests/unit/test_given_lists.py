"""Logs of given lists: their graph, simulated clicks, repairs, and fits by alternation."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.tasks import setting_of, task_of
from twotowers.errors import InputError
from twotowers.experiment.fields import read
from twotowers.experiment.given import read_lists
from twotowers.experiment.paper import AnyLog
from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability.linked_lists import linked_lists
from twotowers.jobs.fit import fit_setting
from twotowers.jobs.measures import of_recovery
from twotowers.logs.counts import Counts
from twotowers.methods.alternation import fit, rates_of, starts_of
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.position_based import PositionBased

GIVEN = {
    "components": 2, "links": [[1, 2], [3, 4]], "documents": 20, "queries": 30, "exchanged": 4,
    "shares": [0.5, 0.3, 0.2], "drift": [0, 0, 0], "seed": 0,
}  # fmt: skip
REPAIRS = {
    "none": {}, "near": {"merge": "nearest"}, "ends": {"merge": [[1, 4]]},
    "cheap": {"swap": "cheapest"}, "random": {"swap": "random"}, "split": {"split": True},
}  # fmt: skip
VIEWS = [50.0, 100_000.0]
LOG = {
    "from": "lists", "lists": GIVEN, "repairs": REPAIRS, "user": "position_based",
    "views": [50, 100_000], "positions": 4,
}  # fmt: skip
LANES = [{"repair": repair, "views": views} for repair in REPAIRS for views in VIEWS]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("lists") / "log.parquet"
    read(AnyLog, LOG).simulate({}, path, seed=3)
    return path


@pytest.fixture(scope="module")
def log(path):
    return pq.read_table(path).to_pandas()


def lane(log, repair, views=VIEWS[1]):
    return log[(log["repair"] == repair) & (log["views"] == views)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"components": 3}, r"links: the links make 2 components \(expected 3\)"),
        ({"links": [[1, 5]]}, r"links: is no position \(expected 1 to 4\)"),
        ({"queries": 23}, r"queries: 24 documents at position 1 .*23 lists \(expected at least 24"),
        ({"shares": [0.5, 0.3, 0.1]}, "shares: is no probability"),
        ({"drift": [0.2, 0, -0.2]}, "shares: is no probability"),
    ],
)
def test_lists_that_cannot_be_made(change, message):
    with pytest.raises(InputError, match=message):
        linked_lists(positions=4, **{**GIVEN, **change})


def test_split_displays_have_a_bias_factor_each(log):
    rows, plain = lane(log, "split"), lane(log, "none")
    assert sorted(rows["factor"]) == list(range(len(rows)))
    pairs = rows["document"].to_numpy(), rows["factor"].to_numpy()
    assert len(set(factor_components(*pairs, factors=len(rows)))) == rows["document"].nunique()
    np.testing.assert_array_equal(rows["clicks"], plain["clicks"])


def test_clicks_are_those_of_the_user(log):
    rows = lane(log, "none")
    chance = PositionBased().chance(rows["relevance"].to_numpy(float), 4)
    chance = chance[np.arange(len(rows)), rows["position"] - 1]
    off = (rows["clicks"] / VIEWS[1] - chance) / np.sqrt(chance * (1 - chance) / VIEWS[1] + 1e-12)
    assert len(rows) == 30 * 4
    assert (rows["impressions"] == VIEWS[1]).all()
    assert np.abs(off).max() < 4.5
    assert 0.7 < off[chance < 1].std() < 1.3


def test_merged_positions_are_one_factor_on_the_same_clicks(log):
    rows = lane(log, "none")
    assert (rows["factor"] == rows["position"] - 1).all()
    for repair, merged in {"near": [0, 1, 1, 2], "ends": [0, 1, 2, 0]}.items():
        same = lane(log, repair)
        assert same["factor"].tolist() == merged * 30
        for column in ("query", "document", "position", "clicks"):
            assert same[column].tolist() == rows[column].tolist()


@pytest.mark.parametrize("repair", ["cheap", "random"])
@pytest.mark.parametrize("views", VIEWS)
def test_a_swap_adds_a_list_that_connects_the_graph(log, repair, views):
    rows, given = lane(log, repair, views), lane(log, "none", views)
    assert rows["document"].tolist()[: len(given)] == given["document"].tolist()
    added = rows[len(given) :]["document"].tolist()
    lists = given["document"].to_numpy().reshape(-1, 4)
    alike = (lists == added).sum(1)
    assert len(added) == 4
    assert sorted(added) == sorted(lists[alike.argmax()])
    assert alike.max() == 2
    graph = [
        factor_components(each["document"], each["factor"], factors=4).max() + 1
        for each in (given, rows)
    ]
    assert graph == [2, 1]


def test_a_log_without_a_seed_draws_its_own_lists():
    own = read(AnyLog, LOG | {"lists": GIVEN | {"seed": None}})
    first, other = (next(own.draw({}, seed=seed)) for seed in (1, 2))
    assert first["document"] != other["document"]


def test_fits_train_on_all_lists_and_are_measured_on_the_given_ones(path, log):
    splits = read_lists(path, LANES)
    train, test = splits["train"], splits["test"]
    assert len(train.inputs) == 30 + 4  # Each lane that swaps adds a list of its own.
    assert len(test.inputs) == 30
    for number, values in enumerate(LANES):
        rows, counts = lane(log, **values), train.counts.of_log(number)
        shown = counts.impressions > 0
        assert shown.sum() == len(rows)
        assert train.inputs[shown].tolist() == rows["document"].tolist()
        assert counts.clicks[shown].tolist() == rows["clicks"].tolist()
        assert train.factors[number][shown].tolist() == rows["factor"].tolist()
        assert (test.counts.of_log(number).impressions > 0).all()
    assert test.relevance.ravel().tolist() == lane(log, "none")["relevance"].tolist()


def test_a_repaired_setting_finds_relevance(path):
    setting = {
        "model": {"kind": "position_based", "tower": "embedding"},
        "method": {"kind": "alternation", "steps": 3000}, "measure": ["recovery"], "log": LOG,
    }  # fmt: skip
    found = fit_setting({"clicks": path}, setting_of(setting), seed=1)
    mcc = found[(found["metric"] == "mcc") & (found["views"] == VIEWS[1])]
    mcc = mcc.set_index("repair")["value"]
    assert (mcc[["cheap", "random"]] > 0.999).all()
    assert (mcc[["none", "ends"]] < 0.98).all()
    bias = found[(found["metric"] == "position_bias") & (found["views"] == VIEWS[1])]
    bias = bias[bias["repair"] == "cheap"]["value"]
    np.testing.assert_allclose(np.exp(bias), 1 / np.arange(1, 5), rtol=0.02)


# The same documents at two positions each, with rates that no sampling disturbs.
RELEVANCE, EXAMINATION = np.array([0.5, 0.2, 0.4]), np.array([0.8, 0.4, 0.2])


def task(model=None, lists=((0, 1, 2), (1, 2, 0)), **changes) -> Task:
    documents = np.array(lists)
    queries, positions = documents.shape
    position = np.broadcast_to(np.arange(positions), (1, queries, positions))
    shown = np.full_like(position, 1000)
    clicks = np.round(1000 * RELEVANCE[documents] * EXAMINATION).astype(int)[None]
    split = Split(
        documents,
        documents >= 0,
        4.0 * RELEVANCE[documents],
        Counts(shown, clicks, position, position),
    )
    given = {"model": model or PositionBased(), "seed": 1, "logs": [{"views": 1000.0}]}
    return task_of(split, positions, **given | changes)


def test_cells_of_dense_counts_are_the_same_rates():
    rows = task()
    split = rows.splits["train"]
    dense = [np.zeros((1, 2, 3, 3), int) for _ in range(2)]
    for table, values in zip(dense, (split.counts.impressions, split.counts.clicks), strict=True):
        table[:, :, np.arange(3), np.arange(3)] = values
    dense = replace(rows, splits={"train": replace(split, counts=Counts(*dense))})
    one, other = rates_of(rows), rates_of(dense)
    shown = other.weight[0] > 0
    assert other.feature[shown].tolist() == one.feature.tolist()
    for field in ("factor", "rate", "weight"):
        np.testing.assert_allclose(getattr(other, field)[:, shown], getattr(one, field))


def test_merged_factors_share_their_examination():
    split = task().splits["train"]
    factors = np.broadcast_to([0, 1, 1], (1, 2, 3))
    (found,) = fit(task(splits={"train": replace(split, factors=factors)}), steps=50)
    assert found.bias[1] == found.bias[2]


def test_a_lane_starts_alike_whatever_else_is_fitted():
    logs = [{"views": 10.0}, {"views": 20.0}]
    split = task().splits["train"]
    columns = (np.tile(each, (2, 1, 1)) for each in vars(split.counts).values())
    twice = replace(split, counts=Counts(*columns))
    both = task(splits={"train": twice}, lanes=[(0, {}), (1, {})], logs=logs)
    one = task(splits={"train": twice}, lanes=[(1, {})], logs=logs)
    starts = starts_of(both, rates_of(both), starts=2)
    assert starts.shape == (4, 3)
    assert starts[2:].tolist() == starts_of(one, rates_of(one), starts=2).tolist()
    assert len(np.unique(starts)) == 12


def test_recovery_counts_a_document_once():
    user = PositionBased(noise=0, highest=1)
    asked = task(lists=((0, 1, 2), (0, 2, 0)), users=[user])
    labels = np.array([0.0, 1.0, 0.5])
    split = replace(asked.splits["test"], relevance=labels[asked.splits["test"].inputs])
    asked = replace(asked, splits={"test": split})
    scores = np.array([0.3, 0.1, 0.9])
    fitted = Fitted(scores=lambda inputs: scores[inputs])
    found = {row["metric"]: row["value"] for row in of_recovery(fitted, asked, 0)}
    wanted = np.corrcoef(2**labels - 1, scores)[0, 1]
    assert found["mcc"] == pytest.approx(wanted)
    assert found["ndcg@1"] == pytest.approx(((2**0.5 - 1) / 1 + 1) / 2)
