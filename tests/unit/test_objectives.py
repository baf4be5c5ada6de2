"""Losses against each other, rax, and a naive formula in double precision."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rax
from flax import nnx
from jax.test_util import check_grads
from scipy.special import expit

from tests.simulated_logs import cells_of, simulate_sessions
from twotowers.files.rankings import mask
from twotowers.logs.counts import Counts
from twotowers.logs.policies import ranking_order
from twotowers.losses.cells import LIMIT, product_losses, softplus
from twotowers.losses.likelihood import CountLoss, SessionLoss
from twotowers.methods.descent import count_loss
from twotowers.methods.task import Split
from twotowers.models.additive import Additive
from twotowers.rankers.training import LabelLoss
from twotowers.towers.two_towers import TwoTowers, two_towers

LENGTHS = np.array([3, 2, 4, 1])
POSITIONS, WIDTH = 4, 5
WHERE = mask(LENGTHS, POSITIONS)
RNG = np.random.default_rng(0)
FEATURES = (RNG.normal(size=(4, POSITIONS, WIDTH)) * WHERE[..., None]).astype(np.float32)
PROBABILITY = RNG.uniform(0.1, 0.9, (4, POSITIONS, POSITIONS))
ORDER = ranking_order(RNG.random(WHERE.shape), WHERE, tiebreak=RNG.random(WHERE.shape))


def make_log(temperature, seed):
    return simulate_sessions(
        ORDER,
        PROBABILITY,
        LENGTHS,
        sessions=160,
        temperature=temperature,
        rng=np.random.default_rng(seed),
    )


LOGS = [make_log(0, 1), make_log(0.5, 2), make_log(1, 3)]


def stack(parts, name):
    return np.stack([getattr(part, name) for part in parts])


def sessions_objective(inputs=FEATURES) -> SessionLoss:
    names = ("query", "documents", "clicks", "where")
    return SessionLoss(jnp.asarray(inputs), *(jnp.asarray(stack(LOGS, name)) for name in names))


CELLS = [cells_of(log, 4) for log in LOGS]
COUNTS = Counts(stack(CELLS, "impressions"), stack(CELLS, "clicks"))


def counts_objective(inputs=FEATURES) -> CountLoss:
    return count_loss(Split(inputs, WHERE, None, COUNTS))


def model_of(tower="linear", seed=1):
    width = WHERE.size if tower == "embedding" else WIDTH
    return two_towers(tower, width=width, positions=POSITIONS, seed=seed)


def inputs_of(tower):
    return np.arange(WHERE.size).reshape(WHERE.shape) if tower == "embedding" else FEATURES


@partial(jax.jit, static_argnums=0)
def _losses(graph, state, objective, lane):
    return objective.losses(nnx.merge(graph, state), jnp.arange(objective.units), lane)


@partial(jax.jit, static_argnums=0)
def _mean_and_gradient(graph, state, objective, lane):
    return jax.value_and_grad(lambda state: _losses(graph, state, objective, lane).mean())(state)


def losses(model, objective, lane):
    return np.asarray(_losses(*nnx.split(model), objective, lane))


def mean_and_gradient(model, objective, lane):
    return _mean_and_gradient(*nnx.split(model), objective, lane)


def assert_trees_close(left, right, **tolerance):
    left, right = jax.tree.leaves(left), jax.tree.leaves(right)
    assert len(left) == len(right) > 0
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


@pytest.mark.parametrize("tower", ["linear", "deep", "embedding"])
def test_counts_and_sessions_are_one_objective(tower):
    model, inputs = model_of(tower), inputs_of(tower)
    values = []
    for lane in range(len(LOGS)):
        value, gradient = mean_and_gradient(model, counts_objective(inputs), lane)
        replayed, expected = mean_and_gradient(model, sessions_objective(inputs), lane)
        np.testing.assert_allclose(value, replayed, rtol=1e-5)
        assert_trees_close(gradient, expected, rtol=1e-4, atol=1e-6)
        values.append(float(value))
    assert len(set(values)) == len(LOGS)  # lanes are different logs


def published_loss(model, log) -> float:
    """Mean over sessions of rax's loss, a mean over the documents of the page."""
    logits = np.take_along_axis(
        np.asarray(model.relevance(FEATURES))[log.query], log.documents, axis=1
    ) + np.asarray(model.position_bias)
    losses = [
        rax.pointwise_sigmoid_loss(
            logits[row], log.clicks[row].astype(np.float32), where=log.where[row]
        )
        for row in range(len(log.query))
    ]
    return np.mean(losses)


