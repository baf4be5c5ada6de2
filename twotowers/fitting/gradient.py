"""Gradient fits: one compiled program trains all lanes, on data that stays on the device.

Lanes differ in parameters, click log and weighting. They share batches, so features are read once
for all lanes. Each lane stops early by itself and keeps its best parameters while the others go on.
Lanes are trained in blocks. Running lanes fill the first blocks. So blocks of stopped lanes cost
nothing.

A lane's parameters are one vector during training, which halves the compile time of a tree of
parameters. The rest of a model (running statistics, numbers that are lanes) is a tree beside this
vector, and is empty for most models.

If lanes have logs of different size, an epoch can be a pass over a lane's own units. Then lanes
are trained one after the other, on batches of their own.

NumPy draws the batches. XLA would compile for seconds what NumPy does in milliseconds.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.tree_util import register_dataclass

from twotowers.errors import InputError
from twotowers.files.checkpoints import Checkpoint
from twotowers.fitting.lane_steps import FitSettings, LaneStates, judged, optimizer_of, stepping
from twotowers.randomness import stream
from twotowers.towers.parts import Constant

LOGGER = logging.getLogger(__name__)

BLOCK = 4
"""Largest number of lanes trained side by side on a CPU. Their activations fit into its cache, and
few lanes of a block are idle after others stop."""

VARIED = ("learning_rate", "weight_decay")
"""The fields of `FitSettings` that may differ between lanes."""

REPORT = 5
"""Epochs between two lines of progress in the log."""


@dataclass(frozen=True)
class Fit:
    """The result of a fit, for each lane.

    Attributes:
        graph: the model's NNX graph definition.
        state: the model's state (its parameters and the rest) at the lowest validation loss, with
            leaves [lanes, ...].
        loss: [lanes] lowest validation loss.
        epochs: [lanes] number of epochs trained.
        history: [epochs, lanes] validation loss after each epoch, NaN after the lane stopped.
    """

    graph: nnx.GraphDef
    state: nnx.State
    loss: np.ndarray
    epochs: np.ndarray
    history: np.ndarray

    def model(self, lane: int) -> nnx.Module:
        """The fitted model of one lane."""
        return nnx.merge(self.graph, jax.tree.map(lambda leaf: leaf[lane], self.state))


def fit(
    model,
    train,
    validation,
    settings: FitSettings,
    *,
    lanes: int,
    seed: int,
    varied: Mapping[str, Sequence[float]] | None = None,
    starts: jax.Array | None = None,
    checkpoint: str | Path | None = None,
) -> Fit:
    """Train one copy of `model`, an NNX module, per lane.

    Args:
        train: the objective to minimise (see `twotowers.losses.likelihood`).
        validation: the one for early stopping. The parameters with its lowest value are kept.
        seed: of the order of batches and of dropout.
        varied: column -> [lanes, ...] values that differ between lanes: fields of the settings that
            `VARIED` names, and each `twotowers.towers.parts.Constant` of the model.
        starts: [lanes, parameters of a model] start of each lane, in the order of
            `jax.flatten_util.ravel_pytree` of the model's state; the model's own if None.
        checkpoint: a file that keeps the state of training until it ends, so that a fit which was
            ended meanwhile goes on, with the same result.
    """
    graph, state, now = started(model, settings, varied, lanes, starts)
    block = 1 if settings.steps is None else _block(lanes)
    kept = Checkpoint.of(checkpoint, settings, seed, validation)
    own = (
        None
        if settings.steps is not None
        else (own_units(train, lanes), own_units(validation, lanes))
    )
    (epoch,), now = kept.load((0,), now)
    while epoch < settings.epochs and now.running.any():
        batches = draw_epoch(seed, epoch, train.units, settings, own and own[0])
        now = _train(graph, state, epoch, now, batches, train, validation, settings, block, own)
        epoch += 1
        if epoch % REPORT == 0:
            kept.save((epoch,), now)
            report(settings, now, epoch, lanes)
    kept.remove()
    return finished(graph, state, now, lanes)


def started(
    model: nnx.Module,
    settings: FitSettings,
    varied: Mapping[str, Sequence[float]] | None,
    lanes: int,
    starts: jax.Array | None = None,
) -> tuple[nnx.GraphDef, nnx.State, LaneStates]:
    """The model's graph and parameters, and the state of training at its start; see `fit`."""
    graph, state, rest = nnx.split(model, nnx.Param, ...)
    optimised, rest = _per_lane(rest, settings, varied or {}, lanes)
    block = 1 if settings.steps is None else _block(lanes)
    return graph, state, _start(state, rest, optimised, settings, lanes, block, starts)


