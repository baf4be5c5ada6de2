"""Maximum likelihood of clicks by gradient descent, all lanes in one compiled program.

A log that was recorded page by page is fitted session by session (a step sees a batch of sessions),
any other from its counts (a step sees a batch of queries); the objective is the same. With the
additive model this is the two-tower method; with weighting "ips" every impression counts by its
inverse propensity (Hager et al. 2025, Eqs. 3 and 22).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from twotowers.errors import InputError, nearest
from twotowers.fitting.gradient import Fit, FitSettings, mean_loss
from twotowers.fitting.gradient import fit as gradient_fit
from twotowers.logs.counts import Counts, Rows
from twotowers.logs.propensities import inverse_propensity
from twotowers.methods.starts import starts_of
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.towers import scores, two_towers
from twotowers.objectives.likelihood import CountLoss, RowLoss, SessionLoss

LANES = {"weighting": "none", "start": "random"}
"""`weighting`: unweighted ("none"), or every impression by the inverse of its display propensity
("ips"). `start`: "random", "zero", or "truth" (the parameters of a simulated user)."""
CHOICES = {
    "weighting": ("none", "ips"),
    "start": ("random", "zero", "truth"),
    "stop_on": ("validation", "train"),
}

TRAINS = True

WEIGHTINGS = {"none": lambda counts: counts, "ips": inverse_propensity}

COUNTED = ("impressions", "clicks")

CHUNK = 256
"""Queries whose cells are in memory at a time."""

Lanes = list[tuple[int, Mapping[str, object]]]


def fit(task: Task, *, stop_on: str = "validation", heads: Sequence[Callable] = ()) -> list[Fitted]:
    """Fit one copy of the model per lane; early stopping watches the weighted loss, as published.

    Args:
        task: its lanes say the weighting and the start.
        stop_on: the split whose loss stops a lane and chooses its parameters, "validation" or
            "train". Of training sessions as many are watched as there are held-out ones.
        heads: what makes each head, whose loss is added while training (`twotowers.heads`).

    Raises:
        InputError: an unknown weighting, start or split, or one that the log does not allow.
    """
    if stop_on not in CHOICES["stop_on"]:
        expected = nearest(str(stop_on), CHOICES["stop_on"])
        raise InputError(f"{stop_on!r} is unknown", field="stop_on", expected=expected)
    train = split_loss(task.splits["train"], task.lanes)
    validation = train if stop_on == "train" else split_loss(task.splits["validation"], task.lanes)
    if isinstance(train, SessionLoss) and stop_on == "train":
        validation = some_sessions(train, len(task.splits["validation"].sessions[0].query))
    inputs = task.splits["train"].inputs
    model = two_towers(
        task.tower,
        width=inputs.shape[-1],
        pairs=task.splits["train"].where.size,
        positions=task.positions,
        seed=task.seed,
        model=task.model,
        heads=heads,
        **task.examination,
    )
    result = gradient_fit(
        model,
        train,
        validation,
        FitSettings(**task.training),
        lanes=len(task.lanes),
        seed=task.seed,
        starts=starts_of(task, model),
        varied=task.varied(LANES),
    )
    test = count_loss(task.splits["test"])
    return [_fitted(result, lane, log, test) for lane, (log, _) in enumerate(task.lanes)]


def _fitted(result: Fit, lane: int, log: int, test: CountLoss | RowLoss) -> Fitted:
    model = result.model(lane)
    state = jax.tree.map(lambda leaf: leaf[lane], result.state)
    return Fitted(
        scores=lambda inputs: np.asarray(scores(model.relevance, inputs)),
        bias=np.asarray(model.position_bias, float),
        cell_losses=lambda split: cell_losses(model, split, log),
        values={
            "nll": _loss(result.graph, state, log, test),
            "epochs": result.epochs[lane],
        },
    )


_loss = jax.jit(
    lambda graph, state, lane, objective: mean_loss(graph, state, lane, objective=objective),
    static_argnums=0,
)


def split_loss(split: Split, lanes: Lanes) -> CountLoss | RowLoss | SessionLoss:
    """The objective of some lanes, by sessions where the split has them, else by counts."""
    return count_loss(split, lanes) if split.sessions is None else session_loss(split, lanes)


def session_loss(split: Split, lanes: Lanes) -> SessionLoss:
    """The objective of some lanes session by session.

    Args:
        split: its inputs and sessions.
        lanes: for each lane its log, and its weighting, which must be "none".

    Raises:
        InputError: a lane is weighted, or its logs are not all of one size.
    """
    if any(values.get("weighting", "none") != "none" for _, values in lanes):
        raise InputError(
            "sessions have no weights", field="weighting",
            expected="'none', or a log that is recorded as cells",
        )  # fmt: skip
    logs = [split.sessions[log] for log, _ in lanes]
    if len(sizes := {len(log.query) for log in logs}) > 1:
        raise InputError(
            f"lanes of {sorted(sizes)} sessions cannot share batches of sessions", field="sessions",
            expected="a setting per number of sessions, or a log that is recorded as cells",
        )  # fmt: skip
    columns = (
        jnp.asarray(np.stack([getattr(log, column.name) for log in logs]))
        for column in fields(logs[0])
    )
    return SessionLoss(jnp.asarray(split.inputs), *columns)


def some_sessions(loss: SessionLoss, sessions: int) -> SessionLoss:
    """The objective of so many of its sessions (all, if there are fewer), evenly spaced."""
    sessions = min(sessions, loss.units)
    chosen = np.arange(sessions) * loss.units // sessions
    columns = ("query", "documents", "clicks", "where")
    return replace(loss, **{name: getattr(loss, name)[:, chosen] for name in columns})


def count_loss(split: Split, lanes: Lanes | None = None) -> CountLoss | RowLoss:
    """The objective of some lanes: mean over a session's documents, then over sessions.

    Args:
        split: its inputs and counts.
        lanes: for each lane its log and its weighting; all logs, unweighted, if None.
    """
    visits = split.counts.sessions
    # A page of a simulated log shows the whole list; of a real one, a part of what is known.
    documents = np.where(
        visits > 0, split.counts.shown / np.maximum(visits, 1), split.where.sum(-1)
    )
    weight = len(split.where) / (documents * visits.sum(-1, keepdims=True))
    counts = split.counts
    if lanes is not None:
        counts = weighted(counts, lanes)
        weight = weight[[log for log, _ in lanes]]
    columns = [jnp.asarray(getattr(counts, column.name)) for column in fields(counts)]
    kind = CountLoss if isinstance(counts, Counts) else RowLoss
    return kind(jnp.asarray(split.inputs), *columns, jnp.asarray(weight, jnp.float32))


def weighted(counts: Counts | Rows, lanes: Lanes) -> Counts | Rows:
    """The counts of every lane's log, under its weighting."""
    logs = [log for log, _ in lanes]
    if all(values["weighting"] == "none" for _, values in lanes):
        alike = logs == list(range(len(counts.impressions)))
        return counts if alike else _taken(counts, logs)
    # Weighted counts are fractions, and all lanes are of one type.
    parts = {name: weigh(counts) for name, weigh in WEIGHTINGS.items()}
    chosen = [parts[values["weighting"]] for _, values in lanes]
    stacked = {
        column.name: np.stack(
            [getattr(part, column.name)[log] for part, log in zip(chosen, logs, strict=True)],
            dtype=np.float32 if column.name in COUNTED else None,
        )
        for column in fields(counts)
    }
    return replace(counts, **stacked)


def _taken(counts: Counts | Rows, logs: list[int]) -> Counts | Rows:
    return replace(
        counts, **{column.name: getattr(counts, column.name)[logs] for column in fields(counts)}
    )


def cell_losses(model, split: Split, log: int) -> np.ndarray:
    """Negative log-likelihood of each cell of one log, laid out as its counts."""
    counts = split.counts.of_log(log)
    columns = [getattr(counts, column.name) for column in fields(counts)]
    losses = _dense_losses if isinstance(counts, Counts) else _row_losses
    parts = [
        losses(model, *(column[start : start + CHUNK] for column in (split.inputs, *columns)))
        for start in range(0, len(split.where), CHUNK)
    ]
    return np.concatenate(parts)


@nnx.jit
def _dense_losses(model, *columns):
    return model.cell_losses(*columns)


@nnx.jit
def _row_losses(model, *columns):
    return model.row_losses(*columns)
