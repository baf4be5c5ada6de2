"""Fit the lanes of a setting together, and measure each of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from weakref import ref

import numpy as np
import pandas as pd

from twotowers.claims.gates import RANKS
from twotowers.experiment.log import Columns, tower_inputs
from twotowers.experiment.parts import combinations, relevance_tower
from twotowers.experiment.settings import Model, Setting
from twotowers.files.rankings import read_rankings
from twotowers.jobs.gates import gates, totals
from twotowers.jobs.measures import FURTHER, QUERIES, Judged, measure, of_annotated
from twotowers.logs.described import Several
from twotowers.methods.task import Fitted, Split, Task
from twotowers.splits import ANNOTATIONS

TRANSFER = "twotowers.jobs.transfer"
"""The module that ranks test queries by trees, if a setting asks for it."""


def fit_setting(
    files: Mapping[str, str | Path],
    setting: Setting,
    *,
    seed: int,
    checkpoint: str | Path | None = None,
) -> pd.DataFrame:
    """Fit every lane of a setting and measure it: long form, with lane columns, model and method.

    Lanes are all combinations of the log's, and for each of them the method's, parts' and
    training's values. `files` are `twotowers.experiment.log.Log.fit_inputs`. The seed is of the
    initial parameters, the order of batches and the division of a real log. A checkpoint keeps the
    state of training, for methods that go on from one.
    """
    kept = checkpoint if setting.method.has("RESUMES") else None
    task, fits = fit_lanes(files, setting, seed=seed, checkpoint=kept)
    judged = annotated(files, setting.model.features)
    measurements: list[Callable] = [partial(_usual, judged)]
    measurements += [
        partial(of_annotated, judged) if kind == QUERIES and judged else FURTHER[kind]
        for kind in setting.measure
    ]
    if setting.transfer:
        # By name: most fits need no trees, and the digest of their code should not have them.
        trees = setting.transfer.model_dump()
        measurements.append(import_module(TRANSFER).transfer(files, task, trees))
    rows = [
        {**task.logs[number], **values, **row}
        for measured in measurements
        for (number, values), fitted in zip(task.lanes, fits, strict=True)
        for row in measured(fitted, task, number)
    ]
    results = pd.DataFrame(rows).astype({"position": "Int64", "value": float})
    names = {"model": setting.model.kind, "method": setting.method.name}
    return results.assign(**names, **setting.log.labels())


def _usual(judged: Judged | None, fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """What every fit reports of a lane."""
    rows = measure(fitted, task.splits["test"], log, judged)
    alone = {metric: value for metric, position, value in rows if position is None}
    for metric, position, value in [*rows, *gates(fitted, task, log, alone)]:
        yield {"metric": metric, "position": position, "value": value}


def fit_lanes(
    files: Mapping[str, str | Path],
    setting: Setting,
    *,
    seed: int,
    checkpoint: str | Path | None = None,
) -> tuple[Task, list[Fitted]]:
    """Fit every lane of a setting: what the method got, and what it found of each lane."""
    log, model, method = setting.log, setting.model, setting.method
    columns = dict(setting.lanes)
    logs = combinations(columns.pop("log"))
    own = combinations({name: each for part in columns.values() for name, each in part.items()})
    splits = _read(log.splits(files, logs, seed=seed, setting=setting), model)
    training = setting.training.arguments() if setting.training else {}
    if training and (steps := log.steps(splits, training["batch"])):
        training.setdefault("steps", steps)
    task = Task(
        model=model.of,
        tower=relevance_tower(model.tower),
        examination=model.examination.arguments(),
        parts=model.parts,
        checkpoint=checkpoint and str(checkpoint),
        splits=splits,
        lanes=[(number, values) for values in own for number in range(len(logs))],
        training=training,
        positions=log.positions,
        seed=seed,
        users=log.users(logs),
        logs=logs,
    )
    return task, [
        replace(
            fitted,
            scores=_remembered(fitted.scores),
            page_losses=_remembered(fitted.page_losses),
            bias=_where_shown(fitted, task, number),
        )
        for fitted, (number, _) in zip(method(task), task.lanes, strict=True)
    ]


def _read(splits: Mapping[str, Split], model: Model) -> dict[str, Split]:
    """The splits with what towers of pairs and of features read, where there are both."""
    if model.needs != {"pair", "features"}:
        return dict(splits)
    mixed = {}
    for name, split in splits.items():
        shape = split.where.shape
        pair = np.arange(split.where.size).reshape(shape) if split.pair is None else split.pair
        own = split.inputs.of if isinstance(split.inputs, Several) else {"features": split.inputs}
        mixed[name] = replace(split, inputs=Several({**own, "pair": pair}))
    return mixed


def _where_shown(fitted: Fitted, task: Task, log: int) -> np.ndarray | None:
    """[positions] bias. It is NaN where training shows nothing: a fit leaves it at its start."""
    train = task.splits["train"]
    if fitted.bias is None or train.factors is not None:
        return fitted.bias
    shown, _ = totals(train, log, RANKS, size=len(fitted.bias))
    known = shown[: len(fitted.bias)] > 0
    return np.where(known, fitted.bias, np.nan)


def _remembered(function: Callable | None) -> Callable | None:
    """The same function, computed once for the same argument: several measurements ask for it."""
    known = []

    def remembered(given: object) -> object:
        for before, found in known:
            if before() is given:
                return found
        known.append((ref(given), function(given)))
        return known[-1][1]

    return function and remembered


def annotated(files: Mapping, features: Columns) -> Judged | None:
    """The annotated documents that come with a log, if its towers can rank them."""
    if ANNOTATIONS not in files:
        return None
    lists = read_rankings(files[ANNOTATIONS])
    labels, where = lists.padded(lists.label)
    return Judged(tower_inputs(lists, where, features), where, labels)
