"""What a method is given, and what it gives back.

A method is a module of this room, or of a paper's `methods/`, with one function
`fit(task, *, ...) -> list[Fitted]`, one per lane. Its keyword-only parameters are what a
configuration may set. A module's `LANES` names further ones, with their defaults, that may be
lists: their values are lanes, and `task.lanes` says which lane has which. A method that trains
towers by `twotowers.fitting.gradient` has `TRAINS = True`, and hands on what `task.varied` says.
A method may have a parameter `heads`: what makes each auxiliary head (`twotowers.heads`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from twotowers.errors import InputError
from twotowers.logs.cells import Pairs
from twotowers.logs.counts import Counts, Rows
from twotowers.logs.simulation import Sessions
from twotowers.models.page import PageModel
from twotowers.models.protocol import CellModel
from twotowers.towers.lane import KNOWN

CERTAIN = 15.0
"""What a logit of a simulation's truth is at most: a probability within 1e-6 of 0 or 1."""


@dataclass(frozen=True)
class Split:
    """One split of a setting's data, laid out as rectangles.

    Attributes:
        inputs: [queries, documents, ...] what the relevance tower reads.
        where: [queries, documents] bool, False on padding.
        relevance: [queries, documents] float32, what ranking metrics are measured against; None
            where nobody knows.
        counts: [logs, queries, ...] the logs' counts, unweighted.
        pairs: the ids of the documents, in the order of the lists; None where there are no
            rankings.
        sessions: the same logs page by page, where they are recorded so.
    """

    inputs: np.ndarray
    where: np.ndarray
    relevance: np.ndarray | None
    counts: Counts | Rows
    pairs: Pairs | None = None
    sessions: Sequence[Sessions] | None = None


@dataclass(frozen=True)
class Task:
    """A setting and a seed.

    Attributes:
        model: what a click is.
        tower: the relevance tower, see `twotowers.models.towers.two_towers`.
        examination: what gives the examination part, its `examination` and `dropout`, as
            `twotowers.models.towers.two_towers` takes them.
        splits: train, validation and test.
        lanes: for each lane the index of its log, and its values of the method's own columns.
        training: how gradient fits are trained; empty for methods that do not train.
        positions: positions on the page.
        seed: initialises and orders batches.
        users: the user of each log; None for real logs.
    """

    model: CellModel | PageModel
    tower: str | Callable
    splits: Mapping[str, Split]
    lanes: list[tuple[int, Mapping[str, object]]]
    training: Mapping[str, object]
    positions: int
    seed: int
    users: Sequence[CellModel] | None = None
    examination: Mapping[str, object] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """How many query-document pairs there are, where the tower reads their numbers."""
        return 1 + max(int(split.inputs.max(initial=-1)) for split in self.splits.values())

    def varied(self, own: Iterable[str]) -> dict[str, list]:
        """The lanes' values of what is not trained, by column: [lanes] numbers of towers, heads and
        training, and [lanes, positions] logits of an examination that is known.

        Args:
            own: the method's own columns, which are not among them.
        """
        columns = [column for column in self.lanes[0][1] if column not in set(own)]
        varied = {column: [values[column] for _, values in self.lanes] for column in columns}
        if self.examination.get("examination") == KNOWN:
            varied["examination"] = [self._known(log) for log, _ in self.lanes]
        return varied

    def _known(self, log: int) -> np.ndarray:
        """[positions] examination logits of a log's simulated user."""
        user = self.users[log] if self.users else None
        if type(user) is not type(self.model):
            raise InputError(
                "nobody knows examination as this model has it", field="model.examination",
                expected="a simulated user of the model's kind, or 'table'",
            )  # fmt: skip
        logits = user.truth(np.zeros(1), self.positions)["examination"]
        return np.clip(logits, -CERTAIN, CERTAIN)


@dataclass(frozen=True)
class Table:
    """Fitted probabilities of a click model that has one per query-document pair.

    Attributes:
        parameters: per part [size] probabilities, NaN where nothing is known. Those of documents
            are in the order of pairs; of jumps, a position after the other.
        prior: per part the successes and failures that smoothed them, if any.
    """

    parameters: Mapping[str, np.ndarray]
    prior: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fitted:
    """What a method found in one lane.

    Attributes:
        scores: from inputs [queries, documents, ...] to scores [queries, documents]; the higher,
            the more relevant; None of a model that does not tell documents apart.
        bias: [positions] identified up to a constant, as the model has it; None without.
        cell_losses: from a split to the negative log-likelihood of each cell of the lane's log
            there, laid out as its counts; None where the method does not predict clicks.
        values: further metrics.
        history: [epochs] the loss that early stopping watched, NaN after the last epoch; None of
            methods that do not train.
        page_losses: from a split with sessions to -ln P of what was observed at each position of
            the lane's pages, twice: of each click alone, and of each click given those above it;
            [sessions, K] each. None where the method does not say.
        table: the probabilities themselves, where each pair has one of its own.
    """

    scores: Callable[[np.ndarray], np.ndarray] | None
    bias: np.ndarray | None = None
    cell_losses: Callable[[Split], np.ndarray] | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    history: np.ndarray | None = None
    page_losses: Callable[[Split], tuple[np.ndarray, np.ndarray]] | None = None
    table: Table | None = None


def cells(split: Split, log: int, *, all_cells: bool = False) -> tuple[np.ndarray, ...]:
    """Pair, position, impressions and clicks of the cells that were shown (or of all)."""
    counts = split.counts.of_log(log)
    queries, documents = split.where.shape
    if isinstance(counts, Counts):
        query, document, position = np.indices(counts.impressions.shape)
    else:
        query = np.broadcast_to(np.arange(queries)[:, None], counts.impressions.shape)
        document, position = counts.document.astype(int), counts.position.astype(int)
    # Where towers read numbers of pairs, a pair may be on several lists.
    pair = split.inputs[query, document] if split.inputs.ndim == 2 else query * documents + document
    columns = pair, position, counts.impressions, counts.clicks
    columns = [np.asarray(column, np.int64).ravel() for column in columns]
    keep = slice(None) if all_cells else columns[2] > 0
    return tuple(column[keep] for column in columns)
