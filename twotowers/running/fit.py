"""Fit the lanes of a setting together, and measure each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from twotowers import ANNOTATIONS, DOCUMENTS, SPLITS
from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, mask, pad, read_rankings
from twotowers.logs.cells import read_logs
from twotowers.logs.counts import Counts, Rows
from twotowers.logs.described import read_documents
from twotowers.logs.lane_sessions import counts_of, read_lane_sessions
from twotowers.logs.observed import observed_splits
from twotowers.logs.observed_pages import observed_pages
from twotowers.logs.policies import ScoredPairs, read_scores
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.protocol import CellModel
from twotowers.models.towers import TOWERS
from twotowers.results.metrics import (
    arp,
    correlation,
    dcg,
    mrr,
    ndcg,
    perplexity,
    shown_arp,
    shown_ndcg,
)
from twotowers.running.lists import read_lists
from twotowers.running.parts import TABLE, examination_builder, part_builder, reads_pairs
from twotowers.running.registry import build_model, find
from twotowers.running.settling import (
    DATASET,
    LISTS,
    MODEL,
    SIMULATION,
    USER_LANE,
    listed,
    queries_of,
)
from twotowers.running.uncertainty import of_uncertainty


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
            lists `clicks`; for a real one `log`, and where its towers read features `documents`,
            and `annotations` if there are any.
        setting: `model`, `method`, `lanes`, `training` (its values) and `log` (the keys
            `twotowers.running.plan.LOG_KEYS`), as `twotowers.running.settling` completes them.
            Lanes are all combinations of the log's, and for each of them the method's, parts' and
            training's values.
        positions: positions on a page.
        seed: of the initial parameters, the order of batches and the division of a real log.
        paper: the paper whose own models and methods may be used.

    Returns:
        long form: the lane columns, metric, position, value.

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
    load = {SIMULATION: _simulated, DATASET: _observed, LISTS: _listed}[
        setting["log"].get("from", SIMULATION)
    ]
    by_pair = reads_pairs(model["tower"], paper)
    task = Task(
        model=build_model(model["kind"], paper, **constants(model)),
        tower=_tower(model["tower"], parts, paper),
        examination=examination_builder(model.get("examination", TABLE), parts, paper),
        splits=load(files, setting, logs, positions, seed, by_pair),
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
    judged = _judged(files, model["features"])
    rows = [
        {**logs[log], **values, "metric": metric, "position": position, "value": value}
        for (log, values), fitted in zip(lanes, found, strict=True)
        for metric, position, value in measure(fitted, test, log, judged)
    ]
    rows += [
        {**logs[log], **values, "position": None, **row}
        for kind in setting.get("measure", [])
        for (log, values), fitted in zip(lanes, found, strict=True)
        for row in FURTHER[kind](fitted, task, log)
    ]
    return pd.DataFrame(rows).astype({"position": "Int64", "value": float})


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


def _simulated(files, setting, logs, positions: int, seed: int, by_pair: bool) -> dict[str, Split]:
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
            inputs=tower_inputs(lists, where, by_pair, model["features"]),
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


def _observed(files, setting, logs, positions: int, seed: int, by_pair: bool) -> dict[str, Split]:
    log, model = setting["log"], setting["model"]
    if log.get("record") == "sessions":
        found = observed_pages(
            files["log"],
            log["split"],
            positions=positions,
            seed=seed,
            bootstrap=log.get("bootstrap", False),
        )
        inputs = found.pair
        if not by_pair:
            described = read_documents(files[DOCUMENTS])
            width = round(model["features"] * described.features.shape[1])
            inputs = described.features[described.rows(found.document), :width][found.pair]
        return {
            split: Split(
                inputs, found.where, None, found.counts(split), sessions=[found.sessions[split]]
            )
            for split in SPLITS
        }
    where, counts = observed_splits(
        files["log"],
        log["split"],
        positions=positions,
        seed=seed,
        bootstrap=log.get("bootstrap", False),
    )
    pairs = np.arange(where.size, dtype=np.int32).reshape(where.shape)
    return {split: Split(pairs, where, None, counts[split]) for split in SPLITS}


def _listed(files, setting, logs, positions: int, seed: int, by_pair: bool) -> dict[str, Split]:
    return read_lists(files["clicks"], logs, queries=setting["log"]["lists"]["queries"])


def tower_inputs(lists: Rankings, where: np.ndarray, embedded: bool, features: float):
    """The input of the relevance tower: pair numbers, or a first share of the features."""
    if embedded:
        return np.arange(where.size, dtype=np.int32).reshape(where.shape)
    width = round(features * lists.features.shape[1])
    return pad(lists.features[:, :width], lists.offsets, where.shape[1])


@dataclass(frozen=True)
class Judged:
    """Annotated documents of queries that need not be in the log.

    Attributes:
        inputs: [queries, documents, width] what the relevance tower reads.
        where: [queries, documents] bool, False on padding.
        labels: [queries, documents].
    """

    inputs: np.ndarray
    where: np.ndarray
    labels: np.ndarray


def _judged(files: Mapping, features: float) -> Judged | None:
    """The annotated documents that come with a log, if its towers can rank them."""
    if ANNOTATIONS not in files:
        return None
    lists = read_rankings(files[ANNOTATIONS])
    where = mask(lists.lengths, int(lists.lengths.max()))
    return Judged(
        tower_inputs(lists, where, False, features),
        where,
        pad(lists.label, lists.offsets, where.shape[1]),
    )


def measure(
    fitted: Fitted, test: Split, log: int, judged: Judged | None = None
) -> list[tuple[str, int | None, float]]:
    """Metric, position (or None) and value of one lane on its unweighted test log."""
    rows = []
    if judged is not None and fitted.scores is not None:
        rows += _on_annotations(fitted.scores(judged.inputs), judged)
    if fitted.bias is not None:
        bias = fitted.bias - fitted.bias[0]
        rows += [("position_bias", rank, value) for rank, value in enumerate(bias, start=1)]
    if test.relevance is not None:
        if fitted.scores is not None:
            scores = fitted.scores(test.inputs)
            rows += [
                ("ndcg@5", None, ndcg(scores, test.relevance, where=test.where, topn=5).mean()),
                ("ndcg@10", None, ndcg(scores, test.relevance, where=test.where).mean()),
                ("arp", None, arp(scores, test.relevance, where=test.where).mean()),
                ("mrr@10", None, mrr(scores, test.relevance, where=test.where).mean()),
            ]
        rows += _policy(test, log)
    if test.sessions is not None and fitted.page_losses is not None:
        rows += page_perplexities(*fitted.page_losses(test), test.sessions[log].where)
    elif test.relevance is None and fitted.cell_losses is not None:
        rows += perplexities(fitted.cell_losses(test), test.counts, log)
    return [*rows, *((metric, None, value) for metric, value in fitted.values.items())]


def _on_annotations(scores: np.ndarray, judged: Judged) -> list[tuple[str, None, float]]:
    """Means over all annotated queries; those without a relevant document count 0."""
    given = {"where": judged.where}
    return [
        (name, None, metric(scores, judged.labels, **given).mean())
        for name, metric in (("dcg@10", dcg), ("ndcg@10", ndcg), ("mrr@10", mrr))
    ]


def of_validation(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """Loss per impression, lowest watched loss and nDCG@5 on the validation split.

    By these lanes may be chosen. A lane that diverged has an infinite watched loss.
    """
    split = task.splits["validation"]
    if fitted.cell_losses is not None:
        shown = split.counts.of_log(log).impressions.sum()
        yield {"metric": "validation_nll", "value": fitted.cell_losses(split).sum() / shown}
    if fitted.history is not None:
        watched = np.where(np.isfinite(fitted.history), fitted.history, np.inf)
        yield {"metric": "validation_loss", "value": watched.min()}
    yield {"metric": "validation_ndcg@5", "value": _ndcg_at_5(fitted, split).mean()}


def of_recovery(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """How well the simulated user's relevance is recovered: MCC, and nDCG@1 and @3.

    MCC is Pearson's correlation of scores with P(attractive), over the documents of the test split,
    a document that is on several lists once (Chen et al. 2024).
    """
    test = task.splits["test"]
    scores = fitted.scores(test.inputs)
    for topn in (1, 3):
        gains = ndcg(scores, test.relevance, where=test.where, topn=topn)
        yield {"metric": f"ndcg@{topn}", "value": gains.mean()}
    shown = np.flatnonzero(test.where)
    if test.inputs.ndim == 2:
        shown = shown[np.unique(test.inputs.ravel()[shown], return_index=True)[1]]
    truth = expit(task.users[log].truth(test.relevance.ravel()[shown], 1)["attraction"])
    yield {"metric": "mcc", "value": correlation(truth, scores.reshape(1, -1)[:, shown])[0]}


def of_queries(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """nDCG@5 of every test query, by its place in the split, for paired tests."""
    for query, value in enumerate(_ndcg_at_5(fitted, task.splits["test"])):
        yield {"metric": "query_ndcg@5", "query": query, "value": value}


def of_epochs(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
    """The loss that early stopping watched, after each epoch."""
    for epoch, value in enumerate(fitted.history, start=1):
        if not np.isnan(value):
            yield {"metric": "watched_loss", "epoch": epoch, "value": value}


def _ndcg_at_5(fitted: Fitted, split: Split) -> np.ndarray:
    return ndcg(fitted.scores(split.inputs), split.relevance, where=split.where, topn=5)


FURTHER = {
    "validation": of_validation,
    "recovery": of_recovery,
    "queries": of_queries,
    "epochs": of_epochs,
    "uncertainty": of_uncertainty,
}
"""Further measurements, by their name in a setting's `measure`."""


