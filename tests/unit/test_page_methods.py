"""Methods of losses of pages: the objective, and fits against closed forms and each other."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.special import expit, log_softmax

from tests.tasks import task_of
from tests.training import short
from tests.unit.test_listwise import centred
from twotowers.claims.metrics import logged_ndcg
from twotowers.fitting.gradient import FitSettings
from twotowers.fitting.gradient import fit as gradient_fit
from twotowers.logs.simulation import Sessions
from twotowers.losses.likelihood import SessionLoss
from twotowers.losses.pages import PairwiseDebiasing, Softmax, offset
from twotowers.methods import (
    backdoor,
    descent,
    dla,
    ips,
    lambdamart,
    lambdarank,
    pairwise_debiasing,
    regression_em,
)
from twotowers.methods import softmax as softmax_method
from twotowers.methods.descent import page_loss
from twotowers.methods.task import Split, Task
from twotowers.models.additive import Additive
from twotowers.models.position_based import PositionBased
from twotowers.towers.two_towers import two_towers

QUERIES, DOCUMENTS, POSITIONS, WIDTH = 12, 6, 5, 3
RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(QUERIES, DOCUMENTS, WIDTH)).astype(np.float32)
RELEVANCE = np.clip(FEATURES[..., 0] + 2, 0, 4)
NUMBERS = np.arange(QUERIES * DOCUMENTS, dtype=np.int32).reshape(QUERIES, DOCUMENTS)
USER = PositionBased(eta=1, noise=0.2)
TRAINING = short(0.05, batch=64, epochs=3, steps=20, optimizer="adam")
TO_OPTIMUM = TRAINING | {"epochs": 10, "patience": 10, "steps": 100, "batch": 720}
"""Steps of all 720 pages of `all_shown`."""


def draw(seed, sessions=600, gaps=0.15) -> Sessions:
    """Pages of five of a query's six documents, the better ones often first."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, QUERIES, sessions).astype(np.int32)
    noisy = RELEVANCE[query] + rng.normal(size=(sessions, DOCUMENTS))
    documents = np.argsort(-noisy, axis=1)[:, :POSITIONS]
    where = rng.random(documents.shape) >= gaps
    chance = USER.chance(RELEVANCE, POSITIONS)[query[:, None], documents, np.arange(POSITIONS)]
    clicks = (rng.random(where.shape) < chance) & where
    return Sessions(query, documents.astype(np.uint8), clicks, where)


def task(inputs=FEATURES, logs=1, sizes=(600, 200, 200), **changes) -> Task:
    splits = {}
    for number, (name, size) in enumerate(zip(("train", "validation", "test"), sizes, strict=True)):
        pages = [draw(10 * log + number, size) for log in range(logs)]
        where = np.ones((QUERIES, DOCUMENTS), bool)
        splits[name] = Split(inputs, where, RELEVANCE, None, sessions=pages)
    options = {
        "model": Additive(),
        "tower": "embedding" if inputs.ndim == 2 else "deep",
        "lanes": [(log, {}) for log in range(logs)],
        "training": TRAINING,
        "seed": 1,
        "users": [USER] * logs,
        "logs": [{"log": log} for log in range(logs)],
    }
    return task_of(splits, POSITIONS, **options | changes)


def as_is(inputs, key=None):
    return inputs[..., 0]


class Identity:
    """A model whose relevance is the first feature."""

    relevance = staticmethod(as_is)

    def __init__(self, ratios=None):
        self.ratios = ratios


def losses_of(objective, model, index, lane=0):
    """Compiled, which is faster than dispatching single operations."""
    return jax.jit(lambda objective: objective.losses(model, index, lane))(objective)


# The objective.


@pytest.mark.parametrize("logs", [1, 2])
def test_losses_are_those_of_the_pages(logs):
    given = task(logs=logs)
    weights = np.stack([np.linspace(1, 3, POSITIONS) + log for log in range(logs)])
    objective = page_loss(given, "train", Softmax(normalised="after"), weights)
    index = jnp.array([5, 17, 5])
    assert objective.units == 600
    assert objective.inputs.shape == (QUERIES * DOCUMENTS, WIDTH)
    losses = jax.jit(jax.vmap(lambda lane: objective.losses(Identity, index, lane)))(
        jnp.arange(logs)
    )
    for log in range(logs):
        pages = given.splits["train"].sessions[log]
        for place, unit in enumerate(np.asarray(index)):
            shown = pages.where[unit]
            documents = pages.documents[unit][shown]
            scores = FEATURES[pages.query[unit], documents, 0]
            target = (weights[log] * pages.clicks[unit])[shown]
            total = target.sum()
            target = target / total if total else np.full(len(scores), 1 / len(scores))
            expected = -(target * log_softmax(scores)).sum()
            np.testing.assert_allclose(losses[log, place], expected, rtol=1e-5)


