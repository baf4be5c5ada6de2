"""The interface of methods: a `Task` in, a `Fitted` per lane out.

A method is a module in `twotowers/methods/` or in a paper's `methods/`, with one function
`fit(task, *, ...) -> list[Fitted]`. Its keyword-only parameters are its options, and their
annotations say what they may be: `Literal["a", "b"]`, `Annotated[float, Field(ge=1)]`. One that is
annotated with `Lanes`, as `Lanes[float]`, may be a list. Then each value is a lane, and `task.each`
gives the value of each lane.

A method that trains towers by `twotowers.fitting.gradient` sets `TRAINS = True` and passes on
`task.varied`; its jobs ask for a GPU, if the configuration has `device: cuda`. One that trains in
another way, on a GPU, too, sets `GPU = True`, as a study may. One that trains for days, and goes
on from the state in `task.checkpoint`, sets `RESUMES = True`. One that fits the bias factors of a
split (`Split.factors`) sets `FACTORS = True`; others do not fit logs whose factors are not
positions. One that gives documents no scores sets `BIAS_ALONE = True`, so that test queries may be
others than those of training. `NEEDS` names what else a setting must have, of `NEEDS` in
`twotowers.experiment.settings`. A method with a parameter `heads` gets functions that build the
auxiliary heads (`twotowers.towers.head`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.em import Estimate
from twotowers.fitting.pair_counts import PairCounts
from twotowers.logs.counts import Counts
from twotowers.logs.described import Gathered, Several
from twotowers.logs.page_stream import PageStream
from twotowers.logs.simulation import Sessions
from twotowers.models.protocol import CellModel, ClickModel
from twotowers.towers.lane import KNOWN, Lane

PAGES = 8_192
"""Pages whose documents are scored at a time, which bounds memory."""
CERTAIN = 15.0
"""Largest size of a logit that is taken from a simulated user. Its probability is within 1e-6 of 0
or 1."""


@dataclass(frozen=True)
class Split:
    """One split of a setting's data, with lists padded to one length.

    Attributes:
        inputs: [queries, documents, ...] input of the relevance tower, which may be `Gathered`
            or `Several`.
        where: [queries, documents] bool, False on padding.
        relevance: [queries, documents] float32 labels for ranking metrics; None if unknown.
        counts: [logs, queries, ...] unweighted counts of the logs.
        sessions: the sessions of each log; None if logs are recorded as cells.
        factors: [logs, queries, positions] number of the bias factor at each place of each list;
            None if bias factors are the positions.
        pair: [queries, documents] number of the query-document pair at each place, where lists of a
            log repeat pairs; None if `inputs` are such numbers, or no list repeats a pair.
        query: [pairs] number of each pair's query; None if lists are queries.
        stream: the pages to train on, where memory does not hold them, and the tables of what
            towers read. `counts` are then of many of them by position.
        texts: files of format `baidu` that cross-encoders read in training; None for these pages.
    """

    inputs: np.ndarray | Gathered | Several
    where: np.ndarray
    relevance: np.ndarray | None
    counts: Counts
    sessions: Sequence[Sessions] | None = None
    factors: np.ndarray | None = None
    pair: np.ndarray | None = None
    query: np.ndarray | None = None
    stream: tuple[PageStream, Mapping[str, Any]] | None = None
    texts: Sequence[Path] | None = None

    @property
    def numbers(self) -> np.ndarray:
        """[queries, documents] numbers of pairs, if towers read them."""
        return self.inputs.of["pair"] if isinstance(self.inputs, Several) else self.inputs

    @property
    def table(self) -> np.ndarray:
        """[rows, ...] the inputs, a row after the other; `rows` has their numbers."""
        if isinstance(self.inputs, Gathered):
            return self.inputs.table
        return self.inputs.reshape(-1, *self.inputs.shape[2:])

    def rows(self, log: int) -> np.ndarray:
        """[sessions, positions] int32 row of `table` of the document at each position of a page;
        0 where there is none."""
        pages = self.sessions[log]
        if isinstance(self.inputs, Gathered):
            row = self.inputs.row[pages.query[:, None], pages.documents]
        else:
            row = pages.query[:, None] * self.inputs.shape[1] + pages.documents
        return np.where(pages.where, row, 0).astype(np.int32)

    def on_pages(self, log: int, scores: Callable) -> np.ndarray:
        """[sessions, positions] scores of the document at each position of a log's pages.

        `scores`: inputs [pages, positions, ...] -> [pages, positions].
        """
        rows = self.rows(log)
        starts = range(0, len(rows), PAGES)
        return np.concatenate([scores(self.table[rows[at : at + PAGES]]) for at in starts])

    def queries_of(self, pair: np.ndarray) -> np.ndarray:
        """[rows] the query of some pairs. If lists are queries, it is a list of the pair."""
        if self.query is not None:
            return self.query[pair]
        query = np.zeros(int(self.inputs[self.where].max(initial=0)) + 1, np.int64)
        query[self.inputs[self.where]] = np.nonzero(self.where)[0]
        return query[pair]


@dataclass(frozen=True)
class Task:
    """What a method gets: a setting and a seed, with the data.

    Attributes:
        model: the click model.
        tower: the relevance tower; see `twotowers.towers.two_towers.two_towers`.
        examination: arguments `examination` and `dropout` of `two_towers`, if given.
        parts: part -> its own tower, a "table", or the part whose tower it shares.
        checkpoint: a file that keeps the state of training; None keeps none.
        splits: "train", "validation" and "test" -> the data of that split.
        lanes: for each lane the index of its log, and column -> value of what varies between lanes.
        training: arguments of `twotowers.fitting.gradient.FitSettings`; empty if the method does
            not train.
        positions: number of positions on the page.
        seed: seed of initialisation and of the order of batches.
        users: the simulated user of each log; None for real logs.
        logs: the values of each log's lane columns.
    """

    model: ClickModel
    tower: str | Callable
    splits: Mapping[str, Split]
    lanes: list[tuple[int, Mapping[str, object]]]
    training: Mapping[str, object]
    positions: int
    seed: int
    users: Sequence[CellModel] | None = None
    examination: Mapping[str, object] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: str | None = None
    logs: Sequence[Mapping[str, object]] = ()

    @property
    def pairs(self) -> int:
        """Number of query-document pairs, if the tower's inputs are numbers of pairs."""
        return 1 + max(int(np.max(split.numbers, initial=-1)) for split in self.splits.values())

    def each(self, given: Any) -> list:
        """[lanes] the value of a method's parameter, a `Lane` or one for all, in each lane."""
        if not isinstance(given, Lane):
            return [given] * len(self.lanes)
        return [values[given.column] for _, values in self.lanes]

    def varied(self, *own: Any) -> dict[str, list]:
        """Argument `varied` of `fitting.gradient.fit`, without the method's `own` parameters.

        It holds [lanes] numbers of towers, heads and training, by column. If examination is known,
        it also holds its [lanes, positions] logits.
        """
        known = {each.column for each in own if isinstance(each, Lane)}
        columns = [column for column in self.lanes[0][1] if column not in known]
        varied = {column: [values[column] for _, values in self.lanes] for column in columns}
        if self.examination.get("examination") == KNOWN:
            varied["examination"] = [self._known(log) for log, _ in self.lanes]
        return varied

    def _known(self, log: int) -> np.ndarray:
        """[positions] examination logits of a log's simulated user."""
        user = self.users[log] if self.users else None
        if type(user) is not type(self.model):
            raise InputError(
                "no examination is known for this model and log",
                field="model.examination",
                expected="a simulated user of the model's kind, or 'table'",
            )
        logits = user.truth(np.zeros(1), self.positions)["examination"]
        return np.clip(logits, -CERTAIN, CERTAIN)