@pytest.mark.parametrize("lane", [0, 2])
def test_sessions_against_rax(lane):
    model = model_of()
    value = losses(model, sessions_objective(), lane).mean()
    np.testing.assert_allclose(value, published_loss(model, LOGS[lane]), rtol=1e-5)


def test_lanes_share_the_counts_of_their_log():
    small = Counts(COUNTS.impressions.astype(np.uint8), COUNTS.clicks.astype(np.uint8))
    lanes = [(log, name) for name in ("none", "ips") for log in (0, 1, 2, 1)]
    objective = count_loss(Split(FEATURES, WHERE, None, small), lanes)
    for each in (objective.counts.impressions, objective.counts.clicks):
        assert (each.shape, each.dtype) == (small.clicks.shape, np.uint8)


@pytest.mark.parametrize("weighting", ["ips", "queries", "impressions"])
def test_listed_cells_have_the_weights_of_dense_ones(weighting):
    _, document, position = np.indices(COUNTS.impressions[0].shape)
    rows = Counts(
        *(each.reshape(len(LOGS), 4, 16) for each in (COUNTS.impressions, COUNTS.clicks)),
        *(
            np.broadcast_to(each.reshape(1, 4, -1), (len(LOGS), 4, 16))
            for each in (document, position)
        ),
    )
    lanes = [(log, weighting) for log in (2, 0, 0)]
    listed, dense = (
        count_loss(Split(FEATURES, WHERE, None, each), lanes) for each in (rows, COUNTS)
    )
    for lane in range(len(lanes)):
        np.testing.assert_allclose(
            losses(model_of(), listed, lane), losses(model_of(), dense, lane), rtol=1e-5
        )


# Extreme logits: a model whose relevance is its inputs.


def as_is(inputs, key=None):
    return inputs


class Given:
    """Two towers whose logits are given."""

    model, relevance = Additive(), staticmethod(as_is)
    cell_losses, row_losses = TwoTowers.cell_losses, TwoTowers.row_losses

    def __init__(self, bias):
        self.examination = jnp.asarray(bias, jnp.float32)


EXTREME = np.array([-80, -30, -1, 0, 1e-3, 2, 30, 80.0])
BIAS = np.array([0, -3.5, 12, -60, 60])


def extreme_objective(relevance, *, clicked, positions) -> CountLoss:
    """Cells of 5 impressions of documents with this relevance."""
    shape = (1, 1, len(relevance), positions)
    return CountLoss(
        jnp.asarray(relevance, jnp.float32)[None],
        Counts(jnp.full(shape, 5), jnp.full(shape, clicked)),
        jnp.ones((1, 1)),
    )


@pytest.mark.parametrize("clicked", [0, 3, 5])
@pytest.mark.parametrize("bias", BIAS)
def test_extreme_logits_against_double_precision(clicked, bias):
    for relevance in EXTREME:
        objective = extreme_objective([relevance], clicked=clicked, positions=1)
        value = objective.losses(Given([bias]), jnp.arange(1), 0)[0]
        logit = relevance + bias
        expected = 5 * np.logaddexp(0, logit) - clicked * logit
        # n softplus(z) and c z cancel, so the error is a rounding error of either.
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6 * 5 * abs(logit))


@jax.jit
@partial(jax.grad, argnums=(0, 1))
def extreme_gradients(relevance, bias):
    base = extreme_objective(EXTREME, clicked=3, positions=len(BIAS))
    objective = CountLoss(relevance, base.counts, base.weight)
    return objective.losses(Given(bias), jnp.arange(1), 0).sum()


@pytest.mark.parametrize("scale", [1, 1e3, 1e30])
def test_gradient_is_the_residual_and_always_finite(scale):
    found = extreme_gradients(jnp.asarray(EXTREME * scale, jnp.float32)[None], jnp.asarray(BIAS))
    # Relevance beyond LIMIT counts as LIMIT.
    clipped = np.clip(EXTREME * scale, -LIMIT, LIMIT)
    residual = 5 * expit(clipped[:, None] + BIAS) - 3
    np.testing.assert_allclose(found[0][0], residual.sum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], residual.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shown", [1, 1_000, 10**6, 2**30])
