"""EM, Newton's method and inverse propensities, from a task to estimates."""

import numpy as np
import pytest
from scipy.special import expit

from tests.tasks import task_of
from tests.training import short
from twotowers.errors import InputError
from twotowers.fitting.newton import fit_embedding, fit_linear
from twotowers.logs.counts import Counts
from twotowers.methods import em, ips, newton
from twotowers.methods.task import Split, Task
from twotowers.models.additive import Additive
from twotowers.models.position_based import PositionBased
from twotowers.towers.lane import Lane

QUERIES, DOCUMENTS, POSITIONS = 6, 5, 5
USER = PositionBased(eta=1, noise=0.1)
RELEVANCE = np.random.default_rng(0).uniform(0, 4, (QUERIES, DOCUMENTS))
SHOWN = np.full((1, QUERIES, DOCUMENTS, POSITIONS), 1000)
CLICKED = np.round(SHOWN * USER.chance(RELEVANCE, POSITIONS)).astype(int)
WHERE = np.ones((QUERIES, DOCUMENTS), bool)
NUMBERS = np.arange(QUERIES * DOCUMENTS).reshape(QUERIES, DOCUMENTS)


def listed(shown=SHOWN, clicked=CLICKED) -> Counts:
    """The dense counts as rows."""
    shape = (1, QUERIES, DOCUMENTS * POSITIONS)
    cells = np.indices((QUERIES, DOCUMENTS, POSITIONS)).reshape(3, *shape)
    return Counts(shown.reshape(shape), clicked.reshape(shape), cells[1], cells[2])


def task(counts=None, **changes) -> Task:
    split = Split(NUMBERS, WHERE, RELEVANCE, counts or Counts(SHOWN, CLICKED))
    return task_of(split, POSITIONS, **changes)


def test_plain_em_is_so_many_steps():
    shown, clicked = SHOWN[0], CLICKED[0]
    attraction, examination = np.full((QUERIES, DOCUMENTS, 1), 0.5), np.full(POSITIONS, 0.5)
    examination[0] = 1
    for _ in range(3):
        none = (shown - clicked) / (1 - attraction * examination)
        attractive = clicked + none * attraction * (1 - examination)
        examined = clicked + none * examination * (1 - attraction)
        attraction = attractive.sum(-1, keepdims=True) / shown.sum(-1, keepdims=True)
        examination = examined.sum((0, 1)) / shown.sum((0, 1))
    options = {"iterations": 3, "tolerance": 0}
    (plain,), (leaping,) = (
        em.fit(task(), **options, accelerate=accelerate) for accelerate in (False, True)
    )
    assert plain.values["iterations"] == 3
    np.testing.assert_allclose(expit(plain.scores(NUMBERS)), attraction[..., 0], rtol=1e-12)
    assert np.abs(expit(leaping.scores(NUMBERS)) - attraction[..., 0]).max() > 1e-3


@pytest.mark.parametrize("counts", [None, listed()], ids=["dense", "listed"])
def test_em_finds_the_user(counts):
    given = task(counts)
    (found,) = em.fit(given, iterations=5000, tolerance=1e-12)
    np.testing.assert_allclose(found.bias - found.bias[0], -np.log(np.arange(1, 6)), atol=0.01)
    attraction = USER.chance(RELEVANCE, 1)[..., 0]
    np.testing.assert_allclose(expit(found.scores(NUMBERS)), attraction, atol=0.01)
    test = given.splits["test"]
    losses = found.cell_losses(test)
    log = test.counts.of_log(0)
    assert losses.shape == log.impressions.shape
    chance = np.clip(log.clicks / log.impressions, 1e-12, 1 - 1e-12)
    clicks, others = log.clicks, log.impressions - log.clicks
    best = -(clicks * np.log(chance) + others * np.log1p(-chance)).sum()
    assert losses.sum() == pytest.approx(best, rel=1e-3)