@dataclass(frozen=True)
class Fitted:
    """The result of a method for one lane.

    Attributes:
        scores: inputs [queries, documents, ...] -> scores [queries, documents], higher is more
            relevant. None for a model without parts per document.
        bias: [positions] position bias, identified up to a constant, NaN where unknown. None for a
            model without position bias.
        learns: False for a method that fits nothing, such as a random ranking. It has no gates.
        bias_error: [positions] standard error of the bias relative to position 1, NaN where
            unknown. None if the method tells none.
        cell_losses: split -> negative log-likelihood of each cell of the lane's log, in the shape
            of its counts. None if the method does not predict clicks from cells.
        values: further metrics, by name.
        history: [epochs] loss used for early stopping, NaN after the lane stopped. None if the
            method does not train.
        dropout: rate of dropout of examination logits in training.
        dropped_losses: as `cell_losses`, in expectation over this dropout. None if the rate is 0.
        page_losses: split with sessions -> two arrays [sessions, K] of -ln P(click or none, as
            observed) at each position: not given other clicks, and given the clicks above. None if
            the method does not predict clicks of pages.
        estimate: the fitted probabilities, if each pair has one of its own.
        examined: [lists, positions] estimated P(examined) at each place of the training lists. None
            if lists are not given, or the method does not estimate it.
    """

    scores: Callable[[np.ndarray | Gathered | Several], np.ndarray] | None
    bias: np.ndarray | None = None
    cell_losses: Callable[[Split], np.ndarray] | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    history: np.ndarray | None = None
    dropout: float = 0.0
    dropped_losses: Callable[[Split], np.ndarray] | None = None
    page_losses: Callable[[Split], tuple[np.ndarray, np.ndarray]] | None = None
    estimate: Estimate | None = None
    examined: np.ndarray | None = None
    bias_error: np.ndarray | None = None
    learns: bool = True
    towers: Any = None


def cells(split: Split, log: int, *, all_cells: bool = False) -> tuple[np.ndarray, ...]:
    """Pair, position, impressions and clicks of one log's cells: [cells] each.

    Cells without impressions are left out unless `all_cells`.
    """
    counts = split.counts.of_log(log)
    queries, documents = split.where.shape
    if counts.listed:
        query = np.broadcast_to(np.arange(queries)[:, None], counts.impressions.shape)
        document, position = counts.document.astype(int), counts.position.astype(int)
    else:
        query, document, position = np.indices(counts.impressions.shape)
    # A pair may be on several lists.
    number = split.inputs if split.pair is None and split.inputs.ndim == 2 else split.pair
    pair = query * documents + document if number is None else number[query, document]
    columns = pair, position, counts.impressions, counts.clicks
    columns = [np.asarray(column, np.int64).ravel() for column in columns]
    keep = slice(None) if all_cells else columns[2] > 0
    return tuple(column[keep] for column in columns)


def pair_counts(task: Task, log: int) -> PairCounts:
    """Impressions and clicks of the pairs of a training log, by position."""
    train = task.splits["train"]
    pair, *counts = cells(train, log)
    return PairCounts.of_arrays(pair, *counts, query=train.queries_of(pair), factors=task.positions)
