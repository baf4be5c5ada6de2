"""Dense towers, batch normalisation through lanes, dropout, and the reversal head, each against
plain formulas."""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.tree_util import register_dataclass
from scipy.special import log_expit

from tests.training import short
from twotowers.errors import InputError
from twotowers.fitting.gradient import FitSettings, draw_epoch, fit
from twotowers.logs.counts import Counts
from twotowers.losses.likelihood import CountLoss
from twotowers.towers.deep import DeepTower
from twotowers.towers.dense import MOMENTUM, DenseTower, Layer
from twotowers.towers.parts import drop
from twotowers.towers.reversal import Reversal
from twotowers.towers.two_towers import two_towers

RNG = np.random.default_rng(0)
UNITS, DOCUMENTS, WIDTH, POSITIONS = 6, 4, 3, 4
FEATURES = RNG.normal(size=(UNITS, DOCUMENTS, WIDTH)).astype(np.float32)
FEATURES[1, 2:] = 0  # padding
FEATURES[4, 3:] = 0
KEY = jax.random.key(5)


# Dense towers.


def arrays(tower):
    """Weights and intercepts of a dense tower's layers, in order."""
    layers = [*tower.layers, tower.last]
    return [(np.asarray(each.kernel[...]), np.asarray(each.bias[...])) for each in layers]


PLAIN = {
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("activation", PLAIN)
@pytest.mark.parametrize("normalise", ["none", "layer"])
def test_dense_tower_is_its_formula(activation, normalise):
    tower = DenseTower(
        WIDTH, layers=[5, Layer(7)], activation=activation, normalise=normalise, rngs=nnx.Rngs(1)
    )
    *hidden, (weights, intercept) = arrays(tower)
    x = FEATURES.astype(float)
    assert [kernel.shape for kernel, _ in hidden] == [(WIDTH, 5), (5, 7)]
    for kernel, shift in hidden:
        x = x @ kernel + shift
        if normalise == "layer":
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        x = PLAIN[activation](x)
    expected = (x @ weights + intercept)[..., 0]
    np.testing.assert_allclose(tower(FEATURES), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tower(FEATURES, KEY), expected, rtol=1e-4, atol=1e-5)


def test_two_layers_of_32_elu_units_are_the_deep_tower():
    dense = DenseTower(WIDTH, layers=[32, 32], rngs=nnx.Rngs(1))
    np.testing.assert_array_equal(dense(FEATURES), DeepTower(WIDTH, rngs=nnx.Rngs(1))(FEATURES))


def test_rates_of_layers_and_of_the_tower():
    """A tower is linear after its last hidden layer, so dropout there keeps the expectation."""
    tower = DenseTower(WIDTH, layers=[Layer(5, 0.0), 40], dropout=0.3, rngs=nnx.Rngs(2))
    features = FEATURES[(FEATURES != 0).any(-1)]
    draws = np.asarray(jax.vmap(partial(tower, features))(jax.random.split(KEY, 4000)))
    error = draws.std(0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(0) - tower(features)) < 5 * error).all()
    # The variance of a sum of kept units is rate / (1 - rate) times that of their squares.
    *hidden, (weights, _) = arrays(tower)
    x = features
    for kernel, shift in hidden:
        x = PLAIN["elu"](x @ kernel + shift)
    expected = np.square(x * weights[:, 0]).sum(-1) * 0.3 / 0.7
    np.testing.assert_allclose(draws.var(0), expected, rtol=0.15)


# Batch normalisation, through the fit.


@register_dataclass
@dataclass(frozen=True)
class Squares:
    """Squared error to labels, which differ between lanes. A unit is a list."""

    features: jax.Array
    labels: jax.Array

    @property
    def units(self):
        return len(self.features)

    def losses(self, model, index, lane, key=None):
        return jnp.square(model(self.features[index], key) - self.labels[lane, index]).mean(-1)


LABELS = RNG.normal(size=(2, UNITS, DOCUMENTS)).astype(np.float32)
TRAINING = FitSettings(**short(0.3, batch=3, epochs=3, optimizer="sgd", steps=4))


def plain_tower(params, features, statistics=None):
    """One hidden layer of tanh units with batch normalisation: logits, and the statistics used."""
    x = features.reshape(-1, WIDTH)
    real = x[(x != 0).any(1)] if statistics is None else None
    mean, variance = statistics or ((real @ params["W"]).mean(0), (real @ params["W"]).var(0))
    x = x @ params["W"]
    x = jnp.tanh(params["g"] * (x - mean) / jnp.sqrt(variance + 1e-5) + params["s"])
    return (x @ params["v"] + params["c"])[:, 0].reshape(features.shape[:-1]), (mean, variance)