def report(settings: FitSettings, now: LaneStates, epoch: int, lanes: int) -> None:
    """A line of progress in the log."""
    losses = np.asarray(now.best_loss)[:lanes]
    LOGGER.info(
        "epoch %d of at most %d: %d of %d lanes running, validation loss %.5f to %.5f",
        *(epoch, settings.epochs, now.running.sum(), lanes, losses.min(), losses.max()),
    )


def finished(graph: nnx.GraphDef, state: nnx.State, now: LaneStates, lanes: int) -> Fit:
    """The result of training."""
    done = jax.tree.map(lambda leaf: np.asarray(leaf)[:lanes], now)
    best = nnx.merge_state(_restored(state, done.best), done.best_rest)
    lost = ~np.isfinite(done.best_loss)
    # If lanes have learning rates of their own, some rates may be too large. Such lanes are a
    # result, not an error.
    if lost.all() or (lost.any() and "learning_rate" not in now.optimised):
        raise InputError(
            f"lanes {np.flatnonzero(lost).tolist()} did not reach a finite validation loss",
            field="fit",
            expected="finite features and counts, and a learning rate that is not too large",
        )
    return Fit(graph, best, done.best_loss, done.epochs, done.history.T)


def _per_lane(rest, settings: FitSettings, varied: Mapping[str, Sequence], lanes: int):
    """The varied settings, and `rest` with the values of its constants: leaves [lanes, ...]."""
    if settings.averaged and jax.tree.leaves(nnx.filter_state(rest, nnx.BatchStat)):
        raise InputError(
            "running statistics do not belong to averaged parameters",
            field="averaged",
            expected="false for a model with batch normalisation",
        )
    values = {name: np.asarray(each, np.float32) for name, each in varied.items()}
    optimised = {name: jnp.asarray(values[name]) for name in VARIED if name in values}

    def laid_out(variable):
        if isinstance(variable, Constant):
            return variable.replace(jnp.asarray(values[variable.column]))
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (lanes, *leaf.shape)), variable)

    return optimised, jax.tree.map(
        laid_out, rest, is_leaf=lambda each: isinstance(each, nnx.Variable)
    )


