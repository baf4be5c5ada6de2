"""Is a click log sound, and do its clicks depend on each other?

But for `clicks_above`, every number is a count of the log, so none has an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtr

from twotowers.intervals import Tested, interval
from twotowers.logs.counted import Counts
from twotowers.logs.log import Block, Log
from twotowers.logs.page_arrays import page_hashes

LATER = 0.2
"""The share of the pages, the last ones of the log, that are looked for in those before."""
COPIES = (2, 3)
"""How often a log may have been appended."""
COPIED = 0.05
"""Share of pages that are repeated at one distance, above which the log was appended twice."""

ALIKE = 0.25
"""Pages were copied if more than this share of the rankings that came twice was clicked alike. Only
rankings with several clicks count: two users hardly ever agree on those."""
NOISE = 6.0
"""Standard errors of the difference of two counts, beyond which it is no chance."""

ENOUGH = 10
"""Queries, below which `clicks_above` has no interval."""
TELLING = 20
"""So many counts of clicks must be multiples of a number before that number says anything."""


@dataclass(frozen=True)
class Health:
    """Counts of a log; those from `pages` on are None where they are not known.

    Attributes:
        pairs, queries: query-document pairs, and queries, that were shown.
        impressions, clicks: documents shown, and those clicked.
        thrice, one_position, unclicked: pairs that were shown at most three times, at one position
            only, and never clicked.
        first: the smallest position.
        multiple: the largest number that divides all counts (`multiple`).
        pages, without, several: result pages, those without a click, and those with several.
        repeats: pages that show a document twice.
        later: impressions of the last fifth of the pages, in the order of the log; of them
        unseen_pairs, unseen_queries: those whose pair, or query, is not on the pages before.
        lag: how many pages further on the log repeats pages, if it does so at one distance.
        repeated: pages that are there again at that distance; 0 if no more than by chance.
        twins: rankings that were shown twice, and had several clicks on one of both pages; of them
        alike: those that had the same clicks both times.
    """

    pairs: int
    queries: int
    impressions: int
    clicks: int
    thrice: int
    one_position: int
    unclicked: int
    first: int
    multiple: int
    pages: int | None = None
    without: int | None = None
    several: int | None = None
    repeats: int | None = None
    later: int | None = None
    unseen_pairs: int | None = None
    unseen_queries: int | None = None
    lag: int | None = None
    repeated: int | None = None
    twins: int | None = None
    alike: int | None = None

    @property
    def copied(self) -> str:
        """How much of the log is there again, if it is so much that it was copied; else ''."""
        pages, repeated, twins, alike = (
            each or 0 for each in (self.pages, self.repeated, self.twins, self.alike)
        )
        if self.lag and repeated > COPIED * pages:
            far = f"{self.lag:,} page{'' if self.lag == 1 else 's'} further on"
            return f"{repeated:,} of {pages:,} pages are there again, {far}"
        if twins >= TELLING and alike > ALIKE * twins:
            return (
                f"Of {twins:,} rankings that were shown twice and had several clicks, {alike:,} "
                "were clicked alike both times"
            )
        return f"Every count is a multiple of {self.multiple}" if self.multiple > 1 else ""


def health(counts: Counts, log: Log | None = None) -> Health:
    """Count what tells whether a log is sound; `log` is None where it is counted.

    A log that was appended twice has each page again, half of the log later, and so it may
    otherwise: this looks for the distance at which most pages have an equal one before them. In a
    log that is sorted by query, and in one of few queries, many pages equal those nearby. So the
    pages count only if there are many more of them than at the next distance. Copies at no one
    distance, as in a log that was sorted since, show in rankings that came twice (`alike`).
    """
    pair, first = counts.groups(["query", "document"])
    shown, clicked = (np.bincount(pair, each) for each in (counts.impressions, counts.clicks))
    position = counts.ids["position"].whole(counts.columns["position"])
    lowest = position[first]  # Rows of a pair are sorted by position.
    highest = position[np.append(first[1:], len(pair)) - 1]
    cells = np.gcd(counts.impressions, counts.clicks)
    numbers = {
        "pairs": len(first),
        "queries": len(np.unique(counts.columns["query"])),
        "impressions": int(shown.sum()),
        "clicks": int(clicked.sum()),
        "thrice": int((shown <= 3).sum()),
        "one_position": int((lowest == highest).sum()),
        "unclicked": int((clicked == 0).sum()),
        "first": int(lowest.min()),
        "multiple": multiple(cells, (counts.clicks > 0).sum()),
    }
    return Health(**numbers, **({} if log is None else _of_pages(log)))


def multiple(counts: np.ndarray, telling: float) -> int:
    """The largest number that divides all counts of a log; 1 if fewer than TELLING are of clicks.

    It is 2 if the log was written twice. By chance, n counts of clicks are all even with a
    probability of about 2^-n. A divisor of both counts of each cell will do.
    """
    if telling < TELLING or (counts % 1 != 0).any():
        return 1
    return int(np.gcd.reduce(counts.astype(np.int64)))


def copied_lines(log: Log) -> Iterator[str]:
    """`Health.copied` of a log of pages as a question, if it was copied."""
    if copied := health(log.count(), log).copied:
        yield f"{copied}: was the log appended, or written, more than once?"


def pages_with_gaps(log: Log) -> tuple[int, int]:
    """The number of pages that lack positions, and of those that lack some between others.

    Positions that no page of the log has are missing on none.

    Example:
        >>> import pyarrow as pa
        >>> pages = {"query": [7] * 3, "documents": [[1, 2, 3], [1, 2], [1, 2]],
        ...          "clicks": [[False] * 3] + [[False] * 2] * 2,
        ...          "position": [[1, 3, 5], [3, 5], [1, 5]]}
        >>> pages_with_gaps(Log.of_batches([pa.record_batch(pages)]))
        (2, 1)
    """
    there = np.zeros(log.longest, bool)
    for block in log.blocks:
        there[block.position] = True
    place, lacking, inside = np.cumsum(there), 0, 0
    for block in log.blocks:
        ends = np.cumsum(block.lengths)
        last = place[block.position[ends - 1]]
        first = place[block.position[ends - block.lengths]]
        lacking += block.number(last > block.lengths)
        inside += block.number(last - first >= block.lengths)
    return lacking, inside


def _of_pages(log: Log) -> dict[str, int | None]:
    pages = _Hashed.of(log)
    times = 1 if log.times is None else log.times
    numbers = {
        "pages": log.pages,
        "without": int((times * (pages.clicked == 0)).sum()),
        "several": int((times * (pages.clicked > 1)).sum()),
        "repeats": sum(map(_repeats, log.blocks)),
    }
    if log.times is not None:  # Equal pages are one row, in no order of time.
        return numbers
    cut = log.pages - round(LATER * log.pages)
    both = log.count(
        ["query", "document", "later"], later=(2, lambda block: block.before + block.page >= cut)
    )
    later = np.where(both.columns["later"], both.impressions, 0)
    unseen = {}
    for name, by in (("unseen_pairs", ["query", "document"]), ("unseen_queries", ["query"])):
        number, _ = both.groups(by)
        before = np.bincount(number, both.impressions - later)
        unseen[name] = int(np.bincount(number, later)[before == 0].sum())
    lag, repeated = pages.repeated()
    twins, alike = pages.twins()
    numbers |= {"later": int(later.sum()), **unseen, "lag": lag, "repeated": repeated}
    return {**numbers, "twins": twins, "alike": alike}


def _repeats(block: Block) -> int:
    """Pages that show a document twice."""
    shown = pd.DataFrame({"page": block.page, "document": block.column("document")})
    rows = np.zeros(len(block.lengths), bool)
    rows[block.page[shown.duplicated().to_numpy()]] = True
    return block.number(rows)


@dataclass(frozen=True)
class _Hashed:
    """Pages in the order of the log: [pages] numbers that are equal where the pages are.

    `page` is of query, documents and clicks, `ranking` of query and documents; `clicked` counts.
    """

    page: np.ndarray
    ranking: np.ndarray
    query: np.ndarray
    clicked: np.ndarray

    @classmethod
    def of(cls, log: Log) -> _Hashed:
        page, ranking = (
            np.concatenate([page_hashes(each, clicks=clicks, number=1)[0] for each in log.blocks])
            for clicks in (True, False)
        )
        clicked = [np.bincount(each.page, each.click, len(each.lengths)) for each in log.blocks]
        return cls(page, ranking, log.flat("query"), np.concatenate(clicked))

    def repeated(self) -> tuple[int | None, int]:
        """The distance at which most pages are repeated, and how many they are."""
        pages = len(self.page)
        lags = {pages // copies for copies in COPIES if pages % copies == 0}
        order = np.argsort(self.page, kind="stable")
        again = self.page[order[1:]] == self.page[order[:-1]]
        if again.any():
            distances, times = np.unique(np.diff(order)[again], return_counts=True)
            lags.add(int(distances[times.argmax()]))
        best: tuple[int | None, int] = (None, 0)

        def beyond(alike: float, by_chance: float) -> bool:
            return alike - by_chance > NOISE * (alike + by_chance) ** 0.5

        for lag in sorted(each for each in lags if 0 < each < pages):
            alike, next_to_it = (
                int((self.page[each:] == self.page[: pages - each]).sum())
                for each in (lag, lag + 1)
            )
            if alike <= best[1] or not beyond(alike, next_to_it):
                continue
            if beyond(alike, self._by_chance(lag)):
                best = lag, alike
        return best

    def _by_chance(self, lag: int) -> float:
        """Pages that are alike at a distance if each query's pages come in any order."""
        alike, asked = (
            pd.Series(each).groupby(each).transform("size").to_numpy()
            for each in (self.page, self.query)
        )
        rows = np.flatnonzero(self.query[lag:] == self.query[: len(self.query) - lag])
        return float(((alike[rows] - 1) / (asked[rows] - 1)).sum())

    def twins(self) -> tuple[int, int]:
        """Rankings that were shown twice and had several clicks, and those clicked alike."""
        table = pd.DataFrame(vars(self))
        twice = table[table.groupby("ranking")["page"].transform("size") == 2].groupby("ranking")
        several, alike = twice["clicked"].max() > 1, twice["page"].nunique() == 1
        return int(several.sum()), int((several & alike).sum())


