"""Logs of lists that are given and not ranked: simulated with repairs as lanes, written and read.

Each list is shown as often, so clicks are counts per place. Documents keep their number on every
list. A repair merges positions into one bias factor, or adds lists in which two documents have
changed places (Chen et al. 2024, Section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers import SPLITS
from twotowers.files.artefacts import atomic
from twotowers.files.tables import read_table
from twotowers.fitting.alternating import LeastSquares, alternate
from twotowers.fitting.click_rates import ClickRates
from twotowers.identifiability.intervention import (
    Intervention,
    node_intervention,
    random_intervention,
)
from twotowers.identifiability.linked_lists import Lists, linked_lists, rows_of
from twotowers.identifiability.merging import merge_pairs, node_merging
from twotowers.logs.cells import Lane
from twotowers.logs.counts import Rows
from twotowers.methods.task import Split
from twotowers.models.protocol import PER_DOCUMENT
from twotowers.randomness import stream
from twotowers.running.simulation import users_of

NEAREST, CHEAPEST = "nearest", "cheapest"
"""What a repair merges and how it swaps, besides pairs that are told and swaps at random."""
STEPS = 2000
"""Of the fit whose estimates say which swap costs least. More move them by less than 1e-5."""
SMALLEST = 1e-6
"""Estimates of 0, from documents without a click, would make a swap's cost infinite."""

TYPES = {
    "query": pa.int64(),
    "document": pa.int64(),
    "position": pa.int32(),
    "factor": pa.int32(),
    "relevance": pa.float32(),
    "impressions": pa.int64(),
    "clicks": pa.int64(),
}
"""The columns of a file, besides those of its lanes."""


def simulate_lists(
    log: Mapping, *, positions: int, seed: int, paper: str | None = None
) -> Iterator[pa.Table]:
    """Yield the log of each lane, a row per place. Repairs share the clicks on the given lists.

    Args:
        log: `lists`, `repairs`, `lanes` and `user`, as `twotowers.running.settling` completes them.
        positions: places of a list.
        seed: of clicks and random swaps, and of lists that have no seed of their own.
        paper: the paper whose own users may be used.
    """
    own = {"seed": seed} if log["lists"]["seed"] is None else {}
    lists = linked_lists(positions=positions, **{**log["lists"], **own})
    ((_, user),) = users_of(log["user"], log["lanes"], paper)
    truth = user.truth(lists.labels.astype(float), positions)

    def clicked(purpose: str, documents: np.ndarray, views: float) -> np.ndarray:
        parts = {
            name: values[documents] if user.parts[name] == PER_DOCUMENT else values
            for name, values in truth.items()
        }
        chance = np.broadcast_to(user.click_probability(**parts), documents.shape)
        return stream(purpose, seed, views).binomial(int(views), chance)

    clicks = {views: clicked("clicks", lists.documents, views) for views in log["lanes"]["views"]}
    swapping = any("swap" in repair for repair in log["repairs"].values())
    estimates = _estimates(lists, clicks) if swapping else {}
    queries = len(lists.documents)
    for name, repair in log["repairs"].items():
        merged = merged_positions(lists, repair.get("merge", []))
        for views, given in clicks.items():
            documents, number = lists.documents, np.arange(len(lists.documents))
            if "swap" in repair:
                rng = stream("random swaps", seed, views)
                swap = _swap(repair["swap"], lists, *estimates[views], rng)
                added = with_swap(documents, swap)
                # Lanes add different lists, so each of them has a number of its own.
                number = np.append(number, queries + np.arange(len(added)))
                queries += len(added)
                documents = np.concatenate([documents, added])
                given = np.concatenate([given, clicked(name, added, views)])
            lane = {"repair": name, "views": views}
            yield _table(lane, number, documents, merged, lists.labels, given)


def _table(lane: Lane, number, documents, merged, labels, clicks) -> pa.Table:
    document, position = rows_of(documents)
    rows = len(document)
    columns = {
        "query": np.repeat(number, documents.shape[1]),
        "document": document,
        "position": position + 1,
        "factor": merged[position],
        "relevance": labels[document],
        "impressions": np.full(rows, int(lane["views"])),
        "clicks": clicks.ravel(),
    }
    columns = {name: pa.array(values, TYPES[name]) for name, values in columns.items()}
    return pa.table({name: pa.repeat(value, rows) for name, value in lane.items()} | columns)


