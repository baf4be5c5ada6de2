"""Updates of used rows: against a dictionary of rows, and against steps on all rows."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.special import expit

from tests.training import short
from twotowers.errors import InputError
from twotowers.fitting.batches import draw_epochs
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.losses.likelihood import SessionLoss
from twotowers.models.document_rate import DocumentRate
from twotowers.models.dynamic_bayesian import DynamicBayesian
from twotowers.models.position_based import PositionBased
from twotowers.towers.baseline import BaselineTower
from twotowers.towers.deep import DeepTower
from twotowers.towers.embedding import EmbeddingTower
from twotowers.towers.hashed import HashedTower
from twotowers.towers.lane import Lane
from twotowers.towers.page_towers import PageTowers
from twotowers.towers.quotient_remainder import QuotientRemainderTower

PAIRS, POSITIONS, PAGES, SEED = 40, 3, 30, 5

SETTINGS = FitSettings(**short(0.05, batch=4, epochs=2, optimizer="adam", rows=True, steps=6))
VARIANCE = 0.5


def log(lanes=1, pages=PAGES):
    """Pages of few pairs, so that batches repeat some and miss others, and all pages miss some."""
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, PAIRS + 1)
    pairs = rng.choice(PAIRS, (pages, POSITIONS), p=weights / weights.sum())
    shape = lanes, pages, POSITIONS
    return SessionLoss(
        inputs=jnp.asarray(pairs, jnp.int32),
        query=jnp.asarray(rng.integers(pages, size=shape[:2])),
        documents=jnp.asarray(np.broadcast_to(np.arange(POSITIONS), shape)),
        clicks=jnp.asarray(rng.random(shape) < 0.4),
        where=jnp.ones(shape, bool),
    )


def model(tower=BaselineTower, kind=DocumentRate):
    build = tower if tower is EmbeddingTower else partial(tower, variance=VARIANCE)
    return PageTowers(kind(), build, PAIRS, POSITIONS, rngs=nnx.Rngs(0))


def tables(found, lane=0):
    """All parameters of a lane's towers, as one vector."""
    leaves = jax.tree.leaves(nnx.state(found.model(lane).towers, nnx.Param))
    return np.concatenate([np.ravel(leaf) for leaf in leaves])


def fitted(settings=SETTINGS, lanes=1, tower=BaselineTower, kind=DocumentRate, **more):
    """A fit that does not stop early: the loss is watched on the training pages."""
    objective = log(lanes)
    return fit(model(tower, kind), objective, objective, settings, lanes=lanes, seed=SEED, **more)


# A plain loop.


def adam(number, state, gradient, count, decay=0.0):
    """A step on one number: the new number, and its moments."""
    mean = 0.9 * state[0] + 0.1 * gradient
    square = 0.999 * state[1] + 0.001 * gradient**2
    direction = mean / (1 - 0.9**count) / (np.sqrt(square / (1 - 0.999**count)) + 1e-8)
    return number - SETTINGS.learning_rate * (direction + decay * number), (mean, square)


def by_dictionary(settings, *, wrong=None):
    """The baseline and [pairs] differences after the last epoch, by a loop over batches.

    `wrong` is a mistake: "last" takes the last use of a row for their sum, "decay" lets the moments
    of unused rows decay, "counts" counts the steps of each row.
    """
    objective, tower = log(), model().towers["attraction"]
    rows = dict(enumerate(np.asarray(tower.differences[...], float)))
    baseline, state = float(tower.baseline[...]), (0.0, 0.0)
    moments, counts = dict.fromkeys(rows, (0.0, 0.0)), dict.fromkeys(rows, 0)
    given = {"units": PAGES, "batch": settings.batch, "steps": settings.steps, "own": None}
    batches = draw_epochs(SEED, range(settings.epochs), **given)[0].reshape(-1, settings.batch)
    for count, batch in enumerate(batches, start=1):
        pairs = np.asarray(objective.inputs)[np.asarray(objective.query)[0, batch]].ravel()
        clicks = np.asarray(objective.clicks)[0, batch].ravel()
        slopes = (expit(baseline + np.array([rows[pair] for pair in pairs])) - clicks) / clicks.size
        gradients = {}
        for pair, slope in zip(pairs, slopes, strict=True):
            gradients[pair] = slope + (gradients.get(pair, 0) if wrong != "last" else 0)
        for row in rows:
            if row in gradients:
                counts[row] += 1
                steps = counts[row] if wrong == "counts" else count
                rows[row], moments[row] = adam(
                    rows[row], moments[row], gradients[row], steps, settings.weight_decay
                )
            elif wrong == "decay":
                moments[row] = 0.9 * moments[row][0], 0.999 * moments[row][1]
        baseline, state = adam(baseline, state, slopes.sum(), count, settings.weight_decay)
    return np.array([baseline, *rows.values()])


ADAMW = replace(SETTINGS, optimizer="adamw", weight_decay=0.3)


