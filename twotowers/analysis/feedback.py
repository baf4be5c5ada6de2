"""Whether ranks follow past clicks in a log, and the curve that holds if they do."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError
from twotowers.fitting.curves import Curve, cluster_by_user
from twotowers.fitting.sequential import Displays, fit_sequential
from twotowers.intervals import Tested, single, together
from twotowers.logs.click_log import ClickLog
from twotowers.logs.counted import Counts, key_of
from twotowers.logs.log import Block
from twotowers.logs.sessions import TIME

USER = "user"
DAY = r"^\s*(\d{1,2})[./-](\d{1,2})[./-]\d{4}"
"""A date that begins with the day or the month."""
LEVEL = 0.05
"""Of the test: below it, positions follow clicks, and the sequential curve is needed."""
WIDTH = 256
"""Bytes that a display takes while it is tested, at most."""


class Portions:
    """The displays of a log's clicked pairs in the order of time, of some queries at a time."""

    def __init__(self, log: ClickLog, cells: Counts, bias: Sequence[str]) -> None:
        held = log.holding(needed_columns(log, bias))
        factors, pairs, queries = (
            cells.count(by) for by in (bias, ["query", "document"], ["query"])
        )
        self.blocks, self.bias, self.ids = held.blocks, bias, cells.ids
        # Sorted keys of the log's factors, and of its clicked pairs.
        self.factors = key_of(factors.columns, factors.ids)
        self.pairs = key_of(pairs.columns, pairs.ids)[pairs.clicks > 0]
        self.names = factors.table().select(bias).to_pandas()
        self.shown = factors.impressions.astype(float)
        self.seconds: np.ndarray | None = None  # of each number of the column of times
        if TIME in held.ids:
            self.seconds = seconds_of(held.ids[TIME].take(np.arange(held.ids[TIME].size)), log)
        # Numbers of queries between portions that memory holds.
        portion = np.cumsum(queries.impressions) * WIDTH // log.memory
        between = queries.columns["query"][np.flatnonzero(np.diff(portion)) + 1]
        self.ends = [0, *between.tolist(), queries.ids["query"].size]

    def __iter__(self) -> Iterator[Displays]:
        for low, high in pairwise(self.ends):
            parts = [self._rows(_of_queries(each, low, high)) for each in self.blocks]
            rows = {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}
            if self.seconds is not None:
                order = np.argsort(rows.pop(TIME), kind="stable")
                rows = {name: each[order] for name, each in rows.items()}
            yield Displays.of_rows(**rows, names=self.names, shown=self.shown)

    def _rows(self, block: Block) -> dict[str, np.ndarray]:
        """The displays of a block whose pair has a click."""
        pair = key_of({name: block.column(name) for name in ("query", "document")}, self.ids)
        place = np.minimum(np.searchsorted(self.pairs, pair), len(self.pairs) - 1)
        kept = np.flatnonzero(self.pairs[place] == pair)
        own = {name: block.column(name)[kept] for name in self.bias}
        rows = {
            "pair": place[kept].astype(np.int32),
            "factor": np.searchsorted(self.factors, key_of(own, self.ids)).astype(np.int32),
            "click": block.click[kept],
            "query": block.column("query")[kept],
        }
        if self.seconds is not None:  # That of a page is the time of its first document.
            first = np.cumsum(block.lengths) - block.lengths
            rows[TIME] = self.seconds[block.column(TIME)[first]][block.page[kept]]
        return rows | ({USER: block.column(USER)[kept]} if USER in block.of_pages else {})


def _of_queries(block: Block, low: int, high: int) -> Block:
    """The pages of queries from one number to below another."""
    query = block.of_pages["query"]
    inside = (query >= low) & (query < high)
    return block if inside.all() else block.filter(inside)


@dataclass(frozen=True, eq=False)
class Feedback:
    """Whether ranks follow earlier clicks: what a log in its order shows of that.

    `displays` are those of clicked pairs of a query and a document. `order` says where the order is
    from: "time", "stated" (by the user), or "file", the order of the file, which may be another.
    """

    displays: Iterable[Displays]
    order: str

    @cached_property
    def test(self) -> Tested:
        """The test that clicks move no document (`moves_after_clicks`)."""
        return moves_after_clicks(self.displays)

    @property
    def detected(self) -> bool:
        """Whether ranks follow clicks."""
        return self.test.p < LEVEL

    def curve(self, reference: int) -> Curve:
        """The curve that allows it (`twotowers.fitting.sequential`)."""
        return fit_sequential(self.displays, reference=reference)


def needed_columns(log: ClickLog, bias: Sequence[str]) -> list[str]:
    """The columns that curves need, so that a log is read once: of bias, and the time."""
    further = [name for name in bias if name != "position"]
    return further if log.counted or log.layout.time is None else [*further, TIME]


def feedback_of(log: ClickLog, cells: Counts, bias: Sequence[str]) -> Feedback | None:
    """The displays of a log in the order of time; None if it is counted, or has no position."""
    if log.counted or "position" not in bias:
        return None
    held = log.holding(needed_columns(log, bias))
    if held.times is not None:  # Equal pages are one row, in no order of time.
        return None
    displays = Portions(log, cells, bias)
    stated = "stated" if log.ordered else "file"
    # Several portions are made again each time that they are needed.
    one = len(displays.ends) == 2
    return Feedback([*displays] if one else displays, "time" if TIME in held.ids else stated)