def merged_positions(lists: Lists, merge: str | Sequence) -> np.ndarray:
    """[positions] bias factor of each, after merging pairs of positions, from 1, or the nearest."""
    positions = lists.documents.shape[1]
    if merge == NEAREST:
        return node_merging(*lists.rows, np.arange(positions, dtype=float)[:, None]).merged
    return merge_pairs(np.asarray(merge, int).reshape(-1, 2) - 1, positions)


def _estimates(lists: Lists, clicks: Mapping[float, np.ndarray]) -> dict[float, tuple]:
    """By number of views, relevance and examination as fitted with the nearest positions merged.

    "We trained the ranking model and observation model using node merging and used their values to
    implement the cost function" (Chen et al. 2024, Appendix C.3).
    """
    merged, (feature, position) = merged_positions(lists, NEAREST), lists.rows
    rate = np.stack([given.ravel() / views for views, given in clicks.items()])
    factor = np.tile(merged[position], (len(rate), 1))
    rates = ClickRates(feature, factor, rate, np.ones_like(rate), len(lists.labels), len(merged))
    found = alternate(rates, np.ones((len(rate), len(merged))), LeastSquares(), steps=STEPS)
    pairs = zip(found.relevance, found.examination[:, merged], strict=True)
    positive = [tuple(np.maximum(each, SMALLEST) for each in pair) for pair in pairs]
    return dict(zip(clicks, positive, strict=True))


def _swap(kind: str, lists: Lists, relevance, examination, rng) -> Intervention:
    if kind == CHEAPEST:
        return node_intervention(*lists.rows, relevance, examination)
    return random_intervention(*lists.rows, relevance, examination, rng=rng)


def with_swap(documents: np.ndarray, swap: Intervention) -> np.ndarray:
    """[swaps, positions] for each swap a list that shows its document, with two documents swapped.

    Chen et al. (2024) add one (document, position) in the text. Their data shows a whole list again
    in which two documents have changed places.

    Args:
        documents: [queries, positions].
        swap: its factors are positions, from 0.

    Example:
        >>> swap = Intervention(*map(np.array, ([7], [0], [1], [1.0])))
        >>> with_swap(np.array([[5, 6], [7, 8]]), swap)
        array([[8, 7]])
    """
    added = []
    for document, source, target in zip(swap.feature, swap.source, swap.target, strict=True):
        again = documents[np.flatnonzero(documents[:, source] == document)[0]].copy()
        again[[source, target]] = again[[target, source]]
        added.append(again)
    return np.array(added, int).reshape(-1, documents.shape[1])


def write_lists(path: str | Path, lanes: Iterable[pa.Table]) -> None:
    """Write what `simulate_lists` yields, all or nothing: a parquet file."""
    with atomic(path) as temporary:
        pq.write_table(pa.concat_tables(lanes), temporary, compression="zstd")


def read_lists(path: str | Path, lanes: Sequence[Lane], *, queries: int) -> dict[str, Split]:
    """The splits of some lanes: all lists to train on, and those given to measure on.

    Args:
        path: from `write_lists`.
        lanes: the wanted lanes, each with a value per lane column.
        queries: number of lists that no repair added.

    Raises:
        InputError: the file cannot be read, or has other columns.
    """
    names = [pa.string() if isinstance(value, str) else pa.float64() for value in lanes[0].values()]
    table = read_table(path, dict(zip(lanes[0], names, strict=True)) | TYPES).to_pandas()
    parts = [
        table[np.logical_and.reduce([table[name] == value for name, value in lane.items()])]
        for lane in lanes
    ]
    shown = np.unique(np.concatenate([part["query"] for part in parts]))
    shape = len(shown), int(table["position"].max())
    inputs, relevance = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    impressions, clicks = (np.zeros((len(lanes), *shape), np.int64) for _ in range(2))
    position = np.broadcast_to(np.arange(shape[1]), impressions.shape)
    factors = position.copy()
    for lane, part in enumerate(parts):
        at = np.searchsorted(shown, part["query"]), part["position"] - 1
        inputs[at], relevance[at] = part["document"], part["relevance"]
        for values, name in (factors, "factor"), (impressions, "impressions"), (clicks, "clicks"):
            values[lane][at] = part[name]

    def split(lists: slice) -> Split:
        columns = (each[:, lists] for each in (position, position, impressions, clicks))
        return Split(
            inputs[lists], np.ones_like(inputs[lists], bool), relevance[lists], Rows(*columns),
            factors=factors[:, lists],
        )  # fmt: skip

    parts_of = dict.fromkeys(SPLITS, slice(queries)) | {"train": slice(None)}
    return {name: split(lists) for name, lists in parts_of.items()}
