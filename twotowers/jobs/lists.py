"""Logs of lists that are drawn with given links, simulated with repairs as lanes.

Each list is shown as often, so clicks are counts per place. Documents keep their number on every
list. A repair merges positions into one bias factor, or adds lists in which two documents have
changed places (Chen et al. 2024, Section 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from twotowers.experiment.settling_logs import NEAREST
from twotowers.fitting.alternating import LeastSquares, alternate
from twotowers.fitting.click_rates import ClickRates
from twotowers.identifiability.intervention import (
    Intervention,
    node_intervention,
    random_intervention,
)
from twotowers.identifiability.linked_lists import Lists, linked_lists, rows_of
from twotowers.identifiability.merging import merge_pairs, node_merging
from twotowers.jobs.list_files import lane_table
from twotowers.jobs.simulation import users_of
from twotowers.models.protocol import PER_DOCUMENT
from twotowers.randomness import stream

CHEAPEST = "cheapest"
"""How a repair swaps, besides swaps at random."""
STEPS = 2000
"""Of the fit whose estimates say which swap costs least. More move them by less than 1e-5."""
SMALLEST = 1e-6
"""Estimates of 0, from documents without a click, would make a swap's cost infinite."""


def simulate_lists(
    log: Mapping, *, positions: int, seed: int, paper: str | None = None
) -> Iterator[pa.Table]:
    """Yield the log of each lane, a row per place. Repairs share the clicks on the given lists.

    Args:
        log: `lists`, `repairs`, `lanes` and `user`, as
            `twotowers.experiment.settling_logs` completes them.
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
            document, position = rows_of(documents)
            listed = np.repeat(number, documents.shape[1])
            columns = {
                "query": listed,
                "given": listed < len(lists.documents),
                "document": document,
                "position": position + 1,
                "factor": merged[position],
                "relevance": lists.labels[document],
                "impressions": np.full(len(document), int(views)),
                "clicks": given.ravel(),
            }
            yield lane_table({"repair": name, "views": views}, columns)


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
