"""Logs of lists as a ranker sorts them, in context types: clicks, repairs, fits and transfer."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, read_rankings, write_rankings
from twotowers.identifiability.contexts import Places
from twotowers.identifiability.graph import factor_components
from twotowers.logs.counts import Rows
from twotowers.methods.alternation import fit
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.position_based import PositionBased
from twotowers.running.fit import fit_setting
from twotowers.running.list_files import read_lists, write_lists
from twotowers.running.measures import of_places, of_ties
from twotowers.running.ranked_lists import factors_of, simulate_ranked
from twotowers.running.transfer import gains, read_transfer

POSITIONS, VIEWS = 3, 100_000.0
REPAIRS = {
    "none": {}, "near": {"merge": "nearest"}, "padded": {"merge": "nearest", "empty": True},
}  # fmt: skip
LOG = {
    "from": "lists", "dataset": "web", "repairs": REPAIRS, "user": {"kind": "position_based"},
    "contexts": {"types": 4, "features": 2, "deviation": 1, "position_weight": 10, "seed": 0},
    "lanes": {"repair": list(REPAIRS), "views": [VIEWS]},
}  # fmt: skip
LANES = [{"repair": repair, "views": VIEWS} for repair in REPAIRS]
LABELS = np.array([4.0, 0.0, 2.0, 1.0, 3.0, 0.0])


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict:
    """400 queries of two to five documents of six kinds. The ranker likes its own number best."""
    folder, rng = tmp_path_factory.mktemp("ranked"), np.random.default_rng(0)
    paths, scored = {}, []
    for split in ("train", "test"):
        lengths = rng.integers(2, 6, 400)
        query = np.repeat(np.arange(400), lengths)
        kind = rng.integers(6, size=len(query))
        document = np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])
        features = np.eye(6, dtype=np.float32)[kind]
        rankings = Rankings(query, document, LABELS[kind].astype(np.float32), features)
        paths[split] = folder / f"{split}.parquet"
        write_rankings(rankings, paths[split])
        scored.append(
            pa.table(
                {
                    "split": pa.repeat(split, len(query)), "query": query, "document": document,
                    "relevance": pa.array(LABELS[kind], pa.float32()),
                    "score": pa.array(rng.random(len(query)), pa.float32()),
                    "rank": pa.array(np.ones(len(query)), pa.int32()),
                }
            )
        )  # fmt: skip
    paths["policy"] = folder / "policy.parquet"
    pq.write_table(pa.concat_tables(scored), paths["policy"])
    paths["clicks"] = folder / "clicks.parquet"
    lanes = simulate_ranked(LOG, paths, positions=POSITIONS, seed=5)
    write_lists(paths["clicks"], lanes)
    return paths


@pytest.fixture(scope="module")
def log(files):
    return pq.read_table(files["clicks"]).to_pandas()


def lane(log, repair):
    return log[log["repair"] == repair]


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
    assert rows["document"].nunique() == 6


def test_clicks_follow_relevance_and_position(log):
    rows = lane(log, "none")
    chance = PositionBased().chance(rows["relevance"].to_numpy(float), POSITIONS)
    chance = chance[np.arange(len(rows)), rows["position"] - 1]
    off = (rows["clicks"] / VIEWS - chance) / np.sqrt(chance * (1 - chance) / VIEWS + 1e-12)
    assert np.abs(off).max() < 4.5
    assert 0.9 < off[chance < 1].std() < 1.1


def test_a_context_is_felt(files):
    """Users of Chen et al. examine otherwise in each context; clicks tell them apart."""
    user = {"user": {"kind": "contextual"}, "contexts": {**LOG["contexts"], "features": 10}}
    given = {"positions": POSITIONS, "seed": 5, "paper": "chen2024"}
    rows = next(simulate_ranked(LOG | user, files, **given)).to_pandas()
    rate = (rows["clicks"] / rows["impressions"]).groupby([rows["document"], rows["factor"]]).mean()
    assert rate.unstack().std(axis=1).min() > 0.01


def test_merging_connects_and_shares_the_clicks(log):
    rows = lane(log, "none")
    assert rows["factor"].nunique() == 4 * POSITIONS
    for repair in ("near", "padded"):
        same = lane(log, repair)
        assert same["clicks"].tolist() == rows["clicks"].tolist()
        number = same["factor"].nunique()
        assert factor_components(same["document"], same["factor"], factors=number).max() == 0


def test_empty_places_spare_a_merge():
    # Two lists of one document each at position 1, in contexts 0 and 1; position 2 is empty.
    places, document = Places(np.array([0, 2]), np.array([1, 3])), np.array([0, 1])
    described = np.arange(4.0)[:, None]
    near, padded = (
        factors_of(REPAIRS[name], document, places, described) for name in ("near", "padded")
    )
    assert near.tolist() == [0, 0]
    # The empty places join 1 and 3, so that of factors 0, 2 and {1, 3} the nearest are 0 and 1.
    assert len(np.unique(padded)) == 1
    apart = Places(np.array([0, 3]), np.array([3, 0]))
    assert factors_of(REPAIRS["near"], document, apart, described).tolist() == [0, 0]
    assert factors_of(REPAIRS["padded"], document, apart, described).tolist() == [0, 1]


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
    "model": {"kind": "position_based", "tower": "embedding", "features": 1.0},
    "method": {"kind": "alternation", "start": "ones", "steps": 3000},
    "lanes": {"log": LOG["lanes"], "method": {}}, "training": {},
    "measure": ["places", "ties"], "transfer": {"trees": 60, "leaves": 7}, "log": LOG,
}  # fmt: skip


def test_a_fit_finds_relevance_and_carries_it_over(files):
    found = fit_setting(files, SETTING, positions=POSITIONS, seed=1)
    assert "position_bias" not in set(found["metric"])
    values = found[found["repair"] == "none"].set_index("metric")["value"]
    assert values["mcc"] > 0.999
    test = read_rankings(files["test"])
    assert values["test_ndcg@5"] == pytest.approx(gains(test.label, test)["ndcg@5"])
    assert values["bias_factors"] == 4 * POSITIONS
    assert "components" not in found


def test_trees_rank_by_click_rates_over_examination(files):
    """Where examination is taken for 1, trees learn what position does to clicks."""
    splits = read_lists(files["clicks"], LANES)
    transfer = read_transfer(files, splits["train"], {"trees": 60, "leaves": 7}, POSITIONS)
    shown = splits["train"].where
    position = np.broadcast_to(np.arange(POSITIONS), shown.shape)
    examined = 1 / (1 + position)

    def measured(examined):
        rows = transfer.measure(Fitted(scores=None, examined=examined), 0)
        return {row["metric"]: row["value"] for row in rows}

    best = gains(transfer.test.label, transfer.test)["ndcg@10"]
    assert measured(examined)["test_ndcg@10"] == pytest.approx(best)
    # Documents of label 4 are believed to be the worst, those of label 0 the best.
    chance = PositionBased().attractive(splits["train"].relevance)
    assert measured(np.where(shown, chance**2, 1))["test_ndcg@10"] < 0.8
    with pytest.raises(InputError, match=r"transfer: the method does not .*'alternation'"):
        list(transfer.measure(Fitted(scores=None), 0))


def test_users_must_examine_places(files):
    wrong = LOG | {"user": {"kind": "additive"}}
    with pytest.raises(InputError, match="user: Additive does not examine places"):
        next(simulate_ranked(wrong, files, positions=POSITIONS, seed=5))


def of_lists(documents, relevance, where, scores) -> tuple[Fitted, Task]:
    documents, relevance = np.array(documents), np.array(relevance, float)
    position = np.broadcast_to(np.arange(documents.shape[1]), (1, *documents.shape))
    ones = np.ones_like(position)
    split = Split(
        documents, np.array(where, bool), relevance, Rows(position, position, 2 * ones, ones)
    )
    task = Task(
        model=PositionBased(), tower="embedding", lanes=[(0, {})], training={}, seed=1,
        splits=dict.fromkeys(("train", "validation", "test"), split),
        positions=documents.shape[1], users=[PositionBased(noise=0, highest=1)], logs=[{}],
    )  # fmt: skip
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


def test_a_fit_starts_where_it_is_told():
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
        query=np.array([1, 1, 1, 2, 2]), document=np.array([0, 1, 2, 0, 1]),
        label=np.array([1.0, 0, 0, 0, 1]), features=np.zeros((5, 1), np.float32),
    )  # fmt: skip
    found = gains(np.array([0.0, 1, 2, 1, 0]), lists)
    assert found["ndcg@5"] == pytest.approx((1 / np.log2(4) + 1 / np.log2(3)) / 2)