def perplexities(losses: np.ndarray, counts: Counts | Rows, log: int) -> list[tuple]:
    """Perplexity at each shown position, and the mean over positions."""
    counts = counts.of_log(log)
    shown = counts.impressions
    position = counts.position if isinstance(counts, Rows) else np.arange(shown.shape[-1])
    by_rank = perplexity(losses, shown, np.broadcast_to(position, shown.shape))
    rows = [("perplexity", rank, value) for rank, value in enumerate(by_rank, start=1)]
    return [*rows, ("mean_perplexity", None, np.nanmean(by_rank))]


def page_perplexities(alone: np.ndarray, given: np.ndarray, where: np.ndarray) -> list[tuple]:
    """Perplexities and log-likelihoods of pages.

    Args:
        alone, given: [sessions, K] losses of each click, alone and given those above it.
        where: [sessions, K] bool, False behind the end of a page.

    Returns:
        metric, position and value: (conditional) perplexity at each position and its mean over
        positions; and the mean log-likelihood as CLAX has it, over all documents shown, and as
        PyClick has it, over the documents of a session, then over sessions. The two differ where
        pages differ in length.
    """
    position, rows = np.broadcast_to(np.arange(where.shape[1]), where.shape), []
    for prefix, losses in (("", alone), ("conditional_", given)):
        by_rank = perplexity(losses, where, position)
        rows += [(f"{prefix}perplexity", k, value) for k, value in enumerate(by_rank, start=1)]
        rows.append((f"mean_{prefix}perplexity", None, np.nanmean(by_rank)))
    return [
        *rows,
        ("log_likelihood_clax", None, -given.sum() / where.sum()),
        ("log_likelihood_pyclick", None, -(given.sum(1) / where.sum(1)).mean()),
    ]


def _policy(test: Split, log: int) -> Iterator[tuple[str, None, float]]:
    """What the rankings were worth that a log showed: mean over the queries that were asked."""
    counts, asked = test.counts.of_log(log), test.counts.sessions[log] > 0
    for topn in (5, 10):
        shown = shown_ndcg(counts, test.relevance, where=test.where, topn=topn)
        yield f"policy_ndcg@{topn}", None, shown[asked].mean()
    shown = shown_arp(counts, test.relevance, where=test.where)
    yield "policy_arp", None, shown[asked].mean()
