"""Maximum likelihood of clicks by gradient descent, all lanes in one compiled program.

The objective is the negative log-likelihood per document, averaged over a session's documents and
then over sessions (Hager et al. 2025, Eq. 3; Eq. 22 with weighting "ips"). If the log is recorded
as sessions, a step uses a batch of sessions. If it is recorded as cells, a step uses a batch of
queries. The objective is the same. With the additive model this is the two-tower method.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree
from scipy.special import expit

from twotowers.errors import InputError
from twotowers.fitting.em import Estimate
from twotowers.fitting.gradient import Fit
from twotowers.fitting.lane_steps import mean_loss
from twotowers.fitting.streaming import StreamLoss
from twotowers.losses.likelihood import CountLoss, SessionLoss
from twotowers.methods.descent import (
    Weighting,
    cell_losses,
    count_loss,
    descend,
    dropped_losses,
    page_losses,
    some_sessions,
    split_loss,
    towers_of,
    widths_of,
)
from twotowers.methods.page_fits import statistics_of
from twotowers.methods.task import CERTAIN, Fitted, Task
from twotowers.models.protocol import PER_DOCUMENT, CellModel, is_examination
from twotowers.models.relevance import HIGHEST, rescale
from twotowers.towers.baseline import BaselineTower
from twotowers.towers.embedding import EmbeddingTower
from twotowers.towers.lane import Lane, Lanes
from twotowers.towers.page_towers import BIAS, FEATURES, PAIR, PLACE, PageTowers, Reading
from twotowers.towers.parts import Constant, value_of
from twotowers.towers.two_towers import TOWERS, TwoTowers, scores

TRAINS = True


def fit(
    task: Task,
    *,
    weighting: Lanes[Weighting] = "none",
    start: Lanes[Literal["random", "zero", "truth"]] = "random",
    stop_on: Literal["validation", "train"] = "validation",
    heads: Sequence[Callable] = (),
) -> list[Fitted]:
    """Fit the model by maximum likelihood, once per lane, in the order of lanes.

    Early stopping uses the loss with `weighting`, as the code of Hager et al. (2025) does.

    Args:
        task: its model, towers and data.
        weighting: how impressions are weighted (`Weighting`), in all lanes or in each.
        start: where parameters start; "truth" is those of the simulated user.
        stop_on: the split whose loss stops a lane and chooses its parameters, "validation" or
            "train". For a log of sessions, "train" uses as many training sessions as there are
            validation sessions.
        heads: functions that build the heads, whose losses are added in training
            (`twotowers.towers.head`). A head that reads predictions gets those of the same towers,
            trained before without heads.
    """
    logs = [log for log, _ in task.lanes]
    lanes = list(zip(logs, task.each(weighting), strict=True))
    train = split_loss(task.splits["train"], lanes)
    validation = train if stop_on == "train" else split_loss(task.splits["validation"], lanes)
    if isinstance(train, SessionLoss) and stop_on == "train":
        validation = some_sessions(train, len(task.splits["validation"].sessions[0].query))
    model = built(task, heads)
    again = partial(fit, weighting=weighting, start=start, stop_on=stop_on)
    if heads:
        assert not isinstance(train, StreamLoss)  # A log streams for the likelihood alone.
        train = replace(train, labels=_labels(task, model, again))
    starts = starts_of(task, model, start)
    result = descend(task, model, train, validation, weighting, start, starts=starts)
    if isinstance(model, PageTowers):
        return [_fitted_pages(task, result, lane, log) for lane, log in enumerate(logs)]
    test = count_loss(task.splits["test"])
    return [_fitted(task, result, lane, log, test) for lane, log in enumerate(logs)]


def built(task: Task, heads: Sequence[Callable] = ()) -> TwoTowers | PageTowers:
    """`TwoTowers` for a model of cells whose only towers are relevance, of documents, and
    examination, of positions; `PageTowers` for all others."""
    widths = widths_of(task)
    alone = isinstance(task.model, CellModel) and "attraction" in task.model.parts
    if alone and not task.parts and BIAS not in widths:
        return towers_of(task, task.model, heads)
    parts = {part: _reading(task, part, kind, widths) for part, kind in task.model.parts.items()}
    return PageTowers(task.model, parts, widths, task.positions, rngs=nnx.Rngs(task.seed))


def _reading(task: Task, part: str, kind: str, widths: Mapping) -> Reading | str | None:
    """The tower of a part, None for a table, or the part whose tower it shares."""
    tower = task.parts.get(part)
    if tower is None and kind == PER_DOCUMENT:
        tower = TOWERS[task.tower] if isinstance(task.tower, str) else task.tower
    elif tower is None and is_examination(part):
        tower = task.examination.get("examination")
    if tower is None or isinstance(tower, str):
        return None if tower == "table" else tower
    if getattr(tower, "BY_PAIR", False) or getattr(tower, "traits", ()):
        return Reading(tower, (PAIR,))
    usual = "documents" if kind == PER_DOCUMENT else "positions"
    reads = getattr(tower, "reads", "") or usual
    names = {"documents": [FEATURES], "positions": [PLACE, BIAS], "both": [FEATURES, PLACE, BIAS]}
    return Reading(tower, tuple(name for name in names[reads] if name in {*widths, PLACE}))


def predicting(model: TwoTowers | PageTowers, log: int = 0) -> Fitted:
    """What trained towers predict of a log: scores, position bias, and losses of clicks."""
    pages = isinstance(model, PageTowers)
    bias = None if pages else _position_bias(model)
    if not pages:
        scored = partial(scores, model.relevance)
    else:
        scored = partial(_page_scores, model) if model.scored else None
    return Fitted(
        scores=scored and (lambda inputs: np.asarray(scored(jax.tree.map(jnp.asarray, inputs)))),
        bias=None if bias is None else np.asarray(bias, float),
        cell_losses=None if pages else lambda split: cell_losses(model, split, log),
        page_losses=lambda split: page_losses(model, split, log),
        towers=model,
    )


def _fitted(task: Task, result: Fit, lane: int, log: int, test: CountLoss) -> Fitted:
    model = result.model(lane)
    state = jax.tree.map(lambda leaf: leaf[lane], result.state)
    rate = float(value_of(model.dropout))
    return replace(
        predicting(model, log),
        values={"nll": _loss(result.graph, state, log, test), "epochs": result.epochs[lane]},
        history=result.history[:, lane],
        dropout=rate,
        dropped_losses=(lambda split: dropped_losses(model, split, log)) if rate else None,
        estimate=_estimate(
            {"attraction": model.relevance}, lambda: {"examination": model.examination}, task, log
        ),
    )


def _fitted_pages(task: Task, result: Fit, lane: int, log: int) -> Fitted:
    model = result.model(lane)
    return replace(
        predicting(model, log),
        values={"epochs": result.epochs[lane], "validation_loss": result.loss[lane]},
        history=result.history[:, lane],
        estimate=_estimate(
            model.towers, lambda: {p: each[...] for p, each in model.tables.items()}, task, log
        ),
    )


def _estimate(
    towers: Mapping, tables: Callable[[], Mapping], task: Task, log: int
) -> Estimate | None:
    """The probabilities of each part; None where pairs have not one of their own."""
    own = all(isinstance(tower, EmbeddingTower | BaselineTower) for tower in towers.values())
    if not own or task.parts or task.splits["train"].stream is not None:
        return None
    logits = {part: np.ravel(each) for part, each in tables().items()}
    for part, tower in towers.items():
        logits[part] = np.asarray(tower(jnp.arange(tower.pairs)))
    parameters = {part: expit(np.asarray(logits[part], float)) for part in task.model.parts}
    return Estimate(parameters, source=partial(statistics_of, task, log))


def _labels(task: Task, model: TwoTowers, again: Callable) -> dict[str, jax.Array]:
    """Name -> [lanes, queries, documents] labels that the model's heads read."""
    wanted = {name for head in model.heads for name in head.labels}
    train, labels = task.splits["train"], {}
    if "relevance" in wanted:
        if train.relevance is None:
            raise InputError(
                "the relevance of a real log is unknown", field="heads", expected="another label"
            )
        labels["relevance"] = np.repeat(train.relevance[None] / HIGHEST, len(task.lanes), axis=0)
    if "prediction" in wanted:
        labels["prediction"] = _predictions(task, model, again)
    return {name: jnp.asarray(each, jnp.float32) for name, each in labels.items()}


