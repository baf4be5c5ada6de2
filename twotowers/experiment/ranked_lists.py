"""Logs of lists as a ranker sorts them, whose places have context types.

Users see the first documents of each training query, every list equally often. A document is its
feature vector, so that it may be on many lists, with a label on each of them. A user examines by
position and context (Chen et al. 2024, Section 5.2). A place gets one of some context types at
random. A bias factor is a (context, position), numbered context * positions + position, with
positions from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from twotowers.errors import InputError
from twotowers.experiment.fields import Config, NotNegative, Positive, Seed
from twotowers.experiment.given import GivenLists, lane_table
from twotowers.experiment.log import Files
from twotowers.experiment.simulated import ANNOTATED, RankerName
from twotowers.files.rankings import mask
from twotowers.identifiability.graph import node_merging
from twotowers.logs.policies import displayed
from twotowers.models.position_based import PositionBased
from twotowers.models.protocol import CellModel
from twotowers.randomness import stream


class Contexts(Config):
    """Context types of places, drawn uniformly at random (`twotowers.experiment.ranked_lists`)."""

    types: Positive
    """Number of context types."""
    features: Positive
    """Length of the vector of a context type."""
    deviation: NotNegative
    """Standard deviation of its elements, which are normal."""
    position_weight: NotNegative
    """By which positions are multiplied when a distance of bias factors is measured."""
    seed: Seed
    """Of the draw, for all runs."""


class OneRanker(Config):
    """Who sorts the lists, once for all runs."""

    ranker: RankerName
    """The ranker, one of `rankers`, or 'expert', which sorts by relevance."""
    seed: Seed
    """Its seed, which all runs share."""


class Merging(Config):
    """A repair of lists that a ranker sorts."""

    merge: Literal["nearest"] | None = None
    """Bias factors that count as one: pairs that connect the graph at least cost."""
    empty: Literal[True] | None = None
    """Whether places behind the end of short lists then count as displays of one document."""


class RankedLists(GivenLists):
    """The first documents of each training query, sorted by a ranker that was trained on labels."""

    RANKED: ClassVar[bool] = True

    dataset: str
    """The data set with the documents."""
    policy: OneRanker
    """Who sorts them."""
    contexts: Contexts
    """The context types of places."""
    repairs: dict[str, Merging] = Field(min_length=1)
    """Lanes by name (column `repair`), each with what makes its log better identified, or {}."""

    @property
    def datasets(self) -> list[str]:
        return [self.dataset]

    def has_factors(self, lanes: Mapping[str, Sequence]) -> bool:
        return True

    def ranking(self, seed: int) -> dict[str, Any]:
        return {"relevance": ANNOTATED, **self.policy.model_dump()}

    def clicks_inputs(self, files: Files, seed: int) -> dict[str, str]:
        return {
            "train": files.path("rankings", dataset=self.dataset, split="train"),
            "policy": files.path("policy", dataset=self.dataset, **self.ranking(seed)),
        }

    def fit_inputs(self, files: Files, seed: int, setting: Any) -> dict[str, str]:
        clicks = super().fit_inputs(files, seed, setting)
        if setting.transfer is None:
            return clicks
        test = {"test": files.path("rankings", dataset=self.dataset, split="test")}
        return {**self.clicks_inputs(files, seed), **test, **clicks}

    def draw(self, inputs: Mapping[str, str], *, seed: int) -> Iterator[pa.Table]:
        """Yield the rows of each lane."""
        lists = displayed(inputs["train"], inputs["policy"], top=self.positions)
        document = vector_ids(lists.features)
        vectors, places, described = contexts_of(self.contexts, lists.lengths, self.positions)
        ((_, user),) = self.user.each()
        chance = click_chance(user, lists.label, vectors, places.shown, self.positions)
        clicks = {
            views: stream("clicks", seed, views).binomial(int(views), chance)
            for views in self.lanes["views"]
        }
        position = np.nonzero(mask(lists.lengths, self.positions))[1]
        columns = {
            "query": np.repeat(np.arange(len(lists.lengths)), lists.lengths),
            "given": np.full(len(document), True),
            "document": document,
            "position": position + 1,
            "relevance": lists.label,
        }
        for name, repair in self.repairs.items():
            columns["factor"] = factors_of(repair, document, places, described)
            for views, clicked in clicks.items():
                columns["impressions"] = np.full(len(document), int(views))
                columns["clicks"] = clicked
                yield lane_table({"repair": name, "views": views}, columns)


def contexts_of(
    drawn: Contexts, lengths: np.ndarray, positions: int
) -> tuple[np.ndarray, Places, np.ndarray]:
    """The context types of a log, and who got which.

    [types, features] vectors X_t of the context types, normal with mean 0 (Chen et al. 2024,
    Appendix C.2); the places of the lists, of `lengths` [lists]; and [types * positions, features
    + 1] X_t and the weighted position from 0, by number of the factor. Node merging compares these:
    the weight makes positions count more in a distance.
    """
    types, seed = drawn.types, drawn.seed
    shape = types, drawn.features
    vectors = stream("context vectors", seed).normal(0, drawn.deviation, shape)
    places = assign_contexts(lengths, types, positions=positions, seed=seed)
    position = np.tile(drawn.position_weight * np.arange(positions), types)
    return vectors, places, np.column_stack([np.repeat(vectors, positions, axis=0), position])


def click_chance(
    user: CellModel, label: np.ndarray, vectors: np.ndarray, factor: np.ndarray, positions: int
) -> np.ndarray:
    """[rows] P(click) of each display, from label, bias factor, and vectors [types, features]."""
    if not isinstance(user, PositionBased):
        raise InputError(
            f"{type(user).__name__} does not examine places",
            field="user",
            expected="'position_based', or one of its kind",
        )
    attractive = user.attractive(label.astype(float))
    if (wrong := ~((attractive >= 0) & (attractive <= 1))).any():
        chance = f"{attractive[wrong][0]:.3g}"
        raise InputError(
            f"a document of label {label[wrong][0]:g} is attractive with a chance of {chance}",
            field="user",
            expected="a 'highest' that no label exceeds",
        )
    return attractive * user.examined_in(vectors, positions)[np.divmod(factor, positions)]


def factors_of(
    repair: Merging, document: np.ndarray, places: Places, described: np.ndarray
) -> np.ndarray:
    """[rows] bias factor of each display, from 0 without gaps, after a repair.

    A repair says whether to `merge`, and whether `empty` places count as displays of one vector
    when the graph is looked at. The published code counts them, which joins their factors, and
    spares them a merge. `described` [factors, dimensions] has the features by which merging
    measures distance.
    """
    if repair.merge is None:
        return np.unique(places.shown, return_inverse=True)[1]
    rows = places.padded(document) if repair.empty else (document, places.shown)
    seen, factor = np.unique(rows[1], return_inverse=True)
    merged = node_merging(rows[0], factor, described[seen]).merged[factor[: len(document)]]
    return np.unique(merged, return_inverse=True)[1]


@dataclass(frozen=True)
class Places:
    """The bias factors of the places of lists, numbered context * positions + position.

    `shown` are those of the documents, list by list; `empty` those behind the end of short lists.
    """

    shown: np.ndarray
    empty: np.ndarray

    def padded(self, feature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors and factors with the empty places as displays of one vector more.

        So short lists connect factors that share no document. The code that Chen et al. (2024)
        published checks identifiability on these: it reads ten places of every list, and those
        behind its end hold one vector of zeros. Its fits leave them out.
        """
        empty = np.full(len(self.empty), feature.max(initial=-1) + 1)
        return np.concatenate([feature, empty]), np.concatenate([self.shown, self.empty])


def assign_contexts(lengths: np.ndarray, contexts: int, *, positions: int, seed: int) -> Places:
    """Give each place of each list a context type, uniformly at random.

    With one type, positions are the only bias. The draw is the same for any number of documents in
    the lists, of `lengths` [lists], `positions` at most.
    """
    lengths = np.asarray(lengths)
    drawn = stream("contexts", seed).integers(contexts, size=(len(lengths), positions))
    factor = drawn * positions + np.arange(positions)
    shown = np.arange(positions) < lengths[:, None]
    return Places(shown=factor[shown], empty=factor[~shown])


def vector_ids(features: np.ndarray) -> np.ndarray:
    """[rows] ids from 0, equal if and only if two [rows, width] float32 rows are equal.

    Rows are compared as bytes, with the two zeros of floating point made one.
    """
    features = np.ascontiguousarray(features, np.float32) + np.float32(0)
    rows = features.view(np.dtype((np.void, features.itemsize * features.shape[1])))[:, 0]
    return np.unique(rows, return_inverse=True)[1]
