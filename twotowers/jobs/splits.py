"""What a fit reads: the splits of a log, and annotated queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from twotowers import ANNOTATIONS, DOCUMENTS, SPLITS
from twotowers.errors import InputError
from twotowers.experiment.settling_logs import DATASET, LISTS, SIMULATION, queries_of
from twotowers.files.rankings import Rankings, mask, pad, read_rankings
from twotowers.jobs.list_files import read_lists
from twotowers.jobs.measures import Judged
from twotowers.logs.cells import read_logs
from twotowers.logs.described import read_documents
from twotowers.logs.lane_sessions import counts_of, read_lane_sessions
from twotowers.logs.observed import observed_splits
from twotowers.logs.observed_pages import observed_pages
from twotowers.logs.policies import ScoredPairs, read_scores
from twotowers.methods.task import Split


def read_splits(
    files: Mapping[str, str | Path],
    setting: Mapping,
    logs: Sequence[Mapping],
    *,
    positions: int,
    seed: int,
    by_pair: bool,
) -> dict[str, Split]:
    """Read the splits of a setting's log.

    Args:
        files, setting, positions, seed: see `twotowers.jobs.fit.fit_setting`.
        logs: the lanes of the log.
        by_pair: whether the relevance tower reads pair numbers, and not features.
    """
    source = setting["log"].get("from", SIMULATION)
    if source == LISTS:
        return read_lists(files["clicks"], logs)
    if source == DATASET:
        return _observed(files, setting, positions, seed, by_pair)
    return _simulated(files, setting, logs, positions, by_pair)


def _simulated(files, setting, logs, positions: int, by_pair: bool) -> dict[str, Split]:
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


def _observed(files, setting, positions: int, seed: int, by_pair: bool) -> dict[str, Split]:
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


def tower_inputs(lists: Rankings, where: np.ndarray, embedded: bool, features: float):
    """The input of the relevance tower: pair numbers, or a first share of the features."""
    if embedded:
        return np.arange(where.size, dtype=np.int32).reshape(where.shape)
    width = round(features * lists.features.shape[1])
    return pad(lists.features[:, :width], lists.offsets, where.shape[1])


def annotated(files: Mapping, features: float) -> Judged | None:
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
