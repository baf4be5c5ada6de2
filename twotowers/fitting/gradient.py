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
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.tree_util import register_dataclass

from twotowers.errors import InputError
from twotowers.fitting.batches import draw_epochs, own_units
from twotowers.fitting.optimizers import DECAYING
from twotowers.towers.parts import Constant

LOGGER = logging.getLogger(__name__)

EVALUATION_BATCH = 64
"""Units evaluated at a time, few enough for their activations to fit into a CPU's cache."""

BLOCK = 4
"""Largest number of lanes trained side by side on a CPU. Their activations fit into its cache, and
few lanes of a block are idle after others stop."""

VARIED = ("learning_rate", "weight_decay")
"""The fields of `FitSettings` that may differ between lanes."""

REPORT = 5
"""Epochs between two lines of progress in the log."""


@dataclass(frozen=True)
class FitSettings:
    """How to train.

    Attributes:
        learning_rate: learning rate of the optimiser, in [1e-9, 10].
        weight_decay: decoupled weight decay of all parameters, in [0, 10]. None is Optax's default
            (1e-4 for AdamW), or 0 for an optimiser without weight decay.
        optimizer: one of `twotowers.fitting.optimizers.OPTIMIZERS`.
        batch: units (queries or sessions) per step, 1 or more.
        steps: steps per epoch, 1 or more. The validation loss is computed after each epoch. If
            None, an epoch is one pass over the units with data in the lane's log, and its last
            batch may be smaller.
        epochs: largest number of epochs, 1 or more.
        patience: epochs without improvement before a lane stops, 1 or more.
        min_delta: smallest decrease of the validation loss that counts as improvement, in [0, 10].
        averaged: whether to validate and keep an exponential average of the parameters over about
            one epoch's steps (Polyak and Juditsky, 1992). It smooths out the noise of single
            batches. False keeps the parameters of the last step.

    Example:
        >>> settings = FitSettings(learning_rate=0.01, batch=64, epochs=50, patience=3, min_delta=0)
        >>> settings.optimizer, settings.weight_decay
        ('adamw', 0.0001)
    """

    learning_rate: float
    batch: int
    epochs: int
    patience: int
    min_delta: float
    steps: int | None = field(default=None)
    weight_decay: float | None = field(default=None)
    averaged: bool = field(default=False)
    optimizer: str = field(default="adamw")

    def __post_init__(self):
        if self.weight_decay is None:
            object.__setattr__(self, "weight_decay", DECAYING.get(self.optimizer, 0.0))


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
) -> Fit:
    """Train one copy of `model` per lane.

    Args:
        model: an NNX module. Every lane starts from its parameters if `starts` is None.
        train: the objective to minimise (see `twotowers.losses.likelihood`).
        validation: the objective for early stopping. The parameters with its lowest value are kept.
        settings: see `FitSettings`.
        lanes: number of lanes.
        seed: seed of the order of batches and of dropout.
        varied: column -> [lanes, ...] values that differ between lanes: fields of the settings that
            `VARIED` names, and each `twotowers.towers.parts.Constant` of the model.
        starts: [lanes, parameters of a model] start of each lane, in the order of
            `jax.flatten_util.ravel_pytree` of the model's state.
    """
    graph, state, rest = nnx.split(model, nnx.Param, ...)
    optimised, rest = _per_lane(rest, settings, varied or {}, lanes)
    block = 1 if settings.steps is None else _block(lanes)
    now = _start(state, rest, optimised, settings, lanes, block, starts)
    own = (
        None
        if settings.steps is not None
        else (own_units(train, lanes), own_units(validation, lanes))
    )
    epoch = 0
    while epoch < settings.epochs and now.running.any():
        batches = draw_epochs(
            seed,
            range(epoch, epoch + REPORT),
            units=train.units,
            batch=settings.batch,
            steps=settings.steps,
            own=own and own[0],
        )
        until = min(epoch + REPORT, settings.epochs)
        steps = epoch, until, batches
        epoch, now = _train(graph, state, now, *steps, train, validation, settings, block, own)
        losses = np.asarray(now.best_loss)[:lanes]
        LOGGER.info(
            "epoch %d of at most %d: %d of %d lanes running, validation loss %.5f to %.5f",
            *(epoch, settings.epochs, now.running.sum(), lanes, losses.min(), losses.max()),
        )
    done = jax.tree.map(lambda leaf: np.asarray(leaf)[:lanes], now)
    best = nnx.merge_state(_restored(state, done.best), done.best_rest)
    lost = ~np.isfinite(done.best_loss)
    # If lanes have learning rates of their own, some rates may be too large. Such lanes are a
    # result, not an error.
    if lost.all() or (lost.any() and "learning_rate" not in optimised):
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


