"""Session replay: fits whose epochs walk through all sessions in Python.

The published code of Hager et al. 2025 returns one session after the other, pads and stacks them.
Here is the fastest plain form that we know: features stay on the device, and a batch is one fancy
index per array of the log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from twotowers.fitting.gradient import FitSettings
from twotowers.logs.simulation import Sessions
from twotowers.losses.cells import softplus

Batch = dict[str, np.ndarray]


class Arrays:
    """Sessions as arrays. All batches share the features (`shared`)."""

    def __init__(self, features: np.ndarray, log: Sessions):
        self.shared, self.log = jnp.asarray(features), log

    def __len__(self) -> int:
        return len(self.log.query)

    def batches(self, order: np.ndarray, size: int) -> Iterator[Batch]:
        """Batches of the sessions in the given order. The last may be smaller."""
        for start in range(0, len(order), size):
            index = order[start : start + size]
            yield {
                "query": self.log.query[index],
                "documents": self.log.documents[index],
                "clicks": self.log.clicks[index],
                "where": self.log.where[index],
            }

    @staticmethod
    def relevance(model, shared: jax.Array, batch: Batch) -> jax.Array:
        """[sessions, positions] relevance logits of the documents shown."""
        every = model.relevance(shared[batch["query"]])
        return jnp.take_along_axis(every, batch["documents"].astype(jnp.int32), axis=-1)


def replay(model, train, validation, settings: FitSettings, *, seed: int) -> dict:
    """Train by replaying sessions, with the early stopping of `twotowers.fitting.gradient.fit`.

    Args:
        model: a two-tower model; see `twotowers.towers.two_towers`.
        train, validation: sessions.
        settings: see `FitSettings`. An epoch is a pass over all sessions, in `steps` steps.
        seed: of the order of batches.

    Returns:
        seconds and validation nll after each epoch, seconds of compilation, position bias.
    """
    graph, params = nnx.split(model)
    optimizer = optax.adamw(settings.learning_rate, weight_decay=settings.weight_decay)

    def losses(params, shared, batch):
        model = nnx.merge(graph, params)
        logits = train.relevance(model, shared, batch) + model.position_bias
        cells = softplus(logits) - batch["clicks"] * logits
        return jnp.where(batch["where"], cells, 0).sum(-1) / batch["where"].sum(-1)

    @jax.jit
    def step(params, state, shared, batch):
        gradient = jax.grad(lambda params: losses(params, shared, batch).mean())(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state

    total = jax.jit(lambda params, shared, batch: losses(params, shared, batch).sum())

    state = optimizer.init(params)
    start = time.perf_counter()
    # The last batch of an epoch is smaller and needs a compilation of its own.
    for data in (train, validation):
        for size in {min(settings.batch, len(data)), len(data) % settings.batch} - {0}:
            batch = next(data.batches(np.arange(size), size))
            jax.block_until_ready(step(params, state, data.shared, batch))
            jax.block_until_ready(total(params, data.shared, batch))
    compilation = time.perf_counter() - start

    rng = np.random.default_rng(seed)
    best, best_loss, bad = params, np.inf, 0
    seconds, history = [], []
    start = time.perf_counter()
    for _ in range(settings.epochs):
        for batch in train.batches(rng.permutation(len(train)), settings.batch):
            params, state = step(params, state, train.shared, batch)
        everyone = validation.batches(np.arange(len(validation)), settings.batch)
        loss = sum(float(total(params, validation.shared, batch)) for batch in everyone)
        loss /= len(validation)
        seconds.append(time.perf_counter() - start)
        history.append(loss)
        if loss < best_loss - settings.min_delta:
            best, best_loss, bad = params, loss, 0
        else:
            bad += 1
        if bad >= settings.patience:
            break
    bias = np.asarray(nnx.merge(graph, best).position_bias)
    return {"compilation": compilation, "seconds": seconds, "nll": history, "bias": bias.tolist()}