def named(tower):
    layer, norm = tower.layers[0], tower.norms[0]
    assert layer.bias is None
    return {
        "W": layer.kernel[...], "g": norm.scale[...], "s": norm.bias[...],
        "v": tower.last.kernel[...], "c": tower.last.bias[...],
    }  # fmt: skip


def plain_fit(params, labels, judged, seed):
    """Gradient descent in a loop; per epoch the loss by running means, parameters, statistics."""
    running, kept = (jnp.zeros(5), jnp.ones(5)), []
    for epoch in range(TRAINING.epochs):
        order, _ = draw_epoch(seed, epoch, UNITS, TRAINING)
        for index in order:

            def loss(params, index=index):
                logits, used = plain_tower(params, FEATURES[index])
                return jnp.square(logits - labels[index]).mean(), used

            gradient, used = jax.grad(loss, has_aux=True)(params)
            params = jax.tree.map(lambda p, g: p - TRAINING.learning_rate * g, params, gradient)
            running = tuple(
                MOMENTUM * old + (1 - MOMENTUM) * new
                for old, new in zip(running, used, strict=True)
            )
        logits, _ = plain_tower(params, FEATURES, running)
        kept.append((float(jnp.square(logits - judged).mean()), params, running))
    return kept


def normalised(**options):
    return DenseTower(
        WIDTH, layers=[5], activation="tanh", normalise="batch", rngs=nnx.Rngs(3), **options
    )


