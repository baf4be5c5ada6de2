"""Logs of lists as a ranker sorts them, whose places have context types, with repairs as lanes.

Users see the first documents of each training query, every list equally often. A document is its
feature vector, so that it may be on many lists, with a label on each of them. A user examines by
position and context (Chen et al. 2024, Section 5.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.rankings import mask
from twotowers.identifiability.contexts import (
    Places,
    assign_contexts,
    bias_features,
    context_vectors,
    vector_ids,
)
from twotowers.identifiability.merging import node_merging
from twotowers.jobs.list_files import lane_table
from twotowers.jobs.simulation import users_of
from twotowers.models.position_based import PositionBased
from twotowers.models.protocol import CellModel
from twotowers.randomness import stream
from twotowers.rankers.displayed import displayed


def simulate_ranked(
    log: Mapping,
    files: Mapping[str, str],
    *,
    positions: int,
    seed: int,
    paper: str | None = None,
) -> Iterator[pa.Table]:
    """Yield the log of each lane, a row per place. Repairs share the clicks.

    Args:
        log: `contexts`, `repairs`, `lanes` and `user`, as `twotowers.experiment.settling_logs`
            completes them.
        files: the rankings `train`, and their ranker's `policy`.
        positions: places of a list; longer lists are cut.
        seed: of clicks.
        paper: the paper whose own users may be used.

    Raises:
        InputError: the user is not position-based, or the files do not belong together.
    """
    lists = displayed(files["train"], files["policy"], top=positions)
    document = vector_ids(lists.features)
    vectors, places, described = contexts_of(log["contexts"], lists.lengths, positions)
    ((_, user),) = users_of(log["user"], log["lanes"], paper)
    chance = click_chance(user, lists.label, vectors, places.shown, positions)
    clicks = {
        views: stream("clicks", seed, views).binomial(int(views), chance)
        for views in log["lanes"]["views"]
    }
    position = np.nonzero(mask(lists.lengths, positions))[1]
    columns = {
        "query": np.repeat(np.arange(len(lists.lengths)), lists.lengths),
        "given": np.full(len(document), True),
        "document": document,
        "position": position + 1,
        "relevance": lists.label,
    }
    for name, repair in log["repairs"].items():
        columns["factor"] = factors_of(repair, document, places, described)
        for views, clicked in clicks.items():
            columns["impressions"] = np.full(len(document), int(views))
            columns["clicks"] = clicked
            yield lane_table({"repair": name, "views": views}, columns)


def contexts_of(
    drawn: Mapping, lengths: np.ndarray, positions: int
) -> tuple[np.ndarray, Places, np.ndarray]:
    """The context types of a log, and who got which.

    Args:
        drawn: `contexts` of the log.
        lengths: [lists] numbers of documents.
        positions: places of a list.

    Returns:
        [types, features] vectors of the context types; the places of the lists; and
        [types * positions, features + 1] bias features, by number of the factor.
    """
    types, seed = drawn["types"], drawn["seed"]
    width, deviation = drawn["features"], drawn["deviation"]
    vectors = context_vectors(types, width=width, deviation=deviation, seed=seed)
    places = assign_contexts(lengths, types, positions=positions, seed=seed)
    weight = drawn["position_weight"]
    return vectors, places, bias_features(vectors, positions=positions, weight=weight)


def click_chance(
    user: CellModel, label: np.ndarray, vectors: np.ndarray, factor: np.ndarray, positions: int
) -> np.ndarray:
    """[rows] P(click) of each display.

    Args:
        user: who clicks.
        label: [rows] labels of the documents.
        vectors: [types, features] of the context types.
        factor: [rows] bias factor of each display.
        positions: places of a list.

    Raises:
        InputError: the user is not position-based, or a label is beyond its highest.
    """
    if not isinstance(user, PositionBased):
        raise InputError(
            f"{type(user).__name__} does not examine places", field="user",
            expected="'position_based', or one of its kind",
        )  # fmt: skip
    attractive = user.attractive(label.astype(float))
    if (wrong := ~((attractive >= 0) & (attractive <= 1))).any():
        chance = f"{attractive[wrong][0]:.3g}"
        raise InputError(
            f"a document of label {label[wrong][0]:g} is attractive with a chance of {chance}",
            field="user", expected="a 'highest' that no label exceeds",
        )  # fmt: skip
    return attractive * user.examined_in(vectors, positions)[np.divmod(factor, positions)]


def factors_of(
    repair: Mapping, document: np.ndarray, places: Places, described: np.ndarray
) -> np.ndarray:
    """[rows] bias factor of each display, from 0 without gaps, after a repair.

    Args:
        repair: `merge`, and whether `empty` places count as displays of one vector when the graph
            is looked at. The published code counts them, which joins their factors, and spares them
            a merge.
        document: [rows] number of each display's feature vector.
        places: bias factors before the repair.
        described: [factors, dimensions] bias features, by which merging measures distance.
    """
    if "merge" not in repair:
        return np.unique(places.shown, return_inverse=True)[1]
    rows = places.padded(document) if repair.get("empty") else (document, places.shown)
    seen, factor = np.unique(rows[1], return_inverse=True)
    merged = node_merging(rows[0], factor, described[seen]).merged[factor[: len(document)]]
    return np.unique(merged, return_inverse=True)[1]