def test_pages_without_documents_are_no_units():
    given = task()
    where = draw(0, gaps=0.6).where
    given.splits["train"] = replace(given.splits["train"], sessions=[draw(0, gaps=0.6)])
    objective = page_loss(given, "train", Softmax())
    assert not where.any(-1).all()
    np.testing.assert_array_equal(objective.has(0), where.any(-1))


def test_offsets_are_a_bias():
    """With the bias of two towers as offset, the loss is theirs on the same sessions."""
    given = task()
    towers = two_towers("deep", width=WIDTH, positions=POSITIONS, seed=2)
    pages = given.splits["train"].sessions[0]
    columns = (pages.query, pages.documents, pages.clicks, pages.where)
    theirs = SessionLoss(jnp.asarray(FEATURES), *(jnp.asarray(each)[None] for each in columns))
    ours = page_loss(given, "train", offset, np.asarray(towers.examination)[None])
    index = jnp.asarray(np.flatnonzero(pages.where.any(-1))[:50])
    np.testing.assert_allclose(
        losses_of(ours, towers, index), losses_of(theirs, towers, index), rtol=1e-5
    )


def test_published_penalty_has_one_scale():
    """It grows with the pages of a batch; an evaluation of fewer pages scales it up."""
    given = task(sizes=(64, 64, 64))
    towers = pairwise_debiasing.RatioTowers(None, POSITIONS, rngs=nnx.Rngs(0))
    model, published = Identity(towers.ratios), PairwiseDebiasing(form="published", batch=128)
    whole, half = (
        losses_of(page_loss(given, "train", published), model, index)
        for index in (jnp.tile(jnp.arange(64), 2), jnp.arange(64))
    )
    np.testing.assert_allclose(whole.mean(), half.mean(), rtol=1e-5)


# Fits.


def all_shown(each=60) -> Task:
    """Pages that show all documents of their query, so that optima have closed forms."""
    rng = np.random.default_rng(4)
    query = np.repeat(np.arange(QUERIES, dtype=np.int32), each)
    documents = np.argsort(rng.random((len(query), POSITIONS)), axis=1).astype(np.uint8)
    relevance = RELEVANCE[:, :POSITIONS]
    chance = USER.chance(relevance, POSITIONS)[query[:, None], documents, np.arange(POSITIONS)]
    pages = Sessions(query, documents, rng.random(chance.shape) < chance, chance >= 0)
    inputs = NUMBERS[:, :POSITIONS] - np.arange(QUERIES, dtype=np.int32)[:, None]
    split = Split(inputs, np.ones(inputs.shape, bool), relevance, None, sessions=[pages])
    return task(
        NUMBERS, splits=dict.fromkeys(("train", "validation", "test"), split), training=TO_OPTIMUM
    )


def clicks_of(split, weights) -> np.ndarray:
    """[queries, documents] weighted clicks."""
    pages, total = split.sessions[0], np.zeros(split.where.shape)
    np.add.at(total, (pages.query[:, None], pages.documents), pages.clicks * weights)
    return total


@pytest.mark.parametrize("propensities", ["none", "true"])
def test_softmax_scores_are_logarithms_of_weighted_clicks(propensities):
    given = all_shown()
    (found,) = softmax_method.fit(given, propensities=propensities)
    split = given.splits["train"]
    weights = np.arange(1.0, 6) if propensities == "true" else np.ones(POSITIONS)
    expected = centred(np.log(clicks_of(split, weights)))
    np.testing.assert_allclose(centred(found.scores(split.inputs)), expected, atol=2e-3)
    assert found.page_losses is None
    assert found.bias is None


@pytest.mark.parametrize("eta", [1, 2])
def test_clipped_ips_finds_weighted_click_rates(eta):
    given = replace(all_shown(), users=[PositionBased(eta=eta)])
    split, theta = given.splits["train"], given.users[0].examined(POSITIONS)
    assert ((1 / theta).max() > 10) == (eta == 2)
    (found,) = ips.fit(given)
    rates = clicks_of(split, np.minimum(1 / theta, 10)) / 60
    chance = expit(found.scores(split.inputs).astype(float))
    inside = rates < 0.95
    assert inside.mean() > 0.3
    np.testing.assert_allclose(chance[inside], rates[inside], atol=2e-3)
    # Clicks are predicted with propensities as they are, without the clip.
    np.testing.assert_allclose(found.bias, np.log(theta))
    pages = split.sessions[0]
    losses, same = found.page_losses(split)
    chance = theta * chance[pages.query[:, None], pages.documents]
    expected = -np.where(pages.clicks, np.log(chance), np.log1p(-chance))
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    assert losses is same