@pytest.mark.parametrize("settings", [SETTINGS, ADAMW], ids=["adam", "adamw"])
def test_used_rows_are_updated_as_in_a_dictionary(settings):
    found = fitted(settings)
    # The last epoch is the best, so the kept parameters are those of the last step.
    assert found.history[-1, 0] == found.loss[0]
    np.testing.assert_allclose(tables(found), by_dictionary(settings), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wrong", ["last", "decay", "counts"])
def test_the_comparison_notices_mistakes(wrong):
    off = np.abs(by_dictionary(SETTINGS, wrong=wrong) - by_dictionary(SETTINGS))
    assert off.max() > 1e-3


def test_rows_that_no_page_uses_stay_as_they_are():
    shown = np.asarray(log().inputs)[np.asarray(log().query)].ravel()
    used = np.isin(np.arange(PAIRS), shown)
    assert 0 < used.sum() < PAIRS
    start = np.asarray(model().towers["attraction"].differences[...])
    after = tables(fitted(replace(ADAMW, steps=None)))[1:]
    np.testing.assert_array_equal(after != start, used)


# Steps on all rows.


@pytest.mark.parametrize("name", ["adagrad", "adam", "sgd"])
def test_equal_to_all_rows_if_each_batch_uses_all(name):
    """Each page shows all pairs once."""
    rng = np.random.default_rng(1)
    pages = np.stack([rng.permutation(POSITIONS) for _ in range(PAGES)])
    objective = replace(log(), inputs=jnp.asarray(pages, jnp.int32))

    def after(rows):
        settings = replace(SETTINGS, rows=rows, optimizer=name, weight_decay=None)
        small = PageTowers(PositionBased(), BaselineTower, POSITIONS, POSITIONS, rngs=nnx.Rngs(0))
        return fit(small, objective, objective, settings, lanes=1, seed=SEED)

    used, every = after(True), after(False)
    np.testing.assert_allclose(tables(used), tables(every), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(used.history, every.history, rtol=1e-6)


@pytest.mark.parametrize(
    ("tower", "kind", "steps"),
    [
        (BaselineTower, DynamicBayesian, None),
        (partial(HashedTower, ratio=3.0), PositionBased, None),
        (partial(QuotientRemainderTower, ratio=3.0), DocumentRate, 6),
    ],
    ids=["two tables, own epochs", "hashed, own epochs", "quotient, batches"],
)
def test_equal_to_all_rows_if_a_step_needs_the_gradient_only(tower, kind, steps):
    """Plain gradient descent leaves rows without a gradient, whatever the batches."""
    settings = replace(SETTINGS, optimizer="sgd", learning_rate=1.0, steps=steps)
    used, every = (
        fitted(replace(settings, rows=rows), lanes=2, tower=tower, kind=kind)
        for rows in (True, False)
    )
    for lane in range(2):
        np.testing.assert_allclose(tables(used, lane), tables(every, lane), rtol=1e-5, atol=1e-6)


# Lanes.


def test_a_lane_is_as_if_alone():
    """Five lanes are more than a block."""
    rates = [0.02, 0.3, 0.1, 0.05, 0.01]
    together, objective = fitted(lanes=5, varied={"learning_rate": rates}), log(5)
    for lane in (0, 1, 4):
        own = replace(
            objective,
            query=objective.query[lane : lane + 1],
            clicks=objective.clicks[lane : lane + 1],
        )
        rate = {"learning_rate": rates[lane : lane + 1]}
        alone = fit(model(), own, own, SETTINGS, lanes=1, seed=SEED, varied=rate)
        np.testing.assert_allclose(tables(together, lane), tables(alone), rtol=1e-4, atol=1e-5)


def test_lanes_may_have_tables_of_different_size():
    ratios = (2.0, 10.0)
    tower = partial(HashedTower, ratio=Lane("tower_ratio", ratios))
    found = fitted(lanes=2, tower=tower, varied={"tower_ratio": ratios})
    start = np.asarray(model(tower).towers["attraction"].differences.values[...])
    moved = [np.flatnonzero(tables(found, lane)[1:] != start) for lane in range(2)]
    assert moved[0].max() >= 4 > moved[1].max()


def test_same_seed_same_bytes():
    one, same = (tables(fitted(lanes=2), 1).tobytes() for _ in range(2))
    assert one == same


# What is refused.


@pytest.mark.parametrize("tower", [EmbeddingTower, DeepTower])
def test_a_model_without_a_table_is_refused(tower):
    built = PageTowers(DocumentRate(), tower, PAIRS, POSITIONS, rngs=nnx.Rngs(0))
    with pytest.raises(InputError, match="no table of pairs"):
        fit(built, log(), log(), SETTINGS, lanes=1, seed=SEED)


def test_an_average_of_parameters_is_refused_before_a_job_starts():
    with pytest.raises(InputError, match="an average of parameters changes all rows"):
        replace(SETTINGS, averaged=True)