@register_dataclass
@dataclass(frozen=True)
class _Lanes:
    """The state of training. All leaves are [lanes, ...].

    `params` are [lanes, parameters of a model]. `rest` is the part of a model's state that is no
    parameter. `optimised` holds the settings that differ between lanes.
    """

    lane: jax.Array
    optimised: dict[str, jax.Array]
    params: jax.Array
    rest: nnx.State
    average: jax.Array | None
    optimizer: optax.OptState
    best: jax.Array
    best_rest: nnx.State
    best_loss: jax.Array
    bad_epochs: jax.Array
    running: jax.Array
    epochs: jax.Array
    history: jax.Array


def _optimizer(settings: FitSettings, optimised: Mapping) -> optax.GradientTransformation:
    given = {"learning_rate": settings.learning_rate}
    if settings.optimizer in DECAYING:
        given["weight_decay"] = settings.weight_decay
    return getattr(optax, settings.optimizer)(**given | dict(optimised))


@partial(jax.jit, static_argnums=(3, 4, 5))
def _start(
    state, rest, optimised, settings: FitSettings, lanes: int, block: int, starts=None
) -> _Lanes:
    # Blocks must be full, so lanes that never run, on the last lane's data, fill the last block.
    count = -(-lanes // block) * block
    start, _ = ravel_pytree(state)
    params = jnp.broadcast_to(start, (count, start.size))
    lane = jnp.minimum(jnp.arange(count), lanes - 1)
    if starts is not None:
        params = starts[lane]
    optimised, rest = jax.tree.map(lambda leaf: leaf[lane], (optimised, rest))
    return _Lanes(
        lane=lane,
        optimised=optimised,
        params=params,
        rest=rest,
        average=params if settings.averaged else None,
        optimizer=jax.vmap(_optimizer(settings, {}).init)(params),
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
    graph, template, lanes: _Lanes, first, until, batches, train, validation, settings, block, own
):
    """Train from epoch `first` up to, not including, `until`, or until all lanes have stopped.

    `template` has the structure of a lane's parameters. With `own`, each lane trains on its own
    units of both objectives, and a block is one lane. `batches` are from `draw_epochs`.

    Returns:
        the next epoch, and the lanes.
    """
    _, restore = ravel_pytree(template)

    def batch_loss(params, rest, index, lane, key, counted):
        # Copied because Flax forbids changes to variables created outside the gradient's trace.
        model = nnx.merge(graph, restore(params), rest, copy=True)
        losses = train.losses(model, index, lane, key)
        if counted is None:
            loss = losses.mean()
        else:
            # The mean over the lane's own units times their share of all units: the scale of the
            # objective, which is a mean over all units.
            share = own[0].size[lane] / train.units
            loss = share * jnp.where(counted, losses, 0).sum() / counted.sum()
        # The second value is the rest of the state, such as running statistics, after this batch.
        return loss, nnx.split(model, nnx.Param, ...)[2]

    def validation_loss(params, rest, lane):
        state = nnx.merge_state(restore(params), rest)
        order = None if own is None else (own[1].order[lane], own[1].size[lane])
        return mean_loss(graph, state, lane, order, objective=validation)

    def lane_step(params, rest, average, state, index, lane, optimised, key, counted):
        loss = partial(batch_loss, index=index, lane=lane, key=key, counted=counted)
        gradient, rest = jax.grad(loss, has_aux=True)(params, rest)
        updates, state = _optimizer(settings, optimised).update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        if settings.averaged:
            steps = settings.steps or -(-own[0].size[lane] // settings.batch)
            average = optax.incremental_update(params, average, 1 / steps)
        return params, rest, average, state

    all_lanes_step = jax.vmap(lane_step, in_axes=(0, 0, 0, 0, None, 0, 0, None, None))

    def shared_batches(carry, batches, now):
        def step(carry, batch):
            index, key = batch[0], jax.random.wrap_key_data(batch[1])
            return all_lanes_step(*carry, index, now.lane, now.optimised, key, None), None

        return jax.lax.scan(step, carry, batches)[0]

    def own_batches(carry, batches, now):
        units, size = batches[0][now.lane[0]], own[0].size[now.lane[0]]

        def step(number, carry):
            place = number * settings.batch + jnp.arange(settings.batch)
            index = units[jnp.minimum(place, size - 1)]
            key = jax.random.wrap_key_data(batches[1][number])
            return all_lanes_step(*carry, index, now.lane, now.optimised, key, place < size)

        return jax.lax.fori_loop(0, -(-size // settings.batch), step, carry)

    def train_block(number, batches, now):
        start = now.params, now.rest, now.average, now.optimizer
        through = shared_batches if own is None else own_batches
        params, rest, average, state = through(start, batches, now)
        judged = average if settings.averaged else params
        loss = jax.vmap(validation_loss)(judged, rest, now.lane)
        better = now.running & (loss < now.best_loss - settings.min_delta)
        bad_epochs = jnp.where(better, 0, now.bad_epochs + 1)
        return _Lanes(
            lane=now.lane,
            optimised=now.optimised,
            params=params,
            rest=rest,
            average=average,
            optimizer=state,
            best=jnp.where(better[:, None], judged, now.best),
            best_rest=jax.tree.map(
                lambda new, old: jax.vmap(jnp.where)(better, new, old), rest, now.best_rest
            ),
            best_loss=jnp.where(better, loss, now.best_loss),
            bad_epochs=bad_epochs,
            running=now.running & (bad_epochs < settings.patience),
            epochs=now.epochs + now.running,
            history=now.history.at[:, number].set(jnp.where(now.running, loss, jnp.nan)),
        )

    def epoch(carry):
        number, now = carry
        its_batches = jax.tree.map(lambda leaf: leaf[number - first], batches)
        # Running lanes come first, so the blocks after them are skipped.
        blocks = jnp.argsort(~now.running, stable=True).reshape(-1, block)

        def one_block(place, now):
            chosen = blocks[place]
            part = train_block(number, its_batches, jax.tree.map(lambda leaf: leaf[chosen], now))
            return jax.tree.map(lambda leaf, new: leaf.at[chosen].set(new), now, part)

        busy = -(-now.running.sum() // block)
        return number + 1, jax.lax.fori_loop(0, busy, one_block, now)

    def unfinished(carry):
        number, now = carry
        return (number < until) & now.running.any()

    return jax.lax.while_loop(unfinished, epoch, (first, lanes))


def _restored(state, vectors: np.ndarray):
    """Lanes' vectors as a tree like `state`, with leaves [lanes, ...]."""
    leaves, structure = jax.tree.flatten(state)
    ends = np.cumsum([leaf.size for leaf in leaves])
    return structure.unflatten(
        vectors[:, end - leaf.size : end].reshape(-1, *leaf.shape)
        for leaf, end in zip(leaves, ends, strict=True)
    )


def mean_loss(graph, params, lane: jax.Array, own=None, *, objective) -> jax.Array:
    """The objective at the given parameters: mean loss over all units, without dropout.

    Args:
        graph, params: the model's graph and state.
        lane: index of the lane, for its log, weighting and labels.
        own: [units] indices and the number of the lane's own units, which come first. The loss of
            other units is 0, so they are skipped. None evaluates all units.
        objective: see `twotowers.losses.likelihood`.
    """
    chunk = min(EVALUATION_BATCH, objective.units)
    order, size = (jnp.arange(objective.units), objective.units) if own is None else own
    model = nnx.merge(graph, params)

    def add(number, total):
        place = number * chunk + jnp.arange(chunk)
        # The last chunk is padded. The condition on `place` leaves the padding out of the sum.
        losses = objective.losses(model, order[jnp.minimum(place, size - 1)], lane)
        return total + jnp.where(place < size, losses, 0).sum()

    return jax.lax.fori_loop(0, -(-size // chunk), add, jnp.float32(0)) / objective.units
