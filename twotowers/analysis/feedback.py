"""Whether ranks follow past clicks in a log, and the curve that holds if they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError
from twotowers.fitting.curves import Curve
from twotowers.fitting.sequential import Displays, fit_sequential
from twotowers.fitting.users import cluster_by_user
from twotowers.identifiability.feedback import follow_clicks, moves_after_clicks
from twotowers.identifiability.testing import Finding
from twotowers.logs.click_log import TIME, ClickLog
from twotowers.logs.counted import Counts, key_of
from twotowers.logs.log import Block, Log
from twotowers.logs.numbering import Ids

USER = "user"


@dataclass(frozen=True, eq=False)
class Feedback:
    """What the order of a log's pages shows.

    Attributes:
        displays: those of clicked pairs, in the order of time.
        order: where that order is from: "time", "stated" (by the user), or "file", the order of the
            file, which may be another.
    """

    displays: Displays
    order: str

    @cached_property
    def test(self) -> Finding:
        """The test that clicks move no document (`twotowers.identifiability.feedback`)."""
        return moves_after_clicks(self.displays)

    @property
    def detected(self) -> bool:
        """Whether ranks follow clicks."""
        return follow_clicks(self.test)

    def curve(self, reference: int, level: float) -> Curve:
        """The curve that allows it (`twotowers.fitting.sequential`)."""
        return fit_sequential(self.displays, reference=reference, level=level)


def needed_columns(log: ClickLog, bias: Sequence[str]) -> list[str]:
    """The columns that curves need, so that a log is read once: of bias, and the time."""
    further = [name for name in bias if name != "position"]
    return further if log.counted or log.layout.time is None else [*further, TIME]


def feedback_of(
    log: ClickLog, cells: Counts, bias: Sequence[str], *, position: str = "position"
) -> Feedback | None:
    """The displays of a log in the order of time; None if it is counted, or has no position.

    Args:
        log: with a click.
        cells: its counts by query, document and `bias`.
        bias: columns that name the bias factor.
        position: the column of the log that has the position.
    """
    # Equal pages of a page_count lie side by side, in no order of time.
    if log.counted or "position" not in bias or "page_count" in log.layout.columns:
        return None
    held = log.holding([*needed_columns(log, bias), *({position} - {"position"})])
    factors, pairs = cells.count(bias), cells.count(["query", "document"])
    keys = {
        "factor": key_of(factors.columns, factors.ids),
        "pair": key_of(pairs.columns, pairs.ids)[pairs.clicks > 0],
    }
    names = factors.table().select(bias).to_pandas()
    columns = {name: position if name == "position" else name for name in bias}
    users = USER in held.ids
    parts = [_clicked_rows(each, columns, keys, cells.ids, users) for each in held.blocks]
    page, pair, factor, click, query, *user = (
        np.concatenate(each) for each in zip(*parts, strict=True)
    )
    if timed := TIME in held.ids:
        rank = _page_ranks(held, log)
        order = np.argsort(rank[page], kind="stable")
        pair, factor, click, query, *user = (
            each[order] for each in (pair, factor, click, query, *user)
        )
    displays = Displays.of_rows(
        pair,
        factor,
        click,
        query=query,
        user=user[0] if users else None,
        names=names,
        shown=factors.impressions.astype(float),
    )
    return Feedback(displays, "time" if timed else "stated" if log.ordered else "file")


def by_user(curve: Curve, log: ClickLog, bias: Sequence[str], level: float = 0.95) -> Curve:
    """The conditional curve with errors by user as well as by query, where users are known.

    Args:
        curve: by query.
        log: the log.
        bias: columns of the log that name the bias factor, in the order of the curve's names.
        level: of the intervals.
    """
    if log.counted or USER not in log.ids:
        return curve
    counts = log.count(["query", "document", *bias, USER])
    factors = counts.count(bias)
    own = {name: counts.columns[name] for name in bias}
    keys = key_of(factors.columns, factors.ids)
    rows = pd.DataFrame(
        {
            "pair": counts.groups(["query", "document"])[0],
            "factor": np.searchsorted(keys, key_of(own, counts.ids)),
            "query": counts.columns["query"],
            "user": counts.columns[USER],
            "impressions": counts.impressions,
            "clicks": counts.clicks,
        }
    )
    return cluster_by_user(curve, rows, level=level)


def _clicked_rows(
    block: Block,
    columns: Mapping[str, str],
    keys: Mapping[str, np.ndarray],
    ids: Mapping[str, Ids],
    users: bool,
) -> list[np.ndarray]:
    """Page, pair, factor, click, query, and user, of the documents whose pair has a click.

    Args:
        columns: name of a bias feature -> the log's column of it.
        keys: of the log's factors, and of its clicked pairs.
    """
    pair = key_of({name: block.column(name) for name in ("query", "document")}, ids)
    place = np.minimum(np.searchsorted(keys["pair"], pair), len(keys["pair"]) - 1)
    kept = np.flatnonzero(keys["pair"][place] == pair)
    factor = key_of({name: block.column(own) for name, own in columns.items()}, ids)[kept]
    rows = [
        block.before + block.page[kept],
        place[kept].astype(np.int32),
        np.searchsorted(keys["factor"], factor).astype(np.int32),
        block.click[kept],
        block.column("query")[kept],
    ]
    return [*rows, block.column(USER)[kept]] if users else rows


def _page_ranks(held: Log, log: ClickLog) -> np.ndarray:
    """[pages] the time of each page, as a number that grows with it: that of its first document."""
    ids = held.ids[TIME]
    seconds = seconds_of(ids.take(np.arange(ids.size)), log)
    parts = []
    for block in held.blocks:
        number = block.column(TIME)
        parts.append(seconds[number[np.cumsum(block.lengths) - block.lengths]])
    return np.concatenate(parts)


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
    dates = pd.to_datetime(texts, utc=True, format="mixed", errors="coerce")
    if (wrong := np.flatnonzero(dates.isna())).size:
        raise InputError(
            f"{texts[wrong[0]]!r} is no time",
            path=log.source,
            field=log.layout.time,
            expected="a date and time such as 2026-01-31T12:00:00Z, or seconds",
        )
    return dates.astype("int64").to_numpy()
