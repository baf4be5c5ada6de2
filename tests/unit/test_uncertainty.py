"""How sure fits are, as a setting measures it."""

from functools import partial

import numpy as np
import pytest

from tests.tasks import task_of
from twotowers.errors import InputError
from twotowers.jobs.measures import of_uncertainty
from twotowers.logs.counts import Counts
from twotowers.methods import counting, em, likelihood
from twotowers.methods.task import Split, Task
from twotowers.models.additive import Additive
from twotowers.models.document_rate import DocumentRate
from twotowers.models.position_based import PositionBased
from twotowers.towers.hashed import HashedTower

QUERIES, DOCUMENTS, POSITIONS = 60, 6, 4
RNG = np.random.default_rng(0)
RELEVANCE = RNG.uniform(0, 3.9, (QUERIES, DOCUMENTS))
NUMBERS = np.arange(QUERIES * DOCUMENTS).reshape(QUERIES, DOCUMENTS)
SHOWN = RNG.integers(20, 120, (1, QUERIES, DOCUMENTS, POSITIONS))
TRAINING = {"learning_rate": 0.1, "batch": QUERIES, "steps": 100, "epochs": 30, "patience": 2,
            "min_delta": 1e-7, "weight_decay": 0}  # fmt: skip


def task(user, **changes) -> Task:
    clicks = np.random.default_rng(1).binomial(SHOWN, user.chance(RELEVANCE, POSITIONS))
    where = np.ones(NUMBERS.shape, bool)
    split = Split(NUMBERS, where, RELEVANCE, Counts(SHOWN, clicks))
    given = {"model": user, "training": TRAINING, "users": [user]}
    return task_of(split, POSITIONS, **given | changes)


def measured(given, method) -> dict:
    (found,) = method.fit(given)
    rows = list(of_uncertainty(found, given, 0))
    return {(row["metric"], row["part"]): row["value"] for row in rows}


@pytest.mark.parametrize("method", [em, likelihood], ids=["em", "gradient"])
def test_intervals_hold_the_truth_as_often_as_they_say(method):
    """Gradient descent that goes on to the end finds what EM finds, up to the scale."""
    found = measured(task(PositionBased(noise=0.2)), method)
    # On the scale of gradient descent the best document may be at 1.
    assert QUERIES * DOCUMENTS - 2 <= found["intervals", "attraction"] <= QUERIES * DOCUMENTS
    assert 0.91 < found["coverage", "attraction"] < 0.99
    sides = found["too_low", "attraction"] + found["too_high", "attraction"]
    assert found["coverage", "attraction"] == pytest.approx(1 - sides)
    # The first position fixes the scale.
    assert found["intervals", "examination"] == POSITIONS - 1
    assert found["coverage", "examination"] >= 2 / 3
    assert found["impressions", "attraction"] == np.median(SHOWN.sum(-1))


def test_a_rate_that_is_counted():
    class Flat(DocumentRate):
        def chance(self, relevance, positions):
            return np.broadcast_to(0.3, (*np.shape(relevance), positions))

        def truth(self, relevance, positions):
            return {"attraction": np.full(np.shape(relevance), np.log(3 / 7))}

    found = measured(task(Flat()), counting)
    trials = SHOWN.sum((0, -1))
    expected = np.sqrt(0.3 * 0.7 / np.median(trials))
    assert found["standard_error", "attraction"] == pytest.approx(expected, rel=0.03)
    assert 0.91 < found["coverage", "attraction"] < 0.99

    # Other probabilities would not be held.
    class Off(Flat):
        def truth(self, relevance, positions):
            return {"attraction": np.full(np.shape(relevance), 0.0)}

    off = task(Flat(), model=Off(), users=[Off()])
    assert measured(off, counting)["coverage", "attraction"] < 0.05


def test_a_log_without_a_truth_has_intervals_and_no_coverage():
    real = measured(task(PositionBased(), users=None), em)
    assert real["intervals", "attraction"] == QUERIES * DOCUMENTS
    assert ("coverage", "attraction") not in real
    other = task(PositionBased(), users=[Additive()])
    assert measured(other, em) == {}


def test_tables_that_pairs_share_and_models_without_scores_are_refused():
    shared = task(PositionBased(), tower=partial(HashedTower, ratio=4.0))
    with pytest.raises(InputError, match="no probability for every pair"):
        measured(shared, likelihood)
    with pytest.raises(InputError, match="Additive has neither"):
        measured(task(PositionBased(), model=Additive(), users=None), likelihood)