def test_batch_normalisation_of_each_lane_is_that_of_a_plain_loop():
    # Validation data differ from training data, so that the best epoch is not the last.
    judged = np.stack([-LABELS[0], LABELS[1]])
    features = jnp.asarray(FEATURES)
    train, validation = (Squares(features, jnp.asarray(each)) for each in (LABELS, judged))
    result = fit(normalised(), train, validation, TRAINING, lanes=2, seed=12)
    best = []
    for lane in range(2):
        epochs = plain_fit(named(normalised()), LABELS[lane], judged[lane], seed=12)
        losses = [loss for loss, _, _ in epochs]
        np.testing.assert_allclose(result.history[:, lane], losses, rtol=1e-4)
        best.append(int(np.argmin(losses)))
        loss, params, (mean, variance) = epochs[best[lane]]
        tower = result.model(lane)
        np.testing.assert_allclose(result.loss[lane], loss, rtol=1e-4)
        for name, found in named(tower).items():
            np.testing.assert_allclose(found, params[name], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(tower.norms[0].mean[...], mean, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(tower.norms[0].var[...], variance, rtol=1e-3, atol=1e-5)
        expected, _ = plain_tower(params, FEATURES, (mean, variance))
        np.testing.assert_allclose(tower(FEATURES), expected, rtol=1e-3, atol=1e-4)
    # The check is strict enough: statistics of the best epoch are not those of the last.
    assert best[0] < TRAINING.epochs - 1
    means = [np.asarray(result.model(lane).norms[0].mean[...]) for lane in range(2)]
    assert np.abs(means[0] - means[1]).max() > 1e-2


def test_averaged_parameters_have_no_running_statistics():
    objective = Squares(jnp.asarray(FEATURES), jnp.asarray(LABELS))
    settings = FitSettings(**TRAINING.__dict__ | {"averaged": True})
    with pytest.raises(InputError, match="averaged: "):
        fit(normalised(), objective, objective, settings, lanes=2, seed=0)


# Two towers: dropout of examination, a tower of positions, and heads.

SHOWN = RNG.integers(0, 9, (1, UNITS, DOCUMENTS, POSITIONS))
CLICKED = RNG.binomial(SHOWN, 0.4)


def towers(tower="linear", **options):
    model = two_towers(tower, width=WIDTH, positions=POSITIONS, seed=2, **options)
    if isinstance(model.bias, nnx.Embed):
        model.bias.embedding[...] = jnp.array([[1.0], [0.5], [-0.5], [-1.5]])
    return model


def layouts(shown=SHOWN, clicked=CLICKED):
    """The same cells as tables, and as lists of rows."""
    lanes = len(shown)
    weight = jnp.ones((lanes, UNITS))
    document, position = np.indices((DOCUMENTS, POSITIONS)).reshape(2, -1)
    cells = DOCUMENTS * POSITIONS
    listed = (np.broadcast_to(each, (lanes, UNITS, cells)) for each in (document, position))
    tables = shown, clicked
    flat = (each.reshape(lanes, UNITS, cells) for each in tables)
    return {
        "tables": CountLoss(jnp.asarray(FEATURES), Counts(*map(jnp.asarray, tables)), weight),
        "rows": CountLoss(
            jnp.asarray(FEATURES), Counts(*map(jnp.asarray, (*flat, *listed))), weight
        ),
    }


def nll(attraction, examination, shown=SHOWN[0], clicked=CLICKED[0]):
    """Negative log-likelihood of the additive model's cells, in double precision."""
    logits = attraction[..., None] + examination
    return -(clicked * log_expit(logits) + (shown - clicked) * log_expit(-logits))


@pytest.mark.parametrize("layout", ["tables", "rows"])
def test_dropout_of_examination_is_drawn_per_unit_and_position(layout):
    objective, rate = layouts()[layout], 0.25
    model = towers(dropout=rate)
    attraction, examination = np.asarray(model.relevance(FEATURES), float), model.examination
    plain = nll(attraction, np.asarray(examination, float)).sum((-2, -1))
    np.testing.assert_allclose(objective.losses(model, jnp.arange(UNITS), 0), plain, rtol=1e-5)
    losses = partial(objective.losses, model, jnp.arange(UNITS), 0)
    draws = np.asarray(jax.jit(jax.vmap(losses))(jax.random.split(KEY, 3000)))
    # A position's logit is 0, or scaled up, for all documents of a unit: 2^4 possible losses.
    kept = np.indices((2,) * POSITIONS).reshape(POSITIONS, -1).T
    possible = np.stack(
        [nll(attraction, each * examination / (1 - rate)).sum((-2, -1)) for each in kept]
    )
    distance = np.abs(draws[:, None] - possible) / possible
    assert distance.min(1).max() < 1e-5
    chance = np.prod(np.where(kept, 1 - rate, rate), axis=1)
    np.testing.assert_allclose(draws.mean(0), chance @ possible, rtol=0.02)
    # Units do not share their draws.
    same = distance.argmin(1)
    assert (same[:, 0] != same[:, 1]).mean() > 0.5


def test_entries_are_dropped_independently_of_each_other_and_of_other_keys():
    shape, rate = (8, 500, 16), 0.3
    dropped = jax.vmap(lambda key: drop(jnp.ones(shape), rate, key))(jax.random.split(KEY, 40))
    masks = np.asarray(dropped) > 0
    # Over keys at each place, and over places of each key: shares as of independent draws.
    deviation = np.sqrt(rate * (1 - rate))
    for axis in (0, (1, 2, 3)):
        count = masks.size / masks.mean(axis).size
        z = (masks.mean(axis) - (1 - rate)) / (deviation / np.sqrt(count))
        assert (z**2).mean() == pytest.approx(1, abs=5 * np.sqrt(2 / z.size))
        assert abs(z).max() < 5.5
    flat = (masks.reshape(40, -1) - (1 - rate)) / deviation
    # Neighbours, and two keys at one place, are uncorrelated.
    for lag in (1, 16, 8000):
        assert abs((flat[:, lag:] * flat[:, :-lag]).mean()) * np.sqrt(flat[:, lag:].size) < 4
    between = flat @ flat.T / np.sqrt(flat.shape[1])
    assert abs(between[np.triu_indices(40, 1)]).max() < 4.5


@pytest.mark.parametrize("rate", [0.01, 0.25, 0.99])
def test_dropped_entries_keep_their_mean_and_rates_are_nested(rate):
    dropped = drop(jnp.ones(400_000), rate, KEY)
    assert float(dropped.mean()) == pytest.approx(1, abs=5 * np.sqrt(rate / (1 - rate) / 400_000))
    assert set(np.unique(dropped)) <= {0, np.float32(1 / (1 - rate))}
    lower = drop(jnp.ones(400_000), rate / 2, KEY)
    assert not ((lower == 0) & (dropped > 0)).any()


def test_a_tower_of_positions():
    build = partial(DenseTower, layers=[5], activation="tanh")
    model = towers(examination=build)
    (kernel, shift), (weights, intercept) = arrays(model.bias.tower)
    expected = (np.tanh(kernel + shift) @ weights + intercept)[:, 0]  # rows of one-hot positions
    np.testing.assert_allclose(model.examination, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.position_bias, expected, rtol=1e-5, atol=1e-6)
    losses = layouts()["rows"].losses(model, jnp.arange(UNITS), 0, KEY)
    attraction = np.asarray(model.relevance(FEATURES), float)
    np.testing.assert_allclose(losses, nll(attraction, expected).sum((-2, -1)), rtol=1e-5)


@pytest.mark.parametrize("layout", ["tables", "rows"])
def test_an_adversary_of_the_hidden_layer_leaves_the_last_layer_to_the_clicks(layout):
    """Every gradient against differences of plain formulas."""
    objective, scale = layouts()[layout], 0.7
    model = towers(
        examination=partial(DenseTower, layers=[3], activation="tanh"),
        heads=[partial(Reversal, reads="hidden", scale=scale)],
    )
    attraction = np.asarray(model.relevance(FEATURES), float)
    (first, shift), (last, constant) = arrays(model.bias.tower)
    layer = model.heads[0].layer
    at = {"first": first, "shift": shift, "last": last, "constant": constant}
    at |= {"w": layer.kernel[...], "b": layer.bias[...]}
    at = {name: np.asarray(each, float) for name, each in at.items()}
    assert at["w"].shape == (3, 1)

    def losses(at):
        """Likelihood of clicks, and the squared error of the guess of every impression."""
        hidden = np.tanh(at["first"] + at["shift"])  # rows of one-hot positions
        guess = (hidden @ at["w"] + at["b"])[:, 0]
        likelihood = nll(attraction, (hidden @ at["last"] + at["constant"])[:, 0]).sum()
        clicked, missed = CLICKED[0], SHOWN[0] - CLICKED[0]
        return np.array([likelihood, (clicked * (1 - guess) ** 2 + missed * guess**2).sum()])

    def total(model):
        return objective.losses(model, jnp.arange(UNITS), 0, KEY).sum()

    np.testing.assert_allclose(total(model), losses(at).sum(), rtol=1e-5)
    gradient = nnx.grad(total)(model)
    hidden, top = gradient["bias"]["tower"]["layers"][0], gradient["bias"]["tower"]["last"]
    head = gradient["heads"][0]["layer"]
    found = {"first": hidden.kernel, "shift": hidden.bias, "last": top.kernel}
    found |= {"constant": top.bias, "w": head.kernel, "b": head.bias}
    # How much the adversary's loss counts: below the reversal, beside it, and above it.
    share = {"first": -scale, "shift": -scale, "last": 0, "constant": 0, "w": 1, "b": 1}
    for name, own in share.items():
        for place in np.ndindex(at[name].shape):
            step = np.zeros(at[name].shape)
            step[place] = 1e-5
            ends = (losses({**at, name: at[name] + sign * step}) for sign in (1, -1))
            click, guess = np.subtract(*ends) / 2e-5
            expected = click + own * guess
            np.testing.assert_allclose(found[name][...][place], expected, rtol=2e-4, atol=1e-4)


def test_running_statistics_move_once_a_step_under_an_adversary():
    build = partial(DenseTower, layers=[3], normalise="batch")
    moved = []
    for heads in ([], [partial(Reversal, reads="hidden")]):
        model = towers(examination=build, heads=heads)
        layouts()["tables"].losses(model, jnp.arange(UNITS), 0, KEY)
        moved.append(np.asarray(model.bias.tower.norms[0].mean[...]))
    np.testing.assert_array_equal(*moved)
    assert np.abs(moved[0]).max() > 0


def test_an_adversary_of_a_hidden_layer_needs_one():
    with pytest.raises(InputError, match="reads: examination has no hidden layer"):
        towers(heads=[partial(Reversal, reads="hidden")])


@pytest.mark.parametrize("layout", ["tables", "rows"])
def test_an_adversary_that_guesses_what_documents_are(layout):
    """n (y - guess)^2 of a cell of n impressions; the labels of one lane are not another's."""
    relevance = RNG.random((2, UNITS, DOCUMENTS)).astype(np.float32)
    objective = replace(layouts()[layout], labels={"relevance": jnp.asarray(relevance)})
    model = towers(heads=[partial(Reversal, label="relevance")])
    head = model.heads[0]
    head.layer.kernel[...], head.layer.bias[...] = jnp.array([[0.4]]), jnp.array([0.2])
    examination = np.array([1.0, 0.5, -0.5, -1.5])
    attraction = np.asarray(model.relevance(FEATURES), float)
    guess = 0.4 * examination + 0.2
    for lane in range(2):
        error = SHOWN[0] * (relevance[lane][..., None] - guess) ** 2
        expected = (nll(attraction, examination) + error).sum((-2, -1))
        given = replace(objective, labels={"relevance": objective.labels["relevance"][lane:]})
        np.testing.assert_allclose(given.losses(model, jnp.arange(UNITS), 0, KEY), expected, 1e-5)
    # Early stopping and tests see the clicks alone.
    plain = nll(attraction, examination).sum((-2, -1))
    np.testing.assert_allclose(objective.losses(model, jnp.arange(UNITS), 0), plain, rtol=1e-5)


def test_an_adversarys_weight_starts_where_it_is_set():
    assert Reversal(weight=-2, rngs=nnx.Rngs(0)).layer.kernel[...].tolist() == [[-2]]
    drawn = Reversal(rngs=nnx.Rngs(0)).layer.kernel[...]
    assert drawn not in (-2, 0)