def _block(lanes: int) -> int:
    blocks = -(-lanes // BLOCK) if jax.default_backend() == "cpu" else 1
    return -(-lanes // blocks)


@partial(jax.jit, static_argnums=(3, 4, 5))
def _start(
    state, rest, optimised, settings: FitSettings, lanes: int, block: int, starts=None
) -> LaneStates:
    # Blocks must be full, so lanes that never run, on the last lane's data, fill the last block.
    count = -(-lanes // block) * block
    start, _ = ravel_pytree(state)
    params = jnp.broadcast_to(start, (count, start.size))
    lane = jnp.minimum(jnp.arange(count), lanes - 1)
    if starts is not None:
        params = starts[lane]
    optimised, rest = jax.tree.map(lambda leaf: leaf[lane], (optimised, rest))
    return LaneStates(
        lane=lane,
        optimised=optimised,
        params=params,
        rest=rest,
        average=params if settings.averaged else None,
        optimizer=jax.vmap(optimizer_of(settings, {}).init)(params),
        best=params,
        best_rest=rest,
        best_loss=jnp.full(count, jnp.inf),
        bad_epochs=jnp.zeros(count, jnp.int32),
        running=jnp.arange(count) < lanes,
        epochs=jnp.zeros(count, jnp.int32),
        history=jnp.full((count, settings.epochs), jnp.nan),
    )


@partial(jax.jit, static_argnames=("graph", "settings", "block"))
def _train(
    graph, template, number, lanes: LaneStates, batches, train, validation, settings, block, own
):
    """The lanes after an epoch of this number.

    `template` has the structure of a lane's parameters. With `own`, each lane trains on its own
    units of both objectives, and a block is one lane. `batches` are from `draw_epoch`.
    """
    all_lanes_step = stepping(graph, template, train, settings, own)

    def shared_batches(carry, now):
        def step(carry, batch):
            index, key = batch[0], jax.random.wrap_key_data(batch[1])
            return all_lanes_step(*carry, index, now.lane, now.optimised, key, None), None

        return jax.lax.scan(step, carry, batches)[0]

    def own_batches(carry, now):
        units, size = batches[0][now.lane[0]], own[0].size[now.lane[0]]

        def step(number, carry):
            place = number * settings.batch + jnp.arange(settings.batch)
            index = units[jnp.minimum(place, size - 1)]
            key = jax.random.wrap_key_data(batches[1][number])
            return all_lanes_step(*carry, index, now.lane, now.optimised, key, place < size)

        return jax.lax.fori_loop(0, -(-size // settings.batch), step, carry)

    def train_block(now):
        start = now.params, now.rest, now.average, now.optimizer
        stepped = (shared_batches if own is None else own_batches)(start, now)
        return judged(graph, template, number, now, stepped, validation, settings, own)

    # Running lanes come first, so the blocks after them are skipped.
    blocks = jnp.argsort(~lanes.running, stable=True).reshape(-1, block)

    def one_block(place, now):
        chosen = blocks[place]
        part = train_block(jax.tree.map(lambda leaf: leaf[chosen], now))
        return jax.tree.map(lambda leaf, new: leaf.at[chosen].set(new), now, part)

    return jax.lax.fori_loop(0, -(-lanes.running.sum() // block), one_block, lanes)


def _restored(state, vectors: np.ndarray):
    """Lanes' vectors as a tree like `state`, with leaves [lanes, ...]."""
    leaves, structure = jax.tree.flatten(state)
    ends = np.cumsum([leaf.size for leaf in leaves])
    return structure.unflatten(
        vectors[:, end - leaf.size : end].reshape(-1, *leaf.shape)
        for leaf, end in zip(leaves, ends, strict=True)
    )


def batch_order(rng: np.random.Generator, units: int, batch: int, steps: int) -> np.ndarray:
    """[steps, batch] unit indices, from random passes over all units, one after the other.

    In one call, the numbers of uses of any two units differ by at most one.
    """
    passes = -(-steps * batch // units)
    order = np.concatenate([rng.permutation(units) for _ in range(passes)])
    return order[: steps * batch].reshape(steps, batch).astype(np.int32)


@register_dataclass
@dataclass(frozen=True)
class Own:
    """Which units (queries or pages) have data in the log of each lane.

    `order` [lanes, units] lists all units, those with data first; `size` [lanes] counts these.
    """

    order: jax.Array
    size: jax.Array

    def shuffled(self, rng: np.random.Generator) -> np.ndarray:
        """[lanes, units] each lane's own units in random order, then the others."""
        return np.stack(
            [
                np.append(rng.permutation(order[:size]), order[size:])
                for order, size in zip(np.asarray(self.order), np.asarray(self.size), strict=True)
            ]
        )


def own_units(objective, lanes: int) -> Own:
    """Each lane's own units in an objective (see `twotowers.losses.likelihood`)."""
    has = np.asarray(jax.vmap(objective.has)(jnp.arange(lanes)))
    order = np.argsort(~has, kind="stable").astype(np.int32)
    return Own(jnp.asarray(order), jnp.asarray(has.sum(-1)))


def draw_epoch(
    seed: int, epoch: int, units: int, settings: FitSettings, own: Own | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The batches of an epoch. They depend on the seed and the number of the epoch only.

    Unit indices [steps, batch], or [lanes, units] as `Own.shuffled` has them, where an epoch goes
    through each lane's `own` units; and data of random keys [steps, 2], of as many steps as the
    largest lane needs.
    """
    rng, steps = stream("batches", seed, epoch), settings.steps
    if own is None:
        order = batch_order(rng, units, settings.batch, steps)
    else:
        order = own.shuffled(rng)
        steps = -(-int(np.asarray(own.size).max()) // settings.batch)
    return order, rng.integers(2**32, size=(steps, 2), dtype=np.uint32)