@pytest.mark.parametrize("logit", [50.0, 77.0, 84.0, 90.0, 1e30])
def test_gradient_of_a_product_is_finite_where_a_click_is_sure(shown, logit):
    counts = jnp.array([[shown]]), jnp.array([[shown // 2]])
    found = jax.grad(lambda z: product_losses(z, z, *counts).sum())(jnp.array([logit]))
    # Both logits are alike, and so share in 1 - p: together they move its logarithm by 1.
    np.testing.assert_allclose(found, shown - shown // 2, rtol=1e-5)


def test_softplus_and_its_derivatives():
    z = jnp.asarray(EXTREME, jnp.float32)
    np.testing.assert_allclose(softplus(z), np.logaddexp(0, EXTREME), rtol=1e-5)
    sigmoid = expit(EXTREME)
    np.testing.assert_allclose(jax.vmap(jax.grad(softplus))(z), sigmoid, rtol=1e-5)
    second = jax.vmap(jax.grad(jax.grad(softplus)))(z)
    np.testing.assert_allclose(second, sigmoid * (1 - sigmoid), rtol=1e-4, atol=1e-7)
    check_grads(softplus, (jnp.linspace(-3.0, 3.0, 7),), order=2, rtol=1e-2, atol=1e-2)


# Padding.


def test_counts_ignore_padded_documents_and_positions():
    relevance = RNG.normal(size=(4, POSITIONS)).astype(np.float32)
    bias = RNG.normal(size=POSITIONS)
    plain = counts_objective(relevance)
    grow = ((0, 0), (0, 0), (0, 3), (0, 2))
    padded = CountLoss(
        jnp.asarray(np.pad(relevance, grow[1:3], constant_values=50)),
        Counts(*(jnp.asarray(np.pad(each, grow)) for each in (COUNTS.impressions, COUNTS.clicks))),
        plain.weight,
    )
    longer = np.pad(bias, grow[-1], constant_values=50)
    index = jnp.arange(4)
    for lane in range(len(LOGS)):
        np.testing.assert_allclose(
            padded.losses(Given(longer), index, lane),
            plain.losses(Given(bias), index, lane),
            rtol=1e-5,
        )


def test_sessions_ignore_what_stands_behind_the_list():
    log = LOGS[2]
    model = Given(np.arange(POSITIONS + 2))
    relevance = RNG.normal(size=WHERE.shape).astype(np.float32)

    def objective(extra, documents, clicks):
        def grow(values, fill):
            values = np.where(log.where, values, fill)
            return jnp.asarray(np.pad(values, ((0, 0), (0, extra)), constant_values=fill))[None]

        return SessionLoss(
            jnp.asarray(relevance),
            jnp.asarray(log.query)[None],
            grow(log.documents, documents),
            grow(log.clicks, clicks),
            jnp.asarray(np.pad(log.where, ((0, 0), (0, extra))))[None],
        )

    index = jnp.arange(len(log.query))
    run = jax.jit(lambda objective: objective.losses(model, index, 0))
    long = run(objective(2, 3, True))
    model.examination = model.examination[:POSITIONS]
    short = run(objective(0, 0, False))
    np.testing.assert_allclose(long, short, rtol=1e-6)


def test_label_loss_is_the_mean_squared_error_of_documents():
    labels = np.where(WHERE, RNG.uniform(0, 4, WHERE.shape), 0).astype(np.float32)
    model = model_of().relevance
    scores = np.asarray(model(FEATURES))
    expected = [
        np.mean((scores[query, :size] - labels[query, :size]) ** 2)
        for query, size in enumerate(LENGTHS)
    ]
    plain = LabelLoss(jnp.asarray(FEATURES), jnp.asarray(labels), jnp.asarray(WHERE))
    assert plain.units == 4
    np.testing.assert_allclose(plain.losses(model, jnp.arange(4), 0), expected, rtol=1e-5)
    order = jnp.array([2, 0])
    np.testing.assert_allclose(plain.losses(model, order, 0), np.array(expected)[[2, 0]], rtol=1e-5)
    junk = LabelLoss(
        jnp.asarray(np.pad(FEATURES, ((0, 0), (0, 2), (0, 0)), constant_values=9)),
        jnp.asarray(np.pad(labels, ((0, 0), (0, 2)), constant_values=-9)),
        jnp.asarray(np.pad(WHERE, ((0, 0), (0, 2)))),
    )
    np.testing.assert_allclose(junk.losses(model, jnp.arange(4), 0), expected, rtol=1e-5)
