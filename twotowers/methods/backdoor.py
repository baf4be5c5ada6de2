"""Two towers with a backdoor adjustment of examination (Luo et al. 2023; de Haan and Hager 2024).

Three steps, each with sessions of the log:

1. A network m(e(x)) learns the policy: it scores documents by their features x, and minimises the
   attention rank loss with target 1 / k at position k.
2. e and m are frozen. Positions P_k are added to encodings, and m(e(x) + P_k) minimises the same
   loss with a target of the propensity of position k.
3. This output b, frozen, is the bias of two towers: P(click) = s(f(x) + b). Or, as Luo et al. have
   it, it weights clicks in the ranking loss of the dual learning algorithm, by o_1 / o with
   o = softmax(b) over the documents of a page.

The attention rank loss fits targets as logits. So with the propensities e_k themselves as targets,
as published, the bias is about e_k and not ln e_k: nearly constant. Target "log" gives ln e_k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree

from twotowers.fitting.gradient import Fit
from twotowers.losses.listwise import ratios_to_first
from twotowers.losses.pages import Softmax, attention_rank, offset
from twotowers.methods.descent import fitted_of, relevance_of, train
from twotowers.methods.harvesting import TRUE, Known, propensities_of
from twotowers.methods.task import Fitted, Split, Task
from twotowers.towers.dense import DenseTower
from twotowers.towers.parts import Constant, Count, linear
from twotowers.towers.two_towers import scores

TRAINS = True
FROZEN = "frozen"
"""The column of a lane's frozen network."""
NEEDS = ("sessions", "features")

LAYERS, DROPOUT = (64, 256), 0.1
"""Of m: widths of its hidden layers, and their dropout in step 1."""
ADAGRAD = {"learning_rate": 0.03, "batch": 256, "min_delta": 0, "optimizer": "adagrad"}
"""The training of steps 1 and 2."""


def fit(
    task: Task,
    *,
    propensities: Known = TRUE,
    target: Literal["propensity", "log"] = "propensity",
    loss: Literal["towers", "dual", "none"] = "towers",
    units: Count = 64,
    epochs: Count = 3,
) -> list[Fitted]:
    """Fit every lane. Its bias is the mean of the frozen bias at each position of training pages.

    Args:
        task: the training of step 3, and the tower of f. Its model and examination are not used.
        propensities: e_k; see `twotowers.methods.harvesting`.
        target: of step 2, "propensity" for e_k or "log" for ln e_k.
        loss: of step 3, "towers" (de Haan and Hager) or "dual" (Luo et al.), whose weights are at
            most 10, and which predicts no clicks; "none" ends with step 1, the policy.
        units: numbers per encoding.
        epochs: of Adagrad in steps 1 and 2. The parameters with the lowest loss on validation pages
            are kept; the published code keeps the last ones.
    """
    train_split = task.splits["train"]
    logs = range(len(train_split.sessions))
    early = {**ADAGRAD, "epochs": epochs, "patience": epochs}
    # The first steps do not depend on a lane's values, only on its log.
    of_logs = replace(task, lanes=[(log, {}) for log in logs], training=early, examination={})
    rngs = nnx.Rngs(task.seed)
    policy, found = _policy(of_logs, units, rngs)
    if loss == "none":
        return [
            replace(
                fitted_of(found, log),
                scores=lambda inputs, log=log: np.asarray(logits_of(found.model(log), inputs)),
            )
            for log, _ in task.lanes
        ]
    biases = _biases(of_logs, policy, found, propensities, target, rngs)
    offsets = {
        name: [
            task.splits[name].on_pages(log, partial(logits_of, bias))
            for log, bias in enumerate(biases)
        ]
        for name in ("train", "validation")
    }
    dual = loss == "dual"

    def given(name: str) -> np.ndarray:
        found = offsets[name]
        if dual:
            pages = task.splits[name].sessions
            found = [_ratios(found[log], pages[log].where) for log in logs]
        return np.stack([found[log] for log, _ in task.lanes])

    model, objective = relevance_of(task), Softmax(normalised="not") if dual else offset
    result = train(task, model, objective, given=given)
    means = [_of_positions(train_split, log, offsets["train"]) for log in logs]
    return [
        fitted_of(result, lane, bias=means[log])
        if dual
        else _fitted(result, lane, log, biases[log], means[log])
        for lane, (log, _) in enumerate(task.lanes)
    ]


def _ratios(logits: np.ndarray, where: np.ndarray) -> np.ndarray:
    """[sessions, positions] o_1 / o, at most 10."""
    return np.asarray(ratios_to_first(jnp.asarray(logits), where=jnp.asarray(where), highest=10.0))


def _policy(task: Task, units: int, rngs: nnx.Rngs) -> tuple[PolicyTower, Fit]:
    """Step 1: the tower as it starts, and the policy of each log."""
    width = task.splits["train"].inputs.shape[-1]
    policy = PolicyTower(width, units=units, layers=LAYERS, dropout=DROPOUT, rngs=rngs)
    inverse = np.tile(1 / np.arange(1, task.positions + 1), (len(task.lanes), 1))
    return policy, train(task, policy, attention_rank, given=lambda split: inverse)


def _biases(
    task: Task, policy: PolicyTower, found: Fit, propensities: Known, target: str, rngs: nnx.Rngs
) -> list[ConfoundedExamination]:
    """Step 2: the frozen bias of each log."""
    theta = np.stack([propensities_of(task, log, propensities) for log, _ in task.lanes])
    lanes = [(log, {FROZEN: frozen_of(found.model(log))}) for log, _ in task.lanes]
    given = replace(task, lanes=lanes)
    model = ConfoundedExamination(policy, task.positions, rngs=rngs)
    aims = np.log(theta) if target == "log" else theta
    second = train(given, model, attention_rank, given=lambda split: aims)
    return [second.model(lane) for lane in range(len(task.lanes))]


def _of_positions(split: Split, log: int, offsets: list[np.ndarray]) -> np.ndarray:
    """[positions] mean bias of the documents shown at each position; NaN if there is none."""
    where = split.sessions[log].where
    shown = where.sum(0)
    total = np.where(where, offsets[log], 0).sum(0, dtype=float)
    return np.divide(total, shown, out=np.full(len(shown), np.nan), where=shown > 0)


def _fitted(result, lane: int, log: int, bias: ConfoundedExamination, mean: np.ndarray) -> Fitted:
    tower = result.model(lane).relevance

    def page_losses(split: Split) -> tuple[np.ndarray, np.ndarray]:
        relevance, offset = (
            split.on_pages(log, partial(of, model))
            for of, model in ((scores, tower), (logits_of, bias))
        )
        logits = relevance.astype(float) + offset
        losses = np.logaddexp(0, np.where(split.sessions[log].clicks, -logits, logits))
        return losses, losses

    return fitted_of(result, lane, bias=mean, page_losses=page_losses)


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
def logits_of(model: PolicyTower | ConfoundedExamination, inputs: jax.Array) -> jax.Array:
    """s(x) or b(x, k) of pages, compiled: [pages, positions, width] -> [pages, positions]."""
    return model.relevance(jnp.asarray(inputs))