def clicks_above(log: Log) -> Tested:
    """The odds ratio of a click, with and without a click above it, and the test that it is 1.

    Under a position-based model the clicks of a page are independent, given the pairs and
    positions. So a pair that is shown at one position again and again is clicked as often on pages
    with a click above it as on others. Each pair and position is a 2 x 2 table: clicked or not,
    with or without a click above. The odds ratio of Mantel and Haenszel (1959) over these tables,

        OR = sum_s a_s d_s / n_s  /  sum_s b_s c_s / n_s,

    is consistent however small each table is. Below 1, a click above makes others rarer, as in
    cascade models: users stop, satisfied. Above 1, clicks come together, as if users differed. The
    error of its logarithm is clustered by query: queries add r_q and s_q to the two sums, and

        Var ln OR = G / (G - 1) sum_q (r_q / sum r - s_q / sum s)^2.

    Example:
        >>> import pyarrow as pa
        >>> clicks = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 0], [0, 1]] * 10, bool)
        >>> pages = {"query": [k // 6 for k in range(60)], "documents": [[3, 1]] * 60,
        ...          "clicks": clicks.tolist()}
        >>> round(clicks_above(Log.of_batches([pa.record_batch(pages)])).value, 2)
        0.25
    """
    stratum = ["query", "document", "position"]
    counts = log.count([*stratum, "above"], above=(2, lambda block: block.last_click > 0))
    counts = counts.where(counts.columns["position"] > 0)
    number, first = counts.groups(stratum)
    above = counts.columns["above"] > 0
    clicked, missed = counts.clicks, counts.impressions - counts.clicks
    a, b, c, d = (
        np.bincount(number, np.where(where, each, 0), len(first))
        for where in (above, ~above)
        for each in (clicked, missed)
    )
    telling = (a + c > 0) & (b + d > 0) & (a + b > 0) & (c + d > 0)
    a, b, c, d = (each[telling] for each in (a, b, c, d))
    n = a + b + c + d
    _, query = np.unique(counts.columns["query"][first][telling], return_inverse=True)
    r, s = (np.bincount(query, each / n) for each in (a * d, b * c))
    queries = len(r)
    if not (r.sum() > 0 and s.sum() > 0):
        reason = "no pair was shown at one position with and without a click above, and clicked"
        return Tested(reason=reason)
    ratio = float(r.sum() / s.sum())
    if queries < ENOUGH:
        reason = f"only {queries} queries tell, fewer than {ENOUGH}"
        return Tested(ratio, reason=reason)
    each = r / r.sum() - s / s.sum()
    error = float(np.sqrt((each**2).sum() * queries / (queries - 1)))
    p = float(2 * stdtr(queries - 1, -abs(np.log(ratio)) / error)) if error else 1.0
    low, high = map(float, np.exp(interval(np.log(ratio), error, queries - 1)))
    return Tested(ratio, error, low, high, p)
