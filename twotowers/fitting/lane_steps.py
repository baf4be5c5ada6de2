"""The steps of gradient fits: what a batch changes, and what the end of an epoch decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.tree_util import register_dataclass

from twotowers.fitting.optimizers import Optimizer, decay_of, made, schedule_of

EVALUATION_BATCH = 64
"""Units evaluated at a time, few enough for their activations to fit into a CPU's cache."""


@dataclass(frozen=True)
class FitSettings:
    """How to train.

    Attributes:
        learning_rate: learning rate of the optimiser, in [1e-9, 10].
        weight_decay: decoupled weight decay of all parameters, in [0, 10]. None is Optax's default
            (1e-4 for AdamW), or 0 for an optimiser without weight decay.
        optimizer: the name of a function of Optax, or a function of a learning rate.
        schedule: the `kind` and the options of a schedule of Optax, which the learning rate is
            multiplied by; a constant if None.
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
    """

    learning_rate: float
    batch: int
    epochs: int
    patience: int
    min_delta: float
    steps: int | None = field(default=None)
    weight_decay: float | None = field(default=None)
    averaged: bool = field(default=False)
    optimizer: Optimizer = field(default="adamw")
    schedule: tuple[tuple[str, Any], ...] | None = field(default=None)

    def __post_init__(self):
        if self.weight_decay is None:
            object.__setattr__(self, "weight_decay", decay_of(self.optimizer) or 0.0)


@register_dataclass
@dataclass(frozen=True)
class LaneStates:
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


def optimizer_of(settings: FitSettings, optimised: Mapping) -> optax.GradientTransformation:
    rate = optimised.get("learning_rate", settings.learning_rate)
    decay = {"weight_decay": optimised.get("weight_decay", settings.weight_decay)}
    given = {} if decay_of(settings.optimizer) is None else decay
    if settings.schedule is None:
        return made(settings.optimizer)(rate, **given)
    factor = schedule_of(**dict(settings.schedule))
    return made(settings.optimizer)(lambda step: rate * factor(step), **given)


def stepping(graph, template, train, settings, own=None):
    """The step of all lanes on a batch: (params, rest, average, optimizer), the batch's units, lane
    and settings of each, key, and which units count -> the first four."""
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

    def lane_step(params, rest, average, state, index, lane, optimised, key, counted):
        loss = partial(batch_loss, index=index, lane=lane, key=key, counted=counted)
        gradient, rest = jax.grad(loss, has_aux=True)(params, rest)
        updates, state = optimizer_of(settings, optimised).update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        if settings.averaged:
            steps = settings.steps or -(-own[0].size[lane] // settings.batch)
            average = optax.incremental_update(params, average, 1 / steps)
        return params, rest, average, state

    return jax.vmap(lane_step, in_axes=(0, 0, 0, 0, None, 0, 0, None, None))


def judged(graph, template, number, now: LaneStates, stepped, validation, settings, own=None):
    """The lanes after epoch `number`, whose last step gave `stepped`."""
    _, restore = ravel_pytree(template)

    def validation_loss(params, rest, lane):
        state = nnx.merge_state(restore(params), rest)
        order = None if own is None else (own[1].order[lane], own[1].size[lane])
        return mean_loss(graph, state, lane, order, objective=validation)

    params, rest, average, state = stepped
    chosen = average if settings.averaged else params
    loss = jax.vmap(validation_loss)(chosen, rest, now.lane)
    better = now.running & (loss < now.best_loss - settings.min_delta)
    bad_epochs = jnp.where(better, 0, now.bad_epochs + 1)
    return LaneStates(
        lane=now.lane,
        optimised=now.optimised,
        params=params,
        rest=rest,
        average=average,
        optimizer=state,
        best=jnp.where(better[:, None], chosen, now.best),
        best_rest=jax.tree.map(
            lambda new, old: jax.vmap(jnp.where)(better, new, old), rest, now.best_rest
        ),
        best_loss=jnp.where(better, loss, now.best_loss),
        bad_epochs=bad_epochs,
        running=now.running & (bad_epochs < settings.patience),
        epochs=now.epochs + now.running,
        history=now.history.at[:, number].set(jnp.where(now.running, loss, jnp.nan)),
    )


def mean_loss(graph, params, lane: jax.Array, own=None, *, objective) -> jax.Array:
    """The objective at the given parameters: mean loss over all units, without dropout.

    `lane` is the index of its log, weighting and labels. `own` has the [units] indices and the
    number of the lane's own units, which come first. The loss of other units is 0, so they are
    skipped. None evaluates all units.
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
