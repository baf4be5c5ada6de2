"""Starts of gradient fits: random, zero, or the true parameters of a simulated user."""

from __future__ import annotations

import logging
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree

from twotowers.errors import InputError
from twotowers.fitting.gradient import FitSettings
from twotowers.fitting.optimizers import ADAM
from twotowers.methods.task import CERTAIN, Task
from twotowers.towers.lane import Lane
from twotowers.towers.two_towers import TwoTowers

LOGGER = logging.getLogger(__name__)

FAR = 4.0
"""How far a parameter must be able to move from a random start, which is drawn from N(0, 1).

Where 2.4 were possible, another start still changed an estimate by 1.4, and where 9.6 were, by .2
(papers/hager2025, item starts)."""


def starts_of(task: Task, model: TwoTowers, start: str | Lane) -> jax.Array | None:
    """The `starts` of `twotowers.fitting.gradient.fit`.

    Args:
        task: its users and data.
        model: a freshly initialised model, whose parameters are the start "random".
        start: the name of a start, or lanes.

    Returns:
        [lanes, parameters of a model]; None if all lanes start at random.
    """
    names = task.each(start)
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


def warn_of_starts(
    task: Task, model: nnx.Module, start: str | Lane, units: int, epochs: np.ndarray
) -> None:
    """Warn in the job's log of lanes whose position bias may be little more than its random start.

    A step of an optimiser of Adam's kind moves a parameter by about the learning rate, so few
    steps cannot leave a start behind.

    Args:
        task: its lanes, and their training.
        model: as trained; only one with a table of positions can be stuck like this.
        start: of each lane; only a random one can be stuck.
        units: queries or sessions of the training objective.
        epochs: [lanes] number of epochs trained.
    """
    settings = FitSettings(**task.training)
    tabled = isinstance(model, TwoTowers) and isinstance(model.bias, nnx.Embed)
    if not tabled or "examination" not in model.model.parts:
        return
    if settings.optimizer not in ADAM:
        return
    steps = epochs * (settings.steps or -(-units // settings.batch))
    for (_, values), name, taken in zip(task.lanes, task.each(start), steps, strict=True):
        way = taken * values.get("learning_rate", settings.learning_rate)
        if name == "random" and way < FAR:
            LOGGER.warning(
                "%d steps move a parameter by about %.2g at most: position bias may be its random "
                "start. More sessions, smaller batches or more patience help",
                taken,
                way,
            )


def _zero(task: Task, model: TwoTowers, log: int) -> None:
    if task.tower not in ("linear", "embedding"):
        raise InputError(
            f"a {task.tower} tower does not learn from zeros",
            field="start",
            expected="'random', or a tower without hidden layers",
        )
    nnx.update(model, jax.tree.map(jnp.zeros_like, nnx.state(model, nnx.Param)))


def _truth(task: Task, model: TwoTowers, log: int) -> None:
    if task.users is None:
        raise InputError(
            "the truth of a real log is unknown", field="start", expected="'random' or 'zero'"
        )
    user, train = task.users[log], task.splits["train"]
    if task.tower != "embedding":
        raise InputError(
            f"a {task.tower} tower cannot start at the truth",
            field="start",
            expected="'embedding', a tower with a parameter per query-document pair",
        )
    if type(user) is not type(task.model):
        raise InputError(
            "the user and the model have different parameters",
            field="start",
            expected="a user and a model of the same kind",
        )
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