def by_user(curve: Curve, log: ClickLog, bias: Sequence[str]) -> Curve:
    """The conditional curve with errors by user as well as by query, where users are known.

    Columns of `bias` are in the order of the curve's names.
    """
    if log.counted or USER not in log.ids:
        return curve
    counts = log.count(["query", "document", *bias, USER])
    rows = pd.DataFrame(
        {
            "pair": counts.groups(["query", "document"])[0],
            "factor": counts.groups(bias)[0],
            "query": counts.columns["query"],
            "user": counts.columns[USER],
            "impressions": counts.impressions,
            "clicks": counts.clicks,
        }
    )
    return cluster_by_user(curve, rows)


def seconds_of(times: pa.Array, log: ClickLog) -> np.ndarray:
    """Times as numbers: dates with their time zones, epochs, or whole numbers that count up."""
    if pa.types.is_integer(times.type) or pa.types.is_floating(times.type):
        return times.to_numpy(zero_copy_only=False)
    if pa.types.is_temporal(times.type):
        return pc.cast(times, pa.timestamp("us")).cast(pa.int64()).to_numpy(zero_copy_only=False)
    texts = times.cast(pa.string()).to_pandas()
    numbers = pd.to_numeric(texts, errors="coerce")
    if numbers.notna().all():
        return numbers.to_numpy(float)
    first, second = (pd.to_numeric(each) for _, each in texts.str.extract(DAY).items())
    if ((first <= 12) & (second <= 12)).any() and not ((first > 12) | (second > 12)).any():
        at = int(np.argmax((first <= 12) & (second <= 12)))
        raise InputError(
            f"{texts[at]!r}: is the day or the month first?",
            path=log.source,
            field=log.layout.time,
            expected="dates such as 2026-01-31",
        )
    by_day = bool((first > 12).any())
    dates = pd.to_datetime(texts, utc=True, format="mixed", errors="coerce", dayfirst=by_day)
    if (wrong := np.flatnonzero(dates.isna())).size:
        raise InputError(
            f"{texts[wrong[0]]!r} is no time",
            path=log.source,
            field=log.layout.time,
            expected="a date and time such as 2026-01-31T12:00:00Z, or seconds",
        )
    return dates.astype("int64").to_numpy()


def moves_after_clicks(portions: Iterable[Displays]) -> Tested:
    """The F-test that clicks move no pair, from its displays in the order of time.

    The conditional estimate (`twotowers.fitting.conditional`) is right if what is shown where does
    not depend on the pair's own clicks. A ranker that learns from clicks breaks that. Without
    feedback, a click is independent of all other positions of its pair, given its own position,
    whatever the ranker does by itself: it may drift, or rank at random. So within pair and position
    the covariances of a click have mean 0 with

    * the positions by which the pair moves up at its next display, and
    * its mean position before the click, less that after it, which sees rankers that are retrained
      once a day, or that add up clicks over a long time.

    The sums of both over queries are tested together. The test does not see whether a pair comes
    back because it was clicked.

    The displays come in portions, each of other queries.

    Positions are the column `position` of the factors' names. The value is how many positions a
    click moves its pair up, the mean after it compared with the mean before it; below 0, down.
    """
    sums = [_sums(each) for each in portions]
    products, squares = zip(*sums, strict=True)
    steps = np.concatenate(products) / np.maximum(sum(squares), 1e-300)
    values = steps.sum(0)
    test = together(steps, values)
    return replace(single(steps[:, 1], values[1]), p=test.p, reason=test.reason)


def _sums(displays: Displays) -> tuple[np.ndarray, np.ndarray]:
    """[queries, 2] products of clicks with both moves, and [2] squares of the clicks."""
    position = displays.names["position"].to_numpy(float)[displays.factor]
    pair = displays.pair
    start = np.flatnonzero(np.diff(pair, prepend=-1))
    number = np.diff(np.append(start, len(pair)))
    before = np.arange(len(pair)) - np.repeat(start, number)
    after = np.repeat(number, number) - 1 - before
    total = np.concatenate([[0.0], np.cumsum(position)])
    ends = np.repeat(start + number, number)
    with np.errstate(divide="ignore", invalid="ignore"):
        later = (total[ends] - total[1:]) / after
        earlier = (total[:-1] - np.repeat(total[start], number)) / before
    next_up = np.where(after > 0, position - np.append(position[1:], 0), np.nan)
    products, squares = zip(
        *(_products(displays, up) for up in (next_up, earlier - later)), strict=True
    )
    return np.stack(products, -1), np.array(squares)


def _products(displays: Displays, up: np.ndarray) -> tuple[np.ndarray, float]:
    """[queries] products of `up` with clicks within pair and factor; and the clicks' squares.

    `up` is NaN where there is no such display.
    """
    rows = np.flatnonzero(np.isfinite(up))
    group = displays.pair[rows].astype(np.int64) * displays.factors + displays.factor[rows]
    _, group, number = np.unique(group, return_inverse=True, return_counts=True)
    click, up = displays.click[rows], up[rows]
    click = click - (np.bincount(group, click) / number)[group]
    queries = int(displays.query.max(initial=-1)) + 1
    return np.bincount(displays.query[rows], click * up, queries), float((click**2).sum())
