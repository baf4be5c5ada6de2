"""The ranking SVM, against a general optimiser of the same problem."""

import numpy as np
import pytest
from scipy.optimize import minimize

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, rank
from twotowers.rankers.training import train_rank_svm, train_ranker
from twotowers.rankers.trees import some_queries


def lists(*labels, features=None, width=3) -> Rankings:
    """Queries 10, 20, ... with these labels and random or given features."""
    lengths = [len(query) for query in labels]
    rows = sum(lengths)
    if features is None:
        features = np.random.default_rng(3).normal(size=(rows, width))
    return Rankings(
        query=np.repeat(10 * np.arange(1, len(labels) + 1), lengths),
        document=np.concatenate([np.arange(n) for n in lengths]).astype(np.int32),
        label=np.array([label for query in labels for label in query], np.float32),
        features=np.asarray(features, np.float32),
    )


@pytest.mark.parametrize("cost", [0.5, 200.0])
def test_weights_minimise_the_documented_objective(cost):
    data = lists([0, 1, 2, 1], [3, 0], [1, 1, 1], [0, 2, 4, 0, 1])

    def objective(weights):
        loss = 0.0
        for start, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
            for i in range(start, stop):
                for j in range(start, stop):
                    if data.label[i] > data.label[j]:
                        margin = weights @ (data.features[i] - data.features[j]).astype(float)
                        loss += max(0, 1 - margin) ** 2
        return weights @ weights / 2 + cost / 4 * loss

    best = minimize(objective, np.zeros(3), options={"gtol": 1e-8})
    found = train_rank_svm(data, cost=cost)
    assert objective(found) <= best.fun * (1 + 1e-4)
    np.testing.assert_allclose(found, best.x, atol=0.01 * np.abs(best.x).max())


def test_one_pair_has_a_closed_form():
    # For two documents at distance 1, w minimises w^2 / 2 + cost (1 - w)^2.
    data = lists([0, 1], features=[[0], [1]])
    assert train_rank_svm(data, cost=3) == pytest.approx([2 * 3 / (1 + 2 * 3)], rel=1e-3)


def test_documents_of_different_queries_are_not_compared():
    # Across queries the feature has the opposite effect from that within each.
    data = lists([0, 1], [3, 4], features=[[10], [11], [0], [1]])
    assert train_rank_svm(data)[0] > 0


@pytest.mark.parametrize("labels", [([1, 1], [2]), ([3],)])
def test_nothing_to_learn_from(labels):
    with pytest.raises(InputError, match="no query has two documents of different labels"):
        train_rank_svm(lists(*labels))


def test_rank_sorts_within_queries_and_keeps_the_order_of_ties():
    data = lists([0, 0, 0], [0, 0], [0, 0, 0, 0])
    scores = np.array([1, 3, 2, 5, 5, 7, 8, 7, 8])
    everything = rank(data, scores)
    assert everything.query.tolist() == data.query.tolist()
    assert everything.document.tolist() == [1, 2, 0, 0, 1, 1, 3, 0, 2]
    cut = rank(data, scores, top=2)
    assert cut.document.tolist() == [1, 2, 0, 1, 1, 3]
    np.testing.assert_array_equal(cut.features, data.features[[1, 2, 3, 4, 6, 8]])


@pytest.mark.parametrize(("share", "number"), [(0.001, 1), (0.1, 3), (1, 35)])
def test_the_policys_ranker_is_the_svm_on_a_share_of_the_queries(share, number):
    data = lists(*[[0, 1, 2]] * 35)
    score = train_ranker("svm", data, data.label, {"share": share, "cost": 2.0}, seed=5)
    weights = train_rank_svm(data.take(some_queries(data, number, seed=5)), cost=2.0)
    np.testing.assert_array_equal(score(data, data.label), data.features @ weights)
