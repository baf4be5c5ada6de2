"""Logs of lists that are drawn with given links between positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, Strict, model_validator

from twotowers.experiment.fields import Config, Listed, Positive, Seed, Share, config_error
from twotowers.experiment.given import NEAREST, GivenLists, lane_table
from twotowers.experiment.log import Files
from twotowers.experiment.parts import truth_of
from twotowers.fitting.tiles import ClickRates
from twotowers.identifiability.graph import (
    Intervention,
    merge_pairs,
    node_intervention,
    node_merging,
    random_intervention,
)
from twotowers.identifiability.linked_lists import Lists, linked_lists, rows_of
from twotowers.methods.alternation import LeastSquares, alternate
from twotowers.models.protocol import PER_DOCUMENT
from twotowers.randomness import stream

CHEAPEST = "cheapest"
"""How a repair swaps, besides swaps at random."""
STEPS = 2000
"""Of the fit whose estimates say which swap costs least. More move them by less than 1e-5."""
SMALLEST = 1e-6
"""Estimates of 0, from documents without a click, would make a swap's cost infinite."""
Pair = Annotated[tuple[Positive, Positive], Strict(False)]
"""Two positions, from 1."""


class Repair(Config):
    """A repair of drawn lists."""

    merge: Literal["nearest"] | Listed[Pair] | None = None
    """Positions that count as one bias factor: pairs, or `nearest`, the pairs that connect the
    graph at least cost."""
    swap: Literal["cheapest", "random"] | None = None
    """How lists are chosen that are shown again with two documents swapped, until the graph is
    connected."""
    split: Literal[True] | None = None
    """Whether every place of every list has a bias factor of its own. This undoes what repairs do:
    only places that show the same document stay connected."""

    @model_validator(mode="after")
    def _one_repair(self) -> Repair:
        if sum(each is not None for each in (self.merge, self.swap, self.split)) > 1:
            raise config_error("two repairs at once", "one of 'merge', 'swap' and 'split'")
        return self


class LinkedLists(Config):
    """Which positions share documents; see `twotowers.identifiability.linked_lists`."""

    components: Positive
    """Connected components that the links make. A column of the results."""
    links: Listed[Pair]
    """Pairs of positions that exchange documents; twice as many if listed twice."""
    documents: Positive
    """Documents that belong to each position."""
    queries: Positive
    """Number of lists."""
    exchanged: Seed
    """Documents of each end of a link that are shown at the other."""
    shares: Annotated[Listed[Share], Field(min_length=1)]
    """Shares of the labels 0, 1, ..."""
    drift: Annotated[Listed[float], Field(min_length=1)]
    """Their change from one position to the next."""
    seed: Seed | None
    """Of the draw, for all runs; null if each seed draws its own."""


class DrawnLists(GivenLists):
    """Lists whose identifiability graph is known: they need no data set and no policy."""

    lists: LinkedLists
    """Which positions share documents."""
    repairs: dict[str, Repair] = Field(min_length=1)
    """Lanes by name (column `repair`), each with what makes its log better identified, or {}."""

    def has_factors(self, lanes: Mapping[str, Sequence]) -> bool:
        repairs = [self.repairs[name] for name in lanes["repair"]]
        return any(repair.merge is not None or repair.split for repair in repairs)

    def labels(self) -> dict[str, int]:
        return {"components": self.lists.components}

    def clicks_inputs(self, files: Files, seed: int) -> dict[str, str]:
        return {}

    def drawn(self, seed: int) -> Lists:
        """The lists that a run of a seed sees."""
        given = self.lists.model_dump()
        own = {"seed": seed} if given["seed"] is None else {}
        return linked_lists(positions=self.positions, **{**given, **own})

    def draw(self, inputs: Mapping[str, str], *, seed: int) -> Iterator[pa.Table]:
        lists, views = self.drawn(seed), self.lanes["views"]
        ((_, user),) = self.user.each()
        truth = truth_of(user, lists.labels.astype(float), self.positions)

        def clicked(purpose: str, documents: np.ndarray, views: float) -> np.ndarray:
            parts = {
                name: values[documents] if user.parts[name] == PER_DOCUMENT else values
                for name, values in truth.items()
            }
            chance = np.broadcast_to(user.click_probability(**parts), documents.shape)
            return stream(purpose, seed, views).binomial(int(views), chance)

        clicks = {number: clicked("clicks", lists.documents, number) for number in views}
        swapping = any(repair.swap for repair in self.repairs.values())
        estimates = _estimates(lists, clicks) if swapping else {}
        queries = len(lists.documents)
        for name, repair in self.repairs.items():
            merged = merged_positions(lists, repair.merge or ())
            for number, given in clicks.items():
                documents, ids = lists.documents, np.arange(len(lists.documents))
                if repair.swap:
                    rows, rng = lists.rows, stream("random swaps", seed, number)
                    swap = (
                        node_intervention(*rows, *estimates[number])
                        if repair.swap == CHEAPEST
                        else random_intervention(*rows, *estimates[number], rng=rng)
                    )
                    added = with_swap(documents, swap)
                    # Lanes add different lists, so each of them has a number of its own.
                    ids = np.append(ids, queries + np.arange(len(added)))
                    queries += len(added)
                    documents = np.concatenate([documents, added])
                    given = np.concatenate([given, clicked(name, added, number)])
                document, position = rows_of(documents)
                listed = np.repeat(ids, documents.shape[1])
                columns = {
                    "query": listed,
                    "given": listed < len(lists.documents),
                    "document": document,
                    "position": position + 1,
                    "factor": np.arange(len(position)) if repair.split else merged[position],
                    "relevance": lists.labels[document],
                    "impressions": np.full(len(document), int(number)),
                    "clicks": given.ravel(),
                }
                yield lane_table({"repair": name, "views": number}, columns)


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
    fitted = alternate(rates, np.ones((len(rate), len(merged))), LeastSquares(), steps=STEPS)
    pairs = zip(fitted.relevance, fitted.examination[:, merged], strict=True)
    positive = [tuple(np.maximum(each, SMALLEST) for each in pair) for pair in pairs]
    return dict(zip(clicks, positive, strict=True))


def with_swap(documents: np.ndarray, swap: Intervention) -> np.ndarray:
    """[swaps, positions] for each swap a list that shows its document, with two documents swapped.

    Chen et al. (2024) add one (document, position) in the text. Their data shows a whole list again
    in which two documents have changed places. Factors of `swap` are positions, from 0.

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
