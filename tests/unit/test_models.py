"""Every click model against brute force over its own click probability."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.special import expit

from twotowers.errors import InputError
from twotowers.experiment.components import components
from twotowers.logs.counts import Counts
from twotowers.losses.cells import cell_logits, cell_losses, click_losses
from twotowers.losses.likelihood import CountLoss
from twotowers.models.additive import Additive
from twotowers.models.position_based import PositionBased
from twotowers.models.protocol import CellModel
from twotowers.towers.two_towers import two_towers

MODELS = [
    model
    for model in (
        each.holds() for each in components("models").values() if issubclass(each.holds, CellModel)
    )
    # Those of two towers; test_page_models.py has the others.
    if "attraction" in model.parts
]
QUERIES, DOCUMENTS, POSITIONS, WIDTH = 3, 4, 4, 5
RNG = np.random.default_rng(3)
FEATURES = RNG.normal(size=(QUERIES, DOCUMENTS, WIDTH)).astype(np.float32)
SHOWN = RNG.integers(0, 20, (1, QUERIES, DOCUMENTS, POSITIONS))
CLICKED = RNG.binomial(SHOWN, 0.4)
WEIGHT = RNG.uniform(0.5, 2, QUERIES)


def parts_of(model, attraction, examination):
    """The logits of a model's parts, as [queries, documents, positions]."""
    both = {"attraction": attraction[..., None], "examination": examination}
    return {name: both[name] for name in model.parts}


def brute_force(model, attraction, examination) -> float:
    """The negative log-likelihood from the click probability alone, cell by cell."""
    chance = np.broadcast_to(
        model.click_probability(**parts_of(model, attraction, examination)), SHOWN.shape[1:]
    )
    total = 0.0
    for query, document, position in product(range(QUERIES), range(DOCUMENTS), range(POSITIONS)):
        p, cell = chance[query, document, position], (0, query, document, position)
        n, c = SHOWN[cell], CLICKED[cell]
        total -= WEIGHT[query] * (c * np.log(p) + (n - c) * np.log1p(-p))
    return total / QUERIES


def objective_of(*columns, weight=WEIGHT[None]):
    return CountLoss(jnp.asarray(FEATURES), Counts(*map(jnp.asarray, columns)), jnp.asarray(weight))


def count_objective():
    return objective_of(SHOWN, CLICKED)


def row_objective():
    """The same cells, listed, in another order, with empty rows behind."""
    cells = np.stack(np.meshgrid(range(DOCUMENTS), range(POSITIONS), indexing="ij"), -1)
    order = RNG.permutation(DOCUMENTS * POSITIONS)
    document, position = cells.reshape(-1, 2)[order].T
    empty = np.zeros(3, int)
    document, position = (np.concatenate([index, empty]) for index in (document, position))
    shown, clicked = (
        np.concatenate(
            [counts[:, :, *cells.reshape(-1, 2)[order].T], np.zeros((1, QUERIES, 3))], -1
        )
        for counts in (SHOWN, CLICKED)
    )
    listed = [np.tile(index, (1, QUERIES, 1)) for index in (document, position)]
    return objective_of(shown, clicked, *listed)


def towers_of(model, seed=1):
    return two_towers("linear", width=WIDTH, positions=POSITIONS, seed=seed, model=model)


def value_and_gradient(towers, objective):
    graph, state = nnx.split(towers)

    def mean(state):
        return objective.losses(nnx.merge(graph, state), jnp.arange(QUERIES), 0).mean()

    return jax.jit(jax.value_and_grad(mean))(state)


def numeric_gradient(model, weights, bias, step=1e-6):
    """Gradients of the brute force by the tower's weights and the examination logits."""
    found = []
    for number, values in enumerate((weights, bias)):
        moved = np.zeros_like(values)
        for index in range(len(values)):
            ends = []
            for sign in (1, -1):
                parameters = [weights.copy(), bias.copy()]
                parameters[number][index] += sign * step
                attraction = FEATURES.astype(float) @ parameters[0]
                ends.append(brute_force(model, attraction, parameters[1]))
            moved[index] = (ends[0] - ends[1]) / (2 * step)
        found.append(moved)
    return found


