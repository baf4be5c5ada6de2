"""Starts of gradient fits: random, zero, or the true parameters of a simulated user."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree

from twotowers.errors import InputError, nearest
from twotowers.methods.task import CERTAIN, Task
from twotowers.models.towers import TwoTowers


def starts_of(task: Task, model: TwoTowers) -> jax.Array | None:
    """The `starts` of `twotowers.fitting.gradient.fit`.

    Args:
        task: its lanes give `start`.
        model: a freshly initialised model, whose parameters are the start "random".

    Returns:
        [lanes, parameters of a model]; None if all lanes start at random.

    Raises:
        InputError: the start is unknown, or the task's tower, user or log does not allow it.
    """
    names = [values.get("start", "random") for _, values in task.lanes]
    for name in names:
        if name not in STARTS:
            raise InputError(f"{name!r} is unknown", field="start", expected=nearest(name, STARTS))
    if set(names) == {"random"}:
        return None
    if not isinstance(model, TwoTowers):
        raise InputError(
            f"{type(task.model).__name__} starts at random", field="start", expected="'random'"
        )
    graph, state, rest = nnx.split(model, nnx.Param, ...)
    vectors = []
    for name, (log, _) in zip(names, task.lanes, strict=True):
        # A model of its own for each lane, because starts change it in place.
        own = nnx.merge(graph, jax.tree.map(jnp.copy, state), rest)
        STARTS[name](task, own, log)
        vectors.append(ravel_pytree(nnx.state(own, nnx.Param))[0])
    return jnp.stack(vectors)


def _zero(task: Task, model: TwoTowers, log: int) -> None:
    if task.tower not in ("linear", "embedding"):
        raise InputError(
            f"a {task.tower} tower does not learn from zeros", field="start",
            expected="'random', or a tower without hidden layers",
        )  # fmt: skip
    nnx.update(model, jax.tree.map(jnp.zeros_like, nnx.state(model, nnx.Param)))


def _truth(task: Task, model: TwoTowers, log: int) -> None:
    if task.users is None:
        raise InputError(
            "the truth of a real log is unknown", field="start", expected="'random' or 'zero'"
        )
    user, train = task.users[log], task.splits["train"]
    if task.tower != "embedding":
        raise InputError(
            f"a {task.tower} tower cannot start at the truth", field="start",
            expected="'embedding', a tower with a parameter per query-document pair",
        )  # fmt: skip
    if type(user) is not type(task.model):
        raise InputError(
            "the user and the model have different parameters", field="start",
            expected="a user and a model of the same kind",
        )  # fmt: skip
    truth = user.truth(train.relevance, task.positions)
    attraction = np.where(train.where, truth["attraction"], 0).reshape(-1, 1)
    model.relevance.logits.embedding = _parameter(attraction)
    if "examination" in truth:
        model.bias.embedding = _parameter(truth["examination"][:, None])


def _parameter(logits: np.ndarray) -> nnx.Param:
    return nnx.Param(jnp.asarray(np.clip(logits, -CERTAIN, CERTAIN), jnp.float32))


STARTS: dict[str, Callable[[Task, TwoTowers, int], None]] = {
    "random": lambda task, model, log: None,
    "zero": _zero,
    "truth": _truth,
}
"""Name of a start -> function that changes a freshly initialised model in place."""