def _predictions(task: Task, model: TwoTowers, again: Callable) -> np.ndarray:
    """[lanes, queries, documents] scores of relevance towers trained without heads (`again`), one
    per log.

    Scores have no scale of their own, so their 5th and 95th percentiles become 0 and 1.
    """
    theirs = nnx.state(model.heads, Constant)
    leaves = jax.tree.leaves(theirs, is_leaf=lambda leaf: isinstance(leaf, Constant))
    columns = {leaf.column for leaf in leaves}
    lanes = {}
    for log, values in task.lanes:
        own = {name: value for name, value in values.items() if name not in columns}
        lanes.setdefault(log, own)
    train = task.splits["train"]
    trained = again(replace(task, lanes=list(lanes.items())))
    predicted = {}
    for log, before in zip(lanes, trained, strict=True):
        predicted[log] = np.zeros(train.where.shape)
        predicted[log][train.where] = rescale(before.scores(train.inputs)[train.where]) / HIGHEST
    return np.stack([predicted[log] for log, _ in task.lanes])


# Compiled, because dispatching the single operations of a deep tower takes longer for each lane.
_position_bias = jax.jit(lambda model: model.position_bias)
_loss = jax.jit(
    lambda graph, state, lane, objective: mean_loss(graph, state, lane, objective=objective),
    static_argnums=0,
)


@nnx.jit
def _page_scores(model, inputs):
    return model.scores(inputs)


def starts_of(task: Task, model: TwoTowers, start: str | Lane) -> jax.Array | None:
    """The `starts` of `twotowers.fitting.gradient.fit`: [lanes, parameters of a model].

    Parameters of the fresh model are the start "random"; None if all lanes start so.
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