@pytest.mark.parametrize("objective", [count_objective, row_objective])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_objective_and_gradient_equal_brute_force(model, objective):
    towers = towers_of(model)
    weights = np.asarray(towers.relevance.layer.kernel[...], float)[:, 0]
    bias = np.asarray(towers.examination, float)
    value, gradient = value_and_gradient(towers, objective())
    np.testing.assert_allclose(
        value, brute_force(model, FEATURES.astype(float) @ weights, bias), rtol=1e-5
    )
    by_weights, by_bias = numeric_gradient(model, weights, bias)
    found = gradient["relevance"]["layer"]["kernel"][...][:, 0]
    np.testing.assert_allclose(found, by_weights, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(
        gradient["bias"]["embedding"][...][:, 0], by_bias, rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_own_implementations_equal_the_general_one(model):
    """Extreme logits would show a shortcut."""
    attraction = jnp.asarray([[-40.0, -8, -1, 0, 2, 9, 40]])
    examination = jnp.asarray([0.0, -12, 3, 30])
    shown, clicked = jnp.full((1, 7, 4), 5.0), jnp.full((1, 7, 4), 2.0)

    def own(attraction, examination):
        return cell_losses(model, attraction, examination, shown, clicked)

    def general(attraction, examination):
        logits = cell_logits(model, attraction[..., None], examination)
        return click_losses(logits, shown, clicked)

    np.testing.assert_allclose(
        own(attraction, examination), general(attraction, examination), rtol=1e-6
    )
    found, expected = (
        jax.grad(lambda *parts, f=f: f(*parts).sum(), argnums=(0, 1))(attraction, examination)
        for f in (own, general)
    )
    for own_part, general_part in zip(found, expected, strict=True):
        np.testing.assert_allclose(own_part, general_part, rtol=1e-4, atol=1e-5)


# Closed forms.


def test_additive_user_closed_form():
    # sigmoid(-ln k) = 1 / (1 + k) at the centred relevance of 2.
    positions = np.arange(1, 26)
    np.testing.assert_allclose(
        Additive().chance(np.array(2.0), 25), 1 / (1 + positions), rtol=1e-12
    )
    # sigmoid(gamma - 2 - ln k) = 1 / (1 + k exp(2 - gamma)).
    np.testing.assert_allclose(
        Additive().chance(np.array([0.0, 4.0]), 25),
        [1 / (1 + positions * np.exp(2)), 1 / (1 + positions * np.exp(-2))],
        rtol=1e-12,
    )


@pytest.mark.parametrize("eta", [0, 0.5, 2])
def test_position_based_user_closed_form(eta):
    relevance, k = np.array([0.0, 1, 2, 3, 4]), np.arange(1, 6)
    chance = PositionBased(eta=eta, noise=0.1, highest=4).chance(relevance, 5)
    attractive = 0.1 + 0.9 * (2**relevance - 1) / 15
    np.testing.assert_allclose(chance, np.outer(attractive, k ** -float(eta)), rtol=1e-12)


def test_position_based_bias_is_the_logarithm_of_examination():
    logits = np.array([-2.0, 0, 3])
    np.testing.assert_allclose(PositionBased().position_bias(logits), np.log(expit(logits)))
    np.testing.assert_allclose(CellModel().position_bias(logits), np.log(expit(logits)))
    assert Additive().position_bias(logits) is logits


@pytest.mark.parametrize(
    ("field", "value"), [("eta", -1), ("noise", 1.1), ("highest", 0), ("eta", np.nan)]
)
def test_constants_out_of_range_are_named(field, value):
    with pytest.raises(InputError, match=field):
        PositionBased(**{field: value})
