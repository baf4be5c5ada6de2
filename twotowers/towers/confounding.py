"""Networks of the backdoor adjustment: one that imitates a policy, and one that adds positions.

Luo et al. 2023, Section 4.2, as de Haan and Hager (2024) have it. The encoder is one linear layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree

from twotowers.towers.dense import DenseTower
from twotowers.towers.parts import Constant, linear

FROZEN = "frozen"
"""The column of a lane's frozen network."""


class PolicyTower(nnx.Module):
    """s(x) = m(e(x)): an encoder e, one linear layer, and a multilayer perceptron m with ELU units.

    Args:
        width: numbers per row of input.
        units: numbers per encoding.
        layers: widths of the perceptron's hidden layers.
        dropout: rate of dropout after each hidden layer while training, in [0, 0.99].
        rngs: source of randomness.
    """

    def __init__(
        self, width: int, *, units: int, layers: Sequence[int], dropout: float, rngs: nnx.Rngs
    ):
        self.encoder = linear(width, units, rngs=rngs)
        self.perceptron = DenseTower(units, layers=layers, dropout=dropout, rngs=rngs)

    def relevance(self, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., width] -> [...] scores of the policy."""
        return self.perceptron(self.encoder(inputs), key)


class ConfoundedExamination(nnx.Module):
    """b(x, k) = m(e(x) + P_k): a trained `PolicyTower`, frozen, with positions P_k to be learnt.

    Args:
        policy: a tower like those that are frozen. Its parameters are not used.
        positions: number of positions on the page.
        rngs: source of randomness.
    """

    def __init__(self, policy: PolicyTower, positions: int, *, rngs: nnx.Rngs):
        graph, state = nnx.split(policy)
        vector, restore = ravel_pytree(state)
        self.positions = linear(positions, policy.encoder.out_features, bias=False, rngs=rngs)
        self.frozen = Constant(vector, column=FROZEN)
        self._policy: Callable = lambda vector: nnx.merge(graph, restore(vector))

    def relevance(self, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[..., positions, width] -> [..., positions] logits, without dropout."""
        policy = self._policy(self.frozen[...])
        return policy.perceptron(policy.encoder(inputs) + self.positions.kernel[...])


def frozen_of(policy: PolicyTower) -> np.ndarray:
    """[parameters] what `ConfoundedExamination` freezes of a tower.

    Example:
        >>> tower = PolicyTower(2, units=2, layers=[2], dropout=0.0, rngs=nnx.Rngs(0))
        >>> frozen_of(tower).shape  # three layers with intercepts
        (15,)
    """
    return np.asarray(ravel_pytree(nnx.state(policy))[0])


@nnx.jit
def logits_of(model: ConfoundedExamination, inputs: jax.Array) -> jax.Array:
    """b(x, k) of pages, compiled: [pages, positions, width] -> [pages, positions]."""
    return model.relevance(jnp.asarray(inputs))
