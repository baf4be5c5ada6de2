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

from twotowers.logs.cells import Pairs
from twotowers.logs.counts import Counts, Rows
from twotowers.logs.simulation import Sessions
from twotowers.models.protocol import CellModel


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
        examination: what gives the examination part, its `examination` and `dropout`.
        splits: train, validation and test.
        lanes: for each lane the index of its log, and its values of the method's own columns.
        training: how gradient fits are trained; empty for methods that do not train.
        positions: positions on the page.
        seed: initialises and orders batches.
        users: who clicked, of each log; None where nobody knows.
    """

    model: CellModel
    tower: str | Callable
    splits: Mapping[str, Split]
    lanes: list[tuple[int, Mapping[str, object]]]
    training: Mapping[str, object]
    positions: int
    seed: int
    users: Sequence[CellModel] | None = None
    examination: Mapping[str, object] = field(default_factory=dict)

    def varied(self, own: Iterable[str]) -> dict[str, list]:
        """The lanes' values of numbers of towers, heads and training, by column: [lanes].

        Args:
            own: the method's own columns, which are not among them.
        """
        columns = [column for column in self.lanes[0][1] if column not in set(own)]
        return {column: [values[column] for _, values in self.lanes] for column in columns}


@dataclass(frozen=True)
class Fitted:
    """What a method found in one lane.

    Attributes:
        scores: from inputs [queries, documents, ...] to scores [queries, documents]; the higher,
            the more relevant.
        bias: [positions] identified up to a constant, as the model has it; None without.
        cell_losses: from a split to the negative log-likelihood of each cell of the lane's log
            there, laid out as its counts; None where the method does not predict clicks.
        values: further metrics.
    """

    scores: Callable[[np.ndarray], np.ndarray]
    bias: np.ndarray | None = None
    cell_losses: Callable[[Split], np.ndarray] | None = None
    values: Mapping[str, float] = field(default_factory=dict)
