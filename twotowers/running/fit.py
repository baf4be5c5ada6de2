"""A setting of an experiment: its lanes, fitted together, and what is measured of each."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from twotowers import SPLITS
from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, mask, pad, read_rankings
from twotowers.logs.cells import read_logs
from twotowers.logs.counts import Counts, Rows
from twotowers.logs.lane_sessions import counts_of, read_lane_sessions
from twotowers.logs.observed import observed_splits
from twotowers.logs.policies import ScoredPairs, read_scores
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.protocol import CellModel
from twotowers.models.towers import TOWERS
from twotowers.results.metrics import mrr, ndcg, perplexity, shown_ndcg
from twotowers.running.parts import TABLE, examination_builder, part_builder
from twotowers.running.registry import build_model, find
from twotowers.running.settling import MODEL, listed, queries_of


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
        files: of a simulated log the rankings per split, `policy` and `clicks`; of a real one
            `log`.
        setting: `model`, `method`, `lanes`, `training` (its values) and `log` (`from`, `record`,
            `user`, `queries`, `split`), as `twotowers.running.settling` completes them. All lanes
            but the log's are multiplied with each other and with the log's.
        positions: positions on a page.
        seed: initialises and orders batches; divides a real log.
        paper: whose models and methods may be used, besides the library's.

    Returns:
        long form: the lane columns, metric, position, value.

    Raises:
        InputError: files that do not belong together, or a setting out of range.
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
    load = _observed if setting["log"].get("from") == "dataset" else _simulated
    task = Task(
        model=build_model(model["kind"], paper, **constants(model)),
        tower=_tower(model["tower"], parts, paper),
        examination=examination_builder(model.get("examination", TABLE), parts, paper),
        splits=load(files, setting, logs, positions, seed),
        lanes=lanes,
        # Where values are lanes, the method reads the lanes'; the first stands for all.
        training={key: listed(value)[0] for key, value in setting["training"].items()},
        positions=positions,
        seed=seed,
        users=_users(setting["log"], logs, paper),
    )
    options = {key: value for key, value in method.items() if key != "kind"}
    if options.get("heads"):
        options["heads"] = [
            part_builder("heads", head, name, parts, paper)
            for name, head in options["heads"].items()
        ]
    found = find("methods", method["kind"], paper).load()(task, **options)
    test = task.splits["test"]
    rows = [
        {**logs[log], **values, "metric": metric, "position": position, "value": value}
        for (log, values), fitted in zip(lanes, found, strict=True)
        for metric, position, value in measure(fitted, test, log)
    ]
    return pd.DataFrame(rows).astype({"position": "Int64", "value": float})


def _tower(tower: str | Mapping, lanes: Mapping, paper: str | None):
    """The relevance tower as a task has it: the name of a plain one, or what makes another."""
    plain = isinstance(tower, str) and tower in TOWERS
    return tower if plain else part_builder("towers", tower, "tower", lanes, paper)


def constants(model: Mapping) -> dict:
    """The constants of the click model, without what is said of its towers."""
    return {key: value for key, value in model.items() if key not in MODEL}


def _users(log: Mapping, lanes: list[Mapping], paper: str | None) -> list[CellModel] | None:
    """Who clicked in each lane of a simulated log."""
    user = log.get("user")
    if user is None:
        return None
    given = {key: value for key, value in user.items() if key != "kind"}
    own = [{key: lane[key] for key in given if key in lane} for lane in lanes]
    return [build_model(user["kind"], paper, **{**given, **values}) for values in own]


def _simulated(files, setting, logs, positions: int, seed: int) -> dict[str, Split]:
    log, model = setting["log"], setting["model"]
    about = {split: queries_of(log, split) for split in SPLITS}
    policies = {split: read_scores(files["policy"], *about[split]) for split in SPLITS}
    pages = dict.fromkeys(SPLITS)
    if log.get("record") == "sessions":
        every = {split: policy.pairs for split, policy in policies.items()}
        pages = read_lane_sessions(files["clicks"], logs, pairs=every, length=positions)
    splits = {}
    for split, policy in policies.items():
        pairs, sessions = policy.pairs, pages[split]
        queries, first = about[split]
        lists = _rankings(files[queries], policy, first)
        where = mask(pairs.lengths, positions)
        # Early stopping watches the weighted loss, as published; the test loss is plain.
        splits[split] = Split(
            inputs=tower_inputs(lists, where, model["tower"] == "embedding", model["features"]),
            where=where,
            relevance=pad(policy.relevance, pairs.offsets, positions),
            counts=read_logs(files["clicks"], logs, split=split, pairs=pairs, length=positions)
            if sessions is None
            else counts_of(sessions, len(where), positions),
            sessions=sessions,
            pairs=pairs,
        )
    return splits


def _rankings(path: str | Path, policy: ScoredPairs, first: int | None) -> Rankings:
    lists = read_rankings(path)
    if first is not None and first < len(lists.queries):
        lists = lists.take(np.arange(lists.offsets[first]))
    if not np.array_equal(lists.query, policy.pairs.query):
        raise InputError("its queries are not those of the policy", path=path, field="query")
    return lists


def _observed(files, setting, logs, positions: int, seed: int) -> dict[str, Split]:
    log = setting["log"]
    where, counts = observed_splits(
        files["log"],
        log["split"],
        positions=positions,
        seed=seed,
        bootstrap=log.get("bootstrap", False),
    )
    pairs = np.arange(where.size, dtype=np.int32).reshape(where.shape)
    return {split: Split(pairs, where, None, counts[split]) for split in SPLITS}


def tower_inputs(lists: Rankings, where: np.ndarray, embedded: bool, features: float):
    """What the relevance tower reads: pair numbers, or the first so many features."""
    if embedded:
        return np.arange(where.size, dtype=np.int32).reshape(where.shape)
    width = round(features * lists.features.shape[1])
    return pad(lists.features[:, :width], lists.offsets, where.shape[1])


def measure(fitted: Fitted, test: Split, log: int) -> list[tuple[str, int | None, float]]:
    """Metrics of one lane on its (unweighted) test log: metric, position if of one, value."""
    rows = []
    if fitted.bias is not None:
        bias = fitted.bias - fitted.bias[0]
        rows += [("position_bias", rank, value) for rank, value in enumerate(bias, start=1)]
    if test.relevance is not None:
        scores = fitted.scores(test.inputs)
        rows += [
            ("ndcg@10", None, ndcg(scores, test.relevance, where=test.where).mean()),
            ("mrr@10", None, mrr(scores, test.relevance, where=test.where).mean()),
            ("policy_ndcg@10", None, _policy_ndcg(test, log)),
        ]
    elif fitted.cell_losses is not None:
        rows += perplexities(fitted.cell_losses(test), test.counts, log)
    return [*rows, *((metric, None, value) for metric, value in fitted.values.items())]


def perplexities(losses: np.ndarray, counts: Counts | Rows, log: int) -> list[tuple]:
    """Perplexity at each position that was shown, and their mean."""
    counts = counts.of_log(log)
    shown = counts.impressions
    position = counts.position if isinstance(counts, Rows) else np.arange(shown.shape[-1])
    by_rank = perplexity(losses, shown, np.broadcast_to(position, shown.shape))
    rows = [("perplexity", rank, value) for rank, value in enumerate(by_rank, start=1)]
    return [*rows, ("mean_perplexity", None, np.nanmean(by_rank))]


def _policy_ndcg(test: Split, log: int) -> float:
    sessions = test.counts.sessions[log]
    shown = shown_ndcg(test.counts.of_log(log), test.relevance, where=test.where)
    return shown[sessions > 0].mean()
