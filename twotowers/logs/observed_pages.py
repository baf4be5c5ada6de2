"""The pages of a real log, divided at random into training, validation and test; or its counts.

In the models that are fitted to counts of cells, clicks are independent given query, document and
position. For these models, dividing the impressions of each cell at random is the same as dividing
the sessions. Impressions are multinomial, and the clicks among them hypergeometric.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError, nearest
from twotowers.files.distinct import number_rows
from twotowers.logs.counts import Counts
from twotowers.logs.log import Log
from twotowers.logs.page_arrays import page_arrays
from twotowers.logs.simulation import Sessions
from twotowers.randomness import draw_clicks, stream


class Portion(Protocol):
    """The pages of a split: `first`, a share of those of some `parts` of the log, and by chance
    `share` of these; of so many `clicks`, the fewest and the most, or any. Splits with the same
    parts and `first` share no page."""

    parts: Sequence[str]
    first: float
    share: float
    clicks: tuple[int, int] | None


@dataclass(frozen=True)
class ObservedPages:
    """The distinct rankings of a log, and its sessions on them.

    Attributes:
        pair: [rankings, positions] int32, number of the query-document pair at each position.
        where: [rankings, positions] bool, False where a page shows no document.
        sessions: of each split. Their `query` is the ranking, and their `documents` are in order.
        ids: columns query and document of the pairs by number.
        bias: [rankings, positions, columns] further features, in which equal rankings agree.
    """

    pair: np.ndarray
    where: np.ndarray
    sessions: dict[str, Sessions]
    ids: pa.Table
    bias: np.ndarray | None = None

    @property
    def query(self) -> np.ndarray:
        """[pairs] number of each pair's query."""
        return pd.factorize(self.ids["query"].to_numpy())[0]

    def counts(self, split: str) -> Counts:
        """Impressions and clicks of a split at each position of each ranking: [1, rankings, K]."""
        pages, (rankings, length) = self.sessions[split], self.pair.shape
        shown = np.bincount(pages.query, minlength=rankings)[:, None] * self.where
        clicked = np.stack(
            [np.bincount(pages.query, pages.clicks[:, k], rankings) for k in range(length)], axis=-1
        )
        place = np.broadcast_to(np.arange(length), self.pair.shape)
        columns = shown, clicked.astype(np.int64), place, place
        return Counts(*(column[None] for column in columns))


def observed_pages(
    log: str | Path | Log,
    shares: Mapping[str, float] | Mapping[str, Portion],
    *,
    positions: int,
    seed: int,
    places: str | None = None,
    cut: bool = False,
    bias: Sequence[str] = (),
) -> ObservedPages:
    """The pages of a log, or of a sessions file, whose lanes are read as one, divided at random.

    `shares` of each split add up to 1, or each is a `Portion` of the log. `places`, `cut` and
    `bias` are those of `twotowers.logs.page_arrays.page_arrays`.
    """
    whole, path = (log, None) if isinstance(log, Log) else (Log.read(log), log)
    pages = page_arrays(whole, positions=positions, places=places, cut=cut, path=path, bias=bias)
    shown = np.where(pages.where, pages.pair + 1, 0)
    if pages.bias is not None:
        places_of, _ = number_rows(pages.bias.reshape(-1, len(bias)))
        shown = np.hstack([shown, places_of.reshape(shown.shape)])
    code, first = number_rows(shown)
    row = np.repeat(np.arange(len(code)), 1 if pages.number is None else pages.number)
    given = {"seed": seed, "path": path}
    if not any(isinstance(each, float | int) for each in shares.values()):
        parts = whole.ids["split"].take(whole.flat("split")).to_numpy(zero_copy_only=False)
        clicked = (pages.clicks & pages.where).sum(1)
        divided_rows = divide_parts(parts[row], clicked[row], shares, **given)
    else:
        divided_rows = divide(len(row), shares, **given)
    sessions = {}
    for split, rows in divided_rows.items():
        place = np.broadcast_to(np.arange(positions, dtype=np.uint8), (len(rows), positions))
        own = row[rows]
        clicks, where = pages.clicks[own], pages.where[own]
        sessions[split] = Sessions(code[own].astype(np.int32), place, clicks, where, own)
    further = None if pages.bias is None else pages.bias[first]
    return ObservedPages(pages.pair[first], pages.where[first], sessions, pages.ids, further)


def divide(
    pages: int, shares: Mapping[str, float], *, seed: int, path: str | Path
) -> dict[str, np.ndarray]:
    """Divide pages at random: the rows of each split, in order."""
    order = stream("observed pages", seed).permutation(pages)
    ends = np.round(np.cumsum(list(shares.values()))[:-1] * pages).astype(int)
    divided_rows = dict(zip(shares, map(np.sort, np.split(order, ends)), strict=True))
    check_parts(divided_rows, pages, path)
    return divided_rows


def check_parts(divided_rows: Mapping[str, np.ndarray], pages: int, path: object) -> None:
    """Raise InputError for a split of so many pages that has none."""
    for split in (split for split, rows in divided_rows.items() if not len(rows)):
        raise InputError(f"its {pages} pages leave none for {split!r}", path=path, field="split")


def divide_parts(
    part: np.ndarray,
    clicks: np.ndarray,
    portions: Mapping[str, Portion],
    *,
    seed: int,
    path: str | Path,
) -> dict[str, np.ndarray]:
    """Divide pages by the parts of their log: the rows of each split, in order."""
    known, taken, divided_rows = sorted(set(part)), {}, {}
    for split, portion in portions.items():
        for name in portion.parts:
            if name not in known:
                raise InputError(
                    f"there is no part {name!r}",
                    path=path,
                    field="split",
                    expected=nearest(name, known),
                )
        rows = np.flatnonzero(np.isin(part, portion.parts))
        rows = rows[: round(portion.first * len(rows))]
        if portion.share < 1:
            pool = *portion.parts, portion.first
            order = stream("observed pages", seed, *map(str, pool)).permutation(rows)
            start, taken[pool] = taken.get(pool, 0), taken.get(pool, 0) + portion.share
            if taken[pool] > 1 + 1e-9:
                raise InputError(
                    f"shares of {list(portion.parts)} add up to {taken[pool]:g}",
                    path=path,
                    field="split",
                    expected="at most 1",
                )
            rows = np.sort(order[round(start * len(order)) : round(taken[pool] * len(order))])
        if portion.clicks is not None:
            low, high = portion.clicks
            rows = rows[(clicks[rows] >= low) & (clicks[rows] <= high)]
        divided_rows[split] = rows
    check_parts(divided_rows, len(part), path)
    return divided_rows


def divided(
    shown: np.ndarray, clicked: np.ndarray, shares: Mapping[str, float], *, rng: np.random.Generator
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Impressions and clicks of each cell in each part of a random division; shares add up to 1."""
    sizes = rng.multinomial(shown, list(shares.values()))
    clicks, others = clicked.copy(), shown - clicked
    parts = {}
    for number, split in enumerate(shares):
        size = sizes[:, number]
        drawn = draw_clicks(rng, clicks, clicks + others, size)
        clicks, others = clicks - drawn, others - (size - drawn)
        parts[split] = size, drawn
    return parts