def test_regression_em_is_the_likelihood_with_another_watch():
    given = task(model=PositionBased(), training=TRAINING | {"patience": 100})
    (em,), (watching,) = (regression_em.fit(given, watched=name) for name in ("em", "likelihood"))
    lanes = [(0, "none")]
    towers = two_towers("deep", width=WIDTH, positions=POSITIONS, seed=1, model=PositionBased())
    objectives = [
        descent.session_loss(given.splits[name], lanes) for name in ("train", "validation")
    ]
    plainly = gradient_fit(
        towers, *objectives, FitSettings(**given.training), lanes=1, seed=1
    ).model(0)
    for found in (em, watching):
        theirs = plainly.relevance(jnp.asarray(FEATURES))
        np.testing.assert_allclose(found.scores(FEATURES), theirs, atol=2e-3)
    # The watched loss of EM is larger, by the entropy of the hidden events.
    assert (em.history > watching.history + 0.1).all()
    losses = em.page_losses(given.splits["test"])[0]
    assert np.isfinite(losses).all()
    assert (em.bias < 0).all()  # ln P(examined)


@pytest.mark.parametrize("normalised", ["not", "after"])
def test_dual_learning_finds_examination_unless_pages_are_normalised(normalised):
    """A page without clicks, or with two, then counts as much as one with a click. This makes
    positions look alike."""
    given = all_shown(each=400)
    (found,) = dla.fit(given, normalised=normalised)
    bias, truth = found.bias - found.bias[0], np.log(USER.examined(POSITIONS))
    if normalised == "not":
        np.testing.assert_allclose(bias, truth, atol=0.15)
    else:
        assert (bias[1:] > truth[1:] + 0.1).all()


@pytest.mark.parametrize("form", ["published", "paper", "corrected", None])
def test_pairwise_methods_rank(form):
    given = task(training=TRAINING | {"epochs": 6, "patience": 6})
    (found,) = pairwise_debiasing.fit(given, form=form) if form else lambdarank.fit(given)
    assert np.corrcoef(found.scores(FEATURES).ravel(), RELEVANCE.ravel())[0, 1] > 0.8
    assert np.isfinite(found.history).all()
    assert form is None or (found.bias[0], len(found.bias)) == (0, POSITIONS)


FOLLOWED = {"units": 8, "epochs": 100}


@pytest.fixture
def followed(monkeypatch):
    """Enough steps for the perceptron to follow positions."""
    monkeypatch.setattr(backdoor, "LAYERS", (16,))
    monkeypatch.setattr(backdoor, "DROPOUT", 0.0)
    monkeypatch.setattr(backdoor, "ADAGRAD", backdoor.ADAGRAD | {"learning_rate": 0.5, "batch": 64})


USERS = [USER, PositionBased(eta=0.5)]


def test_backdoor_bias_is_the_propensity_itself(followed):
    """The attention rank loss fits logits. So the published target gives e_k, and not ln e_k.
    Lanes have the propensities of their own log's user."""
    given = task(logs=2, users=USERS, lanes=[(1, {}), (0, {})])
    for found, user, log in zip(backdoor.fit(given, **FOLLOWED), USERS[::-1], (1, 0), strict=True):
        theta = user.examined(POSITIONS)
        np.testing.assert_allclose(found.bias - found.bias[0], theta - theta[0], atol=0.05)
        losses, _ = found.page_losses(given.splits["test"])
        assert losses[given.splits["test"].sessions[log].where].mean() < np.log(2)


def test_backdoor_of_logarithms_in_lanes(followed):
    """With ln e_k as bias, the weights of the dual algorithm are e_1 / e_k: list IPS with true
    propensities."""
    lanes = [(1, {"learning_rate": 0.04}), (0, {"learning_rate": 0.05})]
    training = TRAINING | {"epochs": 6, "patience": 6}
    given = task(logs=2, users=USERS, lanes=lanes, training=training)
    found = backdoor.fit(given, target="log", loss="dual", **FOLLOWED)
    for each, user in zip(found, USERS[::-1], strict=True):
        expected = np.log(user.examined(POSITIONS))
        np.testing.assert_allclose(each.bias - each.bias[0], expected, atol=0.05)
        assert each.page_losses is None
    ips, naive = (softmax_method.fit(given, propensities=name)[1] for name in ("true", "none"))
    near, far = (
        np.abs(centred(found[1].scores(FEATURES)) - centred(each.scores(FEATURES))).mean()
        for each in (ips, naive)
    )
    assert near < far / 2


def test_lambdamart_imitates_the_policy():
    given = task(sizes=(2000, 10, 500))
    (found,) = lambdamart.fit(given, trees=60, learning_rate=0.1)
    test = given.splits["test"]
    rows, where = test.rows(0), test.sessions[0].where
    scores = found.scores(FEATURES).ravel()[rows]
    random = np.random.default_rng(0).random(scores.shape)
    good, bad = (logged_ndcg(each, where=where).mean() for each in (scores, random))
    assert good > bad + 0.1
    lists, labels = lambdamart.lists_of(given.splits["train"], 0)
    pages = given.splits["train"].sessions[0]
    assert len(lists.query) == pages.where.sum()
    np.testing.assert_array_equal(labels, np.maximum(9 - np.nonzero(pages.where)[1], 0))
    first = np.flatnonzero(pages.where[0])
    np.testing.assert_array_equal(
        lists.features[: len(first)],
        given.splits["train"].table[given.splits["train"].rows(0)[0, first]],
    )
