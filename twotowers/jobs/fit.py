"""Fit the lanes of a setting together, and measure each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from twotowers.experiment.parts import TABLE, examination_builder, part_builder, reads_pairs
from twotowers.experiment.registry import build_model, find
from twotowers.experiment.settling import MODEL, TRANSFER
from twotowers.experiment.settling_logs import USER_LANE, listed
from twotowers.jobs.measures import FURTHER, measure
from twotowers.jobs.splits import annotated, read_splits
from twotowers.methods.task import Task
from twotowers.models.protocol import CellModel
from twotowers.models.towers import TOWERS


def fit_setting(
    files: Mapping[str, str | Path],
    setting: Mapping,
    *,
    positions: int,
    seed: int,
    paper: str | None = None,
) -> pd.DataFrame:
    """Fit every lane of a setting and measure it.

    Args:
        files: for a simulated log the rankings per split, `policy` and `clicks`; for one of given
            lists `clicks`, and for `transfer` the rankings and `policy`; for a real one `log`, and
            where its towers read features `documents`, and `annotations` if there are any.
        setting: `model`, `method`, `lanes`, `training` (its values) and `log` (the keys
            `twotowers.workflow.plan.LOG_KEYS`), as `twotowers.experiment.settling` completes them.
            Lanes are all combinations of the log's, and for each of them the method's, parts' and
            training's values.
        positions: positions on a page.
        seed: of the initial parameters, the order of batches and the division of a real log.
        paper: the paper whose own models and methods may be used.

    Returns:
        long form: the lane columns, metric, position, value, model, method, and of drawn lists
        components.

    Raises:
        InputError: the files do not belong together, or a setting is out of range.
    """
    model, method = setting["model"], setting["method"]
    columns = setting["lanes"]["log"]
    logs = [dict(zip(columns, values, strict=True)) for values in product(*columns.values())]
    own = {
        column: values
        for part, columns in setting["lanes"].items()
        if part != "log"
        for column, values in columns.items()
    }
    lanes = [
        (log, dict(zip(own, values, strict=True)))
        for values in product(*own.values())
        for log in range(len(logs))
    ]
    parts = setting["lanes"].get("parts", {})
    by_pair = reads_pairs(model["tower"], paper)
    task = Task(
        model=build_model(model["kind"], paper, **constants(model)),
        tower=_tower(model["tower"], parts, paper),
        examination=examination_builder(model.get("examination", TABLE), parts, paper),
        splits=read_splits(files, setting, logs, positions=positions, seed=seed, by_pair=by_pair),
        lanes=lanes,
        # A list is lanes: the method reads its values from there. The first is a placeholder.
        training={key: listed(value)[0] for key, value in setting["training"].items()},
        positions=positions,
        seed=seed,
        users=_users(setting["log"], logs, paper),
        logs=logs,
    )
    options = {key: value for key, value in method.items() if key != "kind"}
    if options.get("heads"):
        options["heads"] = [
            part_builder("heads", head, name, parts, paper)
            for name, head in options["heads"].items()
        ]
    found = find("methods", method["kind"], paper).load()(task, **options)
    found = [replace(fitted, scores=_remembered(fitted.scores)) for fitted in found]
    test = task.splits["test"]
    judged = annotated(files, model["features"])
    rows = [
        {**logs[log], **values, "metric": metric, "position": position, "value": value}
        for (log, values), fitted in zip(lanes, found, strict=True)
        for metric, position, value in measure(fitted, test, log, judged)
    ]
    further = [FURTHER[kind] for kind in setting.get("measure", [])]
    if "transfer" in setting:
        # By name: most fits need no trees, and the digest of their code should not have them.
        transfer = import_module(TRANSFER).read_transfer(files, task, setting["transfer"])
        further.append(transfer.measure)
    rows += [
        {**logs[log], **values, "position": None, **row}
        for measured in further
        for (log, values), fitted in zip(lanes, found, strict=True)
        for row in measured(fitted, task, log)
    ]
    results = pd.DataFrame(rows).astype({"position": "Int64", "value": float})
    results = results.assign(model=model["kind"], method=method["kind"])
    if "lists" in setting["log"]:
        results["components"] = setting["log"]["lists"]["components"]
    return results


def _remembered(scores: Callable | None) -> Callable | None:
    """The same scores, computed once for the same inputs: several measurements ask for them."""
    known = []

    def remembered(inputs: np.ndarray) -> np.ndarray:
        for before, found in known:
            if before is inputs:
                return found
        known.append((inputs, scores(inputs)))
        return known[-1][1]

    return scores and remembered


def _tower(tower: str | Mapping, lanes: Mapping, paper: str | None):
    """The relevance tower of a task: the name of a plain one, or a function that builds it."""
    plain = isinstance(tower, str) and tower in TOWERS
    return tower if plain else part_builder("towers", tower, "tower", lanes, paper)


def constants(model: Mapping) -> dict:
    """The constants of the click model, without the keys of its towers."""
    return {key: value for key, value in model.items() if key not in MODEL}


def _users(log: Mapping, lanes: list[Mapping], paper: str | None) -> list[CellModel] | None:
    """The user of each lane of a simulated log; None for a real one."""
    user = log.get("user")
    if user is None:
        return None
    given = {key: value for key, value in user.items() if key != "kind"}
    own = [{key: lane[key] for key in given if key in lane} for lane in lanes]
    kinds = [lane.get(USER_LANE, user["kind"]) for lane in lanes]
    return [
        build_model(kind, paper, **{**given, **values})
        for kind, values in zip(kinds, own, strict=True)
    ]
