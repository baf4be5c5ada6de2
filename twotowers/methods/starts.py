"""Where gradient fits start: at random, at zero, or at the truth of a simulation."""

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
    """The parameters that each lane starts from, as `twotowers.fitting.gradient.fit` takes them.

    Args:
        task: its lanes say `start`.
        model: freshly initialised, which is where "random" starts.

    Returns:
        [lanes, all parameters]; None where all lanes start at random.

    Raises:
        InputError: the start is unknown, or one that the task's tower, user or log has not.
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
        # Merged anew, so that lanes do not change one another's.
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
            "nobody knows the truth of a real log", field="start", expected="'random' or 'zero'"
        )
    user, train = task.users[log], task.splits["train"]
    if task.tower != "embedding":
        raise InputError(
            f"a {task.tower} tower cannot start at the truth", field="start",
            expected="an embedding tower, which has a parameter per pair",
        )  # fmt: skip
    if type(user) is not type(task.model):
        raise InputError(
            "the user's parameters are not those of the model", field="start",
            expected="a user and a model of one kind",
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
"""What changes a freshly initialised model into that start."""
