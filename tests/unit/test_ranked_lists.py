"""Logs of lists as a ranker sorts them, in context types: clicks, repairs, fits and transfer."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from papers.chen2024.models.contextual import Contextual
from papers.chen2024.models.eye_tracking import EXAMINATION, WEIGHTS
from papers.chen2024.models.eye_tracking import POSITIONS as TEN
from tests.tasks import setting_of, task_of
from twotowers.errors import InputError
from twotowers.experiment.fields import read
from twotowers.experiment.given import read_lists
from twotowers.experiment.paper import AnyLog
from twotowers.experiment.ranked_lists import (
    Contexts,
    Merging,
    Places,
    assign_contexts,
    contexts_of,
    factors_of,
    vector_ids,
)
from twotowers.files.rankings import Rankings, read_rankings, write_rankings
from twotowers.fitting.pair_counts import factor_components
from twotowers.jobs.fit import fit_setting
from twotowers.jobs.measures import of_places, of_ties
from twotowers.jobs.transfer import gains, transfer
from twotowers.logs.counts import Counts
from twotowers.methods.alternation import fit
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.position_based import PositionBased

POSITIONS, FEW, MANY = 3, 1000, 100_000
REPAIRS = {
    "none": {}, "near": {"merge": "nearest"}, "padded": {"merge": "nearest", "empty": True},
}  # fmt: skip
CONTEXTS = {"types": 300, "features": 10, "deviation": 0.35, "position_weight": 10, "seed": 0}
LOG = {
    "from": "lists", "dataset": "web", "repairs": REPAIRS, "user": "position_based",
    "policy": {"ranker": "expert", "seed": 1}, "contexts": CONTEXTS, "views": [FEW, MANY],
    "positions": POSITIONS,
}  # fmt: skip
LANES = [{"repair": repair, "views": views} for repair in REPAIRS for views in (FEW, MANY)]
LABELS = np.array([4.0, 0.0, 2.0, 1.0, 3.0, 0.0])
KINDS = 500


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict:
    """400 queries of two to five documents of KINDS kinds, sorted at random."""
    folder, rng = tmp_path_factory.mktemp("ranked"), np.random.default_rng(0)
    paths, scored = {}, []
    for split in ("train", "test"):
        lengths = rng.integers(2, 6, 400)
        query = np.repeat(np.arange(400), lengths)
        kind = rng.integers(KINDS, size=len(query))
        label = LABELS[kind % 6].astype(np.float32)
        document = np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])
        features = np.stack([label, kind], axis=1).astype(np.float32)
        paths[split] = folder / f"{split}.parquet"
        write_rankings(Rankings(query, document, label, features), paths[split])
        scored.append(
            pa.table(
                {
                    "split": pa.repeat(split, len(query)),
                    "query": query,
                    "document": document,
                    "relevance": label,
                    "score": rng.random(len(query), np.float32),
                    "rank": np.ones(len(query), np.int32),
                }
            )
        )
    paths["policy"] = folder / "policy.parquet"
    pq.write_table(pa.concat_tables(scored), paths["policy"])
    paths["clicks"] = folder / "clicks.parquet"
    read(AnyLog, LOG).simulate(paths, paths["clicks"], seed=5)
    return paths


@pytest.fixture(scope="module")
def log(files):
    return pq.read_table(files["clicks"]).to_pandas()


def lane(log, repair, views=MANY):
    return log[(log["repair"] == repair) & (log["views"] == views)]


def simulated(files, seed=5, **changes):
    """The rows of the first lane."""
    log = read(AnyLog, LOG | changes, context={"paper": "chen2024"})
    return next(log.draw(files, seed=seed)).to_pandas()


def components(rows) -> int:
    factors = rows["factor"].max() + 1
    return factor_components(rows["document"], rows["factor"], factors=factors).max() + 1


def off(rows, chance) -> np.ndarray:
    """How many standard deviations the click rates are off, where clicks are uncertain."""
    sd = np.sqrt(chance * (1 - chance) / rows["impressions"])
    return ((rows["clicks"] / rows["impressions"] - chance) / sd)[(chance > 0) & (chance < 1)]


def test_users_see_the_first_documents_as_the_ranker_sorts_them(files, log):
    lists, rows = read_rankings(files["train"]), lane(log, "none")
    score = pq.read_table(files["policy"]).to_pandas().query("split == 'train'")["score"].to_numpy()
    for query in range(400):
        own = np.flatnonzero(lists.query == query)
        shown = own[np.argsort(-score[own])][:POSITIONS]
        found = rows[rows["query"] == query]
        assert found["position"].tolist() == [*range(1, len(shown) + 1)]
        assert found["relevance"].tolist() == lists.label[shown].tolist()
    # A document is its kind, on whatever list.
    assert rows.groupby("document")["relevance"].nunique().max() == 1
    assert 300 < rows["document"].nunique() < KINDS


@pytest.mark.parametrize("views", [FEW, MANY])
def test_clicks_follow_relevance_and_position(log, views):
    rows = lane(log, "none", views)
    chance = PositionBased().chance(rows["relevance"].to_numpy(float), POSITIONS)
    found = off(rows, chance[np.arange(len(rows)), rows["position"] - 1])
    assert (rows["impressions"] == views).all()
    assert found.abs().max() < 4.5
    assert 0.9 < found.std() < 1.1
    # More views are other draws.
    other = lane(log, "none", FEW if views == MANY else MANY).set_index(rows.index)
    again = off(other, chance[np.arange(len(rows)), rows["position"] - 1])
    assert abs(np.corrcoef(found, again)[0, 1]) < 0.15


def test_clicks_follow_the_context(files):
    """Rows are those of the displayed lists, whose places are drawn again here."""
    rows = simulated(files, user="contextual")
    vectors, places, _ = contexts_of(Contexts(**CONTEXTS), displayed_lengths(rows), POSITIONS)
    user = Contextual()
    examined = user.examined_in(vectors, POSITIONS)[np.divmod(places.shown, POSITIONS)]
    assert off(rows, user.attractive(rows["relevance"]) * examined).abs().max() < 4.5
    # Contexts matter: without them the rates are far off.
    blind = user.attractive(rows["relevance"]) * user.examined(POSITIONS)[rows["position"] - 1]
    assert off(rows, blind).abs().mean() > 2


def displayed_lengths(rows) -> np.ndarray:
    return rows.groupby("query").size().to_numpy()


def test_a_seed_draws_clicks_and_the_log_says_who_got_which_context(files):
    first, again, other = (simulated(files, seed) for seed in (5, 5, 6))
    assert first.equals(again)
    assert first.drop(columns="clicks").equals(other.drop(columns="clicks"))
    assert (first["clicks"] != other["clicks"]).mean() > 0.5
    elsewhere = simulated(files, contexts=CONTEXTS | {"seed": 1})
    assert (first["factor"] != elsewhere["factor"]).mean() > 0.5


def test_merging_connects_the_nearest_on_the_same_clicks(log):
    rows = lane(log, "none")
    assert components(rows) > 5
    found = {}
    for repair in ("near", "padded"):
        same = lane(log, repair)
        assert same["clicks"].tolist() == rows["clicks"].tolist()
        # Without the empty places, which connect some factors, this graph falls apart again.
        assert (components(same) == 1) == (repair == "near")
        found[repair] = same["factor"].nunique()
        # Positions weigh so much that only factors of one position are merged.
        assert same.groupby("factor")["position"].nunique().max() == 1
    # Empty places join factors, which spares merges.
    assert found["near"] < found["padded"] < rows["factor"].nunique()


def test_what_is_near_depends_on_the_weight_of_positions(files):
    log = read(AnyLog, LOG | {"contexts": CONTEXTS | {"position_weight": 0}})
    near = list(log.draw(files, seed=5))[2].to_pandas()
    assert near["repair"].unique() == ["near"]
    assert near.groupby("factor")["position"].nunique().max() > 1


def test_empty_places_spare_a_merge():
    # Two lists of one document each at position 1, in contexts 0 and 1; position 2 is empty.
    places, document = Places(np.array([0, 2]), np.array([1, 3])), np.array([0, 1])
    described = np.arange(4.0)[:, None]
    repairs = [Merging(**REPAIRS[name]) for name in ("near", "padded")]
    near, padded = (factors_of(repair, document, places, described) for repair in repairs)
    assert near.tolist() == [0, 0]
    # The empty places join 1 and 3, so that of factors 0, 2 and {1, 3} the nearest are 0 and 1.
    assert len(np.unique(padded)) == 1
    apart = Places(np.array([0, 3]), np.array([3, 0]))
    found = [factors_of(repair, document, apart, described).tolist() for repair in repairs]
    assert found == [[0, 0], [0, 1]]


def test_short_lists_have_places_without_a_document(files, log):
    splits, rows = read_lists(files["clicks"], LANES), lane(log, "none")
    train, test = splits["train"], splits["test"]
    assert train.where.sum() == len(rows)
    assert (~train.where).any()
    np.testing.assert_array_equal(train.where, test.where)
    assert train.inputs[train.where].tolist() == rows["document"].tolist()
    assert train.factors[0][train.where].tolist() == rows["factor"].tolist()
    assert not train.counts.impressions[:, ~train.where].any()


SETTING = {
    "model": {"kind": "position_based", "tower": "embedding"},
    "method": {"kind": "alternation", "start": "ones", "steps": 3000},
    "measure": ["places", "ties"], "transfer": {"trees": 60, "leaves": 7}, "log": LOG,
}  # fmt: skip


def test_a_fit_finds_relevance_and_ranks_test_queries(files):
    found = fit_setting(files, setting_of(SETTING), seed=1)
    assert "position_bias" not in set(found["metric"])
    assert "components" not in found
    of_lane = found[found["views"] == MANY].set_index(["repair", "metric"])["value"]
    near, none = of_lane["near"], of_lane["none"]
    assert near["mcc"] > 0.99 > none["mcc"]
    assert near["bias_factors"] < none["bias_factors"] <= 300 * POSITIONS
    test = read_rankings(files["test"])
    assert near["test_ndcg@5"] == pytest.approx(gains(test.label, test)["ndcg@5"], abs=0.01)


def test_trees_learn_from_click_rates_over_examination(files):
    train = read_lists(files["clicks"], LANES[:2])["train"]
    # The second log's users click on what the first log's users do not.
    rates = train.counts.clicks[1] / np.maximum(train.counts.impressions[1], 1)
    clicks = np.stack([rates * 1000, (1 - rates) * 1000]) * train.where
    shown = np.stack([1000 * train.where] * 2)
    train = replace(train, counts=replace(train.counts, clicks=clicks, impressions=shown))
    task = SimpleNamespace(splits={"train": train}, positions=POSITIONS)
    measure = transfer(files, task, {"trees": 60, "leaves": 7})
    test = read_rankings(files["test"])
    examined = np.broadcast_to(1 / np.arange(1, POSITIONS + 1), train.where.shape)

    def measured(examined, log=0):
        rows = measure(Fitted(scores=None, examined=examined), task, log)
        return {row["metric"]: row["value"] for row in rows}["test_ndcg@10"]

    best = gains(test.label, test)["ndcg@10"]
    assert measured(examined) == pytest.approx(best, abs=0.01)
    assert measured(examined, log=1) < best - 0.1
    # Documents that are believed to be seen more, the more relevant they are.
    chance = PositionBased().attractive(train.relevance)
    assert measured(np.where(train.where, examined * chance**2, 1)) < best - 0.1
    with pytest.raises(InputError, match=r"transfer: the method does not .*'alternation'"):
        list(measure(Fitted(scores=None), task, 0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"user": "additive"}, "user: Additive does not examine places"),
        (
            {"user": {"kind": "position_based", "highest": 2}},
            r"user: a document of label [34] is attractive with a chance of .*'highest'",
        ),
        (
            {"user": "contextual", "contexts": CONTEXTS | {"features": 2}},
            r"contexts.features: context vectors have 2 elements \(expected 10\)",
        ),
        ({"user": "contextual", "positions": 11}, r"positions: .*position 11 .*10 at most"),
    ],
)
def test_users_that_cannot_click(files, changes, message):
    with pytest.raises(InputError, match=message):
        simulated(files, **changes)


def of_lists(documents, relevance, where, scores) -> tuple[Fitted, Task]:
    documents, relevance = np.array(documents), np.array(relevance, float)
    position = np.broadcast_to(np.arange(documents.shape[1]), (1, *documents.shape))
    ones = np.ones_like(position)
    split = Split(
        documents, np.array(where, bool), relevance, Counts(2 * ones, ones, position, position)
    )
    users = [PositionBased(noise=0, highest=1)]
    task = task_of(split, documents.shape[1], seed=1, users=users, logs=[{}])
    return Fitted(scores=lambda inputs: np.array(scores)[inputs]), task


def test_of_equal_scores_the_later_document_may_come_first():
    where = [[True, True, True], [True, True, False]]
    equal = of_lists([[0, 1, 2], [0, 1, 2]], [[1, 0, 0], [1, 0, 9]], where, [1.0, 1, 1])
    found = {row["metric"]: row["value"] for row in of_ties(*equal, 0)}
    assert found["ndcg@5_later_first"] == pytest.approx((1 / np.log2(4) + 1 / np.log2(3)) / 2)
    apart = of_lists([[0, 1, 2], [0, 1, 2]], [[1, 0, 0], [1, 0, 9]], where, [3.0, 2, 1])
    assert next(of_ties(*apart, 0))["value"] == pytest.approx(1)


def test_places_count_as_often_as_they_are_shown_with_their_label_there():
    # Document 0 has label 1 on one list and 0 on the other.
    fitted, task = of_lists(
        [[0, 1], [0, 2]], [[1, 0], [0, 0.5]], [[True, True], [True, True]], [0.3, 0.1, 0.9]
    )
    (row,) = of_places(fitted, task, 0)
    gain = 2 ** np.array([1, 0, 0, 0.5]) - 1
    assert row["value"] == pytest.approx(np.corrcoef(gain, [0.3, 0.1, 0.3, 0.9])[0, 1])


def test_a_fit_starts_where_it_is_set():
    _, task = of_lists([[0, 1], [0, 1]], [[1, 0], [1, 0]], [[True, True]] * 2, [0, 0])
    split = task.splits["train"]
    factors = np.array([[[0, 1], [2, 1]]])
    task = replace(task, splits=dict.fromkeys(task.splits, replace(split, factors=factors)))
    # With equal click rates a step from 1 stays there.
    ones, random = (fit(task, start=start, steps=1)[0] for start in ("ones", "random"))
    np.testing.assert_allclose(ones.examined, 1, rtol=1e-6)
    assert np.abs(random.examined - 1).max() > 0.1
    assert ones.bias is None
    assert ones.values["bias_factors"] == 3


def test_gains_are_means_over_queries():
    lists = Rankings(
        query=np.array([1, 1, 1, 2, 2]),
        document=np.array([0, 1, 2, 0, 1]),
        label=np.array([1.0, 0, 0, 0, 1]),
        features=np.zeros((5, 1), np.float32),
    )
    found = gains(np.array([0.0, 1, 2, 1, 0]), lists)
    assert found["ndcg@5"] == pytest.approx((1 / np.log2(4) + 1 / np.log2(3)) / 2)


# Context types of places, against loops; and the users of Chen et al. (2024), Appendix C.2.

assigned = partial(assign_contexts, positions=TEN)


def test_rows_name_context_and_position():
    places = assigned(np.array([10, 3, 7]), 50, seed=0)
    assert (places.shown % TEN).tolist() == [*range(10), *range(3), *range(7)]
    assert (places.empty % TEN).tolist() == [*range(3, 10), *range(7, 10)]
    assert places.shown.min() >= 0
    assert places.shown.max() < 50 * TEN
    # Padding is one more vector. Among the others two documents have the same.
    vectors = np.array([*range(10), 0, *range(10, 19)])
    feature, factor = places.padded(vectors)
    assert feature.tolist() == [*vectors, *[19] * 10]
    assert factor.tolist() == [*places.shown, *places.empty]


def test_a_place_has_its_context_however_long_the_list_is():
    short, long = (assigned(np.array([n, 10]), 5000, seed=3).shown for n in (4, 10))
    assert short[:4].tolist() == long[:4].tolist()
    assert short[4:].tolist() == long[10:].tolist()


def test_contexts_are_uniform():
    counts = np.bincount(assigned(np.full(4000, 10), 8, seed=0).shown, minlength=80)
    # Binomial, 4000 draws of chance 1/8: five standard deviations.
    assert np.abs(counts - 500).max() < 5 * np.sqrt(4000 / 8 * 7 / 8)


def test_identical_vectors_share_an_id():
    features = np.array([[1, 2], [0, 3], [1, 2], [1, 3], [-0.0, 3]], np.float32)
    ids = vector_ids(features)
    equal = (features[:, None] == features).all(-1)
    np.testing.assert_array_equal(ids[:, None] == ids, equal)
    assert sorted(set(ids)) == [0, 1, 2]


def test_examination_follows_the_formula():
    vectors = np.random.default_rng(4).normal(0, 0.35, (30, 10))
    # The third context's exponent is cut at 0: everything is examined.
    vectors[2] = -10 * np.sign(WEIGHTS)
    chance = Contextual().examined_in(vectors, TEN).ravel()
    for context in range(30):
        exponent = max(sum(WEIGHTS * vectors[context]) + 1, 0)
        for position in range(10):
            expected = EXAMINATION[position] ** exponent
            assert chance[context * 10 + position] == pytest.approx(expected)
    assert (chance[20:30] == 1).all()
    np.testing.assert_allclose(Contextual().examined_in(np.zeros((1, 10)), 10)[0], EXAMINATION)


def test_merging_compares_contexts_and_ten_times_the_position():
    vectors, _, table = contexts_of(Contexts(**CONTEXTS), np.array([3]), TEN)
    assert vectors.shape == (300, 10)
    assert vectors.std() == pytest.approx(0.35, rel=0.05)
    assert table.shape == (3000, 11)
    for factor, row in enumerate(table):
        np.testing.assert_array_equal(row[:10], vectors[factor // 10])
        assert row[10] == 10 * (factor % 10)


def test_relevance_by_label():
    found = Contextual().attractive(np.array([4.0, 0, 2, 3, 1]))
    np.testing.assert_allclose(found, [1, 0.1, 0.28, 0.52, 0.16])