def test_lanes_of_priors_pull_towards_a_half():
    lanes = [(0, {"prior": 1.0}), (0, {"prior": 1e6})]
    fits = em.fit(task(lanes=lanes), prior=Lane("prior", (1.0, 1e6)))
    plain, pulled = (expit(found.scores(NUMBERS)) for found in fits)
    assert np.abs(pulled - 0.5).max() < 0.01 < np.abs(plain - 0.5).max()


@pytest.mark.parametrize("counts", [None, listed()], ids=["dense", "listed"])
def test_positions_that_were_never_shown_have_no_bias(counts):
    given = task(counts, positions=POSITIONS + 2)
    (found,) = em.fit(given)
    (expected,) = em.fit(task(counts))
    np.testing.assert_array_equal(found.bias[:POSITIONS], expected.bias)
    assert np.isnan(found.bias[POSITIONS:]).all()
    test = given.splits["test"]
    np.testing.assert_array_equal(found.cell_losses(test), expected.cell_losses(test))


@pytest.mark.parametrize("rows", [False, True], ids=["dense", "listed"])
def test_scores_of_newton_where_the_optimum_is_not_finite(rows):
    shown, clicked = SHOWN.copy(), CLICKED.copy()
    shown[0, 0, 0] = clicked[0, 0, 0] = 0
    clicked[0, 1, 1], clicked[0, 2, 2] = 0, shown[0, 2, 2]
    counts = listed(shown, clicked) if rows else Counts(shown, clicked)
    (found,) = newton.fit(task(counts, model=Additive()))
    scores = found.scores(NUMBERS)
    others = np.delete(scores.ravel(), [0, NUMBERS[1, 1], NUMBERS[2, 2]])
    assert scores[0, 0] == 0
    assert scores[1, 1] == others.min() - 1
    assert scores[2, 2] == others.max() + 1


def test_newton_reads_pairs_of_several_lists_or_the_features_of_places():
    pair = NUMBERS % (3 * DOCUMENTS)
    counts = Counts(SHOWN, CLICKED)
    (found,) = newton.fit(task_of(Split(pair, WHERE, RELEVANCE, counts), POSITIONS))
    shown, clicked = (each.reshape(2, -1, POSITIONS).sum(0) for each in (SHOWN[0], CLICKED[0]))
    np.testing.assert_allclose(found.bias, fit_embedding(shown, clicked).bias, atol=1e-9)
    features = np.random.default_rng(0).normal(size=(*NUMBERS.shape, 3))
    split = Split(features, WHERE, RELEVANCE, counts, pair=pair)
    (found,) = newton.fit(task_of(split, POSITIONS, tower="linear"))
    places = (each.reshape(-1, each.shape[-1]) for each in (features, SHOWN[0], CLICKED[0]))
    np.testing.assert_allclose(found.bias, fit_linear(*places).bias, atol=1e-9)


TRAINING = short(
    0.1, batch=QUERIES, epochs=15, weight_decay=0, steps=200, patience=3, min_delta=1e-7
)


@pytest.mark.parametrize("counts", [None, listed()], ids=["dense", "listed"])
def test_ips_finds_relevance_without_position_bias(counts):
    """If all positions are alike, clicks by propensity are impressions by relevance."""
    given = task(counts, training=TRAINING, users=[USER])
    (found,) = ips.fit(given, propensities="true")
    relevance = 1 / (1 + np.exp(-found.scores(NUMBERS).astype(float)))
    kept = USER.chance(RELEVANCE, 1)[..., 0] < 0.97
    np.testing.assert_allclose(relevance[kept], USER.chance(RELEVANCE, 1)[..., 0][kept], atol=0.02)
    np.testing.assert_allclose(found.bias, np.log(USER.examined(POSITIONS)))
    assert found.cell_losses is None


def test_an_additive_user_has_no_propensities():
    with pytest.raises(InputError, match="propensities: the examination probabilities"):
        ips.fit(task(training=TRAINING, users=[Additive()]))
