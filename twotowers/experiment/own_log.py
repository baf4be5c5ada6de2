"""A user's own log: a file in any format that `read_log` reads, and a table of features.

It is divided once, whatever the seed of a fit. A model whose clicks are independent, given document
and position, is fitted to counts of the log, other models to its pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import Field

from twotowers.errors import check_range
from twotowers.experiment.fields import Distinct, read
from twotowers.experiment.log import Files, Log, chosen, splits_of
from twotowers.experiment.parts import Method
from twotowers.experiment.training import Training
from twotowers.files.artefacts import files_of
from twotowers.logs.click_log import MOST_POSITIONS, ClickLog, check_pages, read_log
from twotowers.logs.counts import Counts
from twotowers.logs.described import inputs_of
from twotowers.logs.features import KEYS, Scaled, Standardised, keys_of, read_features
from twotowers.logs.observed_pages import ObservedPages, divided, observed_pages
from twotowers.logs.page_stream import Lookup, PageStream, Rows
from twotowers.logs.simulation import Sessions
from twotowers.methods.task import Split
from twotowers.models.protocol import CellModel
from twotowers.randomness import stream
from twotowers.splits import SPLITS

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
"""How a log is divided: to train on, to stop early by, and to report held-out losses of."""
TRAINING = {
    "learning_rate": 0.003, "batch": 256, "epochs": 50, "patience": 3, "min_delta": 1e-6,
}  # fmt: skip
"""How towers are trained on a log by default: AdamW. An epoch is a pass over it, or `STEPS`."""
BYTES = 60
"""Of memory that a document on a page takes, while pages are divided."""
STEPS = 50
"""The fewest steps of an epoch."""


@dataclass(frozen=True)
class Divided:
    """A log as towers read it: train, validation and test.

    `features` are of documents, `bias` further ones of places; None if no tower reads them. `pairs`
    has query and document of the pairs by number. `how` says whether counts are fitted, pages in
    memory, or pages that are read meanwhile; and why.
    """

    splits: dict[str, Split]
    features: Standardised | None
    pairs: pd.DataFrame
    bias: Scaled | None = None
    how: str = ""


class OwnLog(Log):
    """A click log in a file of its own."""

    SIMULATED = False

    origin: Literal["file"] = Field("file", alias="from")
    """A file, as `tt.fit` and `twotowers fit` read it."""
    path: str
    """The log: a file, a pattern of files, or a folder."""
    features: str | None = None
    """A table of features: `document`, perhaps `query`, and a column per feature."""
    bias: Distinct[str] = ()
    """Columns of numbers of the log that towers of positions read, such as the height of a
    result."""
    reading: dict[str, Any] = Field(default={})
    """Arguments of `read_log`, such as the names of columns."""
    counted: bool = Field(False, exclude=True)
    """Whether counts are fitted, as the setting's model and method allow."""
    given: Any = Field(None, exclude=True)
    """The log and the table of features that Python holds; or both as they were read."""

    @property
    def has_pages(self) -> bool:
        return not self.counted

    @property
    def has_features(self) -> bool:
        return self.features is not None

    def fit_inputs(self, files: Files, seed: int, setting: Any) -> dict[str, str]:
        files = [*map(str, files_of(self.path)), *([self.features] if self.features else [])]
        return {f"file {number}": name for number, name in enumerate(files)}

    def settled(self, setting: Any) -> Any:
        """Counts are fitted where model and method allow it."""
        model = setting.model
        counted = isinstance(model.of, CellModel) and "attraction" in model.of.parts
        counted &= _is_plain(setting) and not (model.parts or self.bias)
        changed: dict[str, Any] = {
            "log": self.model_copy(update={"counted": counted}),
            "training": setting.training or read(Training, TRAINING),
        }
        if counted:
            impressions = {"kind": "likelihood", "weighting": "impressions"}
            changed["method"] = read(Method, impressions)
        return setting.model_copy(update=changed)

    def read(self, setting: Any) -> Divided:
        """The log, divided, with what the setting's towers read.

        Gaps of pages are closed if the model says nothing of them. Pages beyond memory are read
        while towers are trained, if the method can.
        """
        model, features = setting.model, setting.model.read
        log, table = self.given or (read_log(self.path, **self.reading), self.features)
        if not self.counted:
            check_pages(log)
            log.holding(self.bias)
            log = log if model.of.gaps else log.closed()
        checked_positions(log, self.positions)
        described = None
        if features is not None:
            described = read_features(table, called=log.layout.columns)
            names = described.columns[len(keys_of(described)) :]
            described = described[[*keys_of(described), *names[chosen(features, len(names))]]]
        if self.counted:
            return cell_splits(log, described, self.positions)
        size = log.shown * BYTES
        streams = _is_plain(setting) and not self.bias and log.times is None
        if streams and size > log.memory:
            by_pair = described is None or "pair" in model.needs
            divided = stream_splits(log, described, self.positions, by_pair)
            how = f"pages are read while towers are trained: memory would take {_size(size)}"
            return replace(divided, how=f"{how}, and {_size(log.memory)} are allowed")
        return page_splits(log, described, self.positions, self.bias)

    def splits(
        self, inputs: Mapping[str, str], lanes: Sequence[Any], *, seed: int, setting: Any
    ) -> dict[str, Split]:
        return (self.given if isinstance(self.given, Divided) else self.read(setting)).splits

    def steps(self, splits: Mapping[str, Split], batch: int) -> int:
        """Steps of an epoch: a pass over the log, and at least STEPS."""
        train = splits["train"]
        units = len(train.sessions[0].query if train.sessions else train.where)
        return max((train.stream[0].units if train.stream else units) // batch, STEPS)


def _is_plain(setting: Any) -> bool:
    """Whether its method is likelihood with no options."""
    return setting.method == read(Method, "likelihood")


def checked_positions(log: ClickLog, positions: int | None) -> int:
    """The positions of the longest page to predict; those of the log's longest if None."""
    length = int(log.count(["position"]).values("position").to_numpy().max())
    check_range(positions or length, field="positions", low=length, high=MOST_POSITIONS, whole=True)
    return positions or length


def page_splits(
    log: ClickLog, table: pd.DataFrame | None, positions: int, bias: Sequence[str] = ()
) -> Divided:
    """Divide pages in memory. Towers read features, or numbers of pairs if none is given."""
    pages = observed_pages(log, SHARES, positions=positions, seed=0, bias=bias)
    pairs, features, scaled = pages.ids.to_pandas(), None, None
    named, tables = {"pair" if table is None else "features": pages.pair}, {}
    if table is not None:
        features = Standardised.fit(table, pairs, log.layout.columns)
        tables["features"] = features.values(pairs)
    if pages.bias is not None:
        scaled = Scaled.fit(list(bias), pages.bias[pages.where])
        named["bias"] = scaled(pages.bias)
    read = inputs_of(named, tables)
    how = f"pages are in memory, about {_size(log.shown * BYTES)}"
    return Divided(splits_of(pages, read), features, pairs, scaled, how)


def _size(size: float) -> str:
    return f"{size / 1e9:.2g} GB" if size > 1e8 else f"{size / 1e6:.2g} MB"


def stream_splits(
    log: ClickLog, table: pd.DataFrame | None, positions: int, by_pair: bool
) -> Divided:
    """Divide pages: those to train on are read meanwhile, and held-out ones are in memory."""
    lookups, tables, features = {}, {}, None
    if table is not None:
        lookup = Lookup.of(log, keys_of(table))
        features = Standardised.fit(table, lookup.ids, log.layout.columns)
        used, row = np.unique(features.rows(lookup.ids), return_inverse=True)
        lookups["features"] = replace(lookup, row=row)
        tables["features"] = features.scaled(used)
    if by_pair:
        lookups["pair"] = Lookup.of(log, [*KEYS])
    pages = PageStream(log, positions, lookups, SHARES)
    splits = {name: _held(pages.pages(name), tables) for name in SPLITS[1:]}
    # What training asks for beside pages: widths, the number of pairs, and totals by position.
    last = {name: np.full((1, positions), len(each.keys) - 1) for name, each in lookups.items()}
    last |= {name: np.zeros((1, positions), np.int32) for name in tables}
    place = np.arange(positions)[None, None]
    totals = Counts(*(each[None, None] for each in pages.totals()), place, place)
    train = inputs_of(last, tables), np.ones((1, positions), bool), None, totals
    splits["train"] = Split(*train, stream=(pages, tables))
    return Divided(splits, features, next(reversed(lookups.values())).ids)


def _held(rows: Rows, tables: Mapping[str, np.ndarray]) -> Split:
    """Pages as a split in memory."""
    where, number = rows["where"], np.arange(len(rows["where"]))
    place = np.broadcast_to(np.arange(where.shape[1], dtype=np.uint8), where.shape)
    session = Sessions(number, place, rows["clicks"], where, rows["page"])
    counts = ObservedPages(where, where, {"": session}, pa.table({})).counts("")
    return Split(inputs_of(rows, tables), where, None, counts, sessions=[session])


def cell_splits(log: ClickLog, table: pd.DataFrame | None, positions: int) -> Divided:
    """Impressions and clicks of each row of features, or each pair, at each position."""
    counts = log.count()
    pair, first = counts.groups(KEYS)
    ids = counts.where(first)
    pairs = pd.DataFrame({name: ids.values(name).to_pandas() for name in KEYS})
    features = None if table is None else Standardised.fit(table, pairs, log.layout.columns)
    row = np.arange(len(pairs))
    if features is not None:
        used, row = np.unique(features.rows(pairs), return_inverse=True)
        inputs = features.scaled(used)[:, None]
    else:
        inputs = row[:, None]
    cell = row[pair] * positions + counts.values("position").to_numpy() - 1
    size = len(inputs) * positions
    shown, clicked = (
        np.bincount(cell, each, size).astype(np.int64)
        for each in (counts.impressions, counts.clicks)
    )
    parts = divided(shown, clicked, SHARES, rng=stream("division of a log", 0))
    splits = {}
    for name, part in parts.items():
        columns = [inputs, *(each.reshape(-1, 1, positions) for each in part)]
        if name == "train":
            columns = _divided_evenly(*columns)
        own, *counted = columns
        where = np.ones(own.shape[:2], bool)
        splits[name] = Split(own, where, None, Counts(*(each[None] for each in counted)))
    how = f"counts are fitted: {len(splits['train'].where):,} rows, however many pages there are"
    return Divided(splits, features, pairs, how=how)


def _divided_evenly(inputs: np.ndarray, shown: np.ndarray, clicked: np.ndarray) -> list[np.ndarray]:
    """The same units. A unit with many impressions is split into several with equal parts of them.

    None has more impressions than the mean unit then, and there are at most twice as many. A step
    draws units alike, so one of most of the log's impressions would make its gradient noise.
    """
    total = shown.sum((1, 2))
    parts = np.maximum(np.ceil(total / max(total.mean(), 1)), 1).astype(int)
    share = np.repeat(parts, parts)[:, None, None]
    inputs, shown, clicked = (np.repeat(each, parts, axis=0) for each in (inputs, shown, clicked))
    return [inputs, (shown / share).astype(np.float32), (clicked / share).astype(np.float32)]
