"""Counts of query-document pairs by bias factor, reduced to what tells of bias.

A pair tells of bias if it was shown under at least two bias factors. It tells the conditional
estimates (`twotowers.fitting.conditional`) something only if it was also clicked. On a sparse log
that leaves a small share of the rows, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from twotowers.logs.counted import Counts
from twotowers.randomness import draw_clicks

BLOCK = 1 << 22
"""Rows of a log to join at a time."""


@dataclass(frozen=True)
class PairCounts:
    """Impressions and clicks of pairs, usually of those that were shown under several bias factors.

    Attributes:
        pair: [rows] pair numbers from 0, ascending without gaps.
        factor: [rows] bias factors in [0, K). A pair has one row per factor.
        impressions: [rows] float, > 0.
        clicks: [rows] float, in [0, impressions].
        cluster: [pairs] the cluster of each pair, from 0: its query.
        query: [clusters] the number of this query in the log.
        names: [K] a row per bias factor, with a column per bias feature.
        shown, clicked: [K] impressions and clicks of the whole log, of all pairs.
        component: [K] connected component of each factor in the whole log; -1 if never shown.
        repeats: [K] impressions of a pair under the factor, a mean over impressions of the log: 1
            if no document is there twice.
    """

    pair: np.ndarray
    factor: np.ndarray
    impressions: np.ndarray
    clicks: np.ndarray
    cluster: np.ndarray
    query: np.ndarray
    names: pd.DataFrame
    shown: np.ndarray
    clicked: np.ndarray
    component: np.ndarray
    repeats: np.ndarray

    @property
    def factors(self) -> int:
        """K, the number of bias factors."""
        return len(self.shown)

    @property
    def starts(self) -> np.ndarray:
        """[pairs] the first row of each pair."""
        return np.flatnonzero(np.diff(self.pair, prepend=-1))

    def halved(self, rng: np.random.Generator) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """[rows] impressions and clicks of both halves of all impressions, which are whole numbers
        and divided at random."""
        shown, clicked = self.impressions.astype(np.int64), self.clicks.astype(np.int64)
        half = shown // 2 + (shown % 2) * rng.integers(2, size=len(shown))
        hits = draw_clicks(rng, clicked, shown, half)
        return (half, hits), (shown - half, clicked - hits)

    @classmethod
    def of_arrays(
        cls,
        pair: np.ndarray,
        factor: np.ndarray,
        impressions: np.ndarray,
        clicks: np.ndarray,
        *,
        query: np.ndarray | None = None,
        names: pd.DataFrame | None = None,
        factors: int | None = None,
        every: bool = False,
    ) -> PairCounts:
        """From rows [rows] in any order. Rows of one pair and factor are added up.

        Pairs, factors in [0, K) and queries are integers; without queries each pair is a cluster of
        its own. `names` [K] are positions from 1 by default, and K that of `names`, or the largest
        factor + 1. `every` keeps pairs that were shown under one factor only.

        Example:
            >>> counts = PairCounts.of_arrays([7, 7, 8], [0, 1, 0], [10, 10, 5], [4, 2, 1])
            >>> counts.pair.tolist(), counts.shown.tolist()  # pair 8 was at one position only
            ([0, 0], [15.0, 10.0])
        """
        pair, factor = (np.asarray(each, np.int64) for each in (pair, factor))
        impressions, clicks = (np.asarray(each, float) for each in (impressions, clicks))
        if factors is None:
            factors = len(names) if names is not None else int(factor.max(initial=-1)) + 1
        if names is None:
            names = pd.DataFrame({"position": np.arange(1, factors + 1)})
        seen = impressions > 0
        pair, factor, impressions, clicks = (
            each[seen] for each in (pair, factor, impressions, clicks)
        )
        _, pair = np.unique(pair, return_inverse=True)
        key, first, place = np.unique(
            pair * np.int64(factors) + factor, return_index=True, return_inverse=True
        )
        impressions, clicks = (np.bincount(place, each) for each in (impressions, clicks))
        pair, factor = np.divmod(key, factors)
        cluster = pair if query is None else np.asarray(query)[seen][first]
        return cls.of_sorted(pair, factor, impressions, clicks, cluster, names, every=every)

    @classmethod
    def of_sorted(
        cls, pair, factor, impressions, clicks, query, names, *, every=False
    ) -> PairCounts:
        """From distinct rows, sorted by pair: [rows] each, with the query of each row.

        `every` is that of `of_arrays`.
        """
        factors = len(names)
        several = np.ones(len(pair), bool)
        if len(pair) and not every:
            several = np.bincount(pair)[pair] > 1
        kept = [each[several] for each in (pair, factor, impressions, clicks, query)]
        _, first, kept[0] = np.unique(kept[0], return_index=True, return_inverse=True)
        weights = (impressions, clicks, np.square(impressions))
        shown, clicked, squares = (np.bincount(factor, each, factors) for each in weights)
        # A pair links its first factor to its others.
        component = factor_components(kept[1][first][kept[0]], kept[1], factors=factors)
        query, cluster = np.unique(kept[4][first], return_inverse=True)
        component = np.where(shown > 0, component, -1)
        repeats = squares / np.maximum(shown, 1)
        return cls(*kept[:4], cluster, query, names, shown, clicked, component, repeats)

    @classmethod
    def of_counts(cls, counts: Counts, bias: Sequence[str], *, clicked: bool = True) -> PairCounts:
        """Of a log, of pairs that tell of bias; each combination of the columns `bias` is a factor.

        `clicked`: whether pairs without a click are left out. `harvest` needs them,
        `fit_conditional` does not.
        """
        counts = counts.count(["query", "document", *bias])
        pair, _ = counts.groups(["query", "document"])
        factor, first = counts.groups(bias)
        own = counts.where(first)
        names = pa.table({name: own.values(name) for name in bias})
        shown, clicks = counts.impressions.astype(float), counts.clicks.astype(float)
        columns = pair, factor, shown, clicks, counts.columns["query"]
        found = cls.of_sorted(*columns, names.to_pandas())
        return found.where() if clicked else found

    def where(self, rows: np.ndarray | bool = True) -> PairCounts:
        """The rows chosen, of pairs that have a click and several factors among them."""
        rows = np.broadcast_to(rows, len(self.pair))
        pairs, chosen = len(self.cluster), self.pair[rows]
        tells = np.bincount(chosen, self.clicks[rows], pairs) > 0
        tells &= np.bincount(chosen, minlength=pairs) > 1
        kept = rows & tells[self.pair]
        number, pair = np.unique(self.pair[kept], return_inverse=True)
        left, cluster = np.unique(self.cluster[number], return_inverse=True)
        return replace(
            self,
            pair=pair,
            factor=self.factor[kept],
            impressions=self.impressions[kept],
            clicks=self.clicks[kept],
            cluster=cluster,
            query=self.query[left],
        )


def factor_components(document: np.ndarray, factor: np.ndarray, *, factors: int) -> np.ndarray:
    """[factors] connected component of each bias factor (Chen et al. 2024, Theorem 1, Algorithm 1).

    The bias is identified if all are 0. Documents, or feature vectors, and factors are integers
    from 0; a factor that was never seen is a component of its own.
    """
    documents = int(document.max()) + 1 if len(document) else 0
    nodes = factors + documents
    label = np.arange(nodes, dtype=np.int32 if nodes < 2**31 else np.int64)
    # Each block is joined to the components so far, so memory holds the log, a block and a number
    # per node. A block has at least as many rows as there are nodes, so renumbering the nodes after
    # each block stays linear in the rows.
    step = max(BLOCK, nodes)
    for start in range(0, len(document), step):
        block = slice(start, start + step)
        left, right = label[factor[block]], label[factors:][document[block]]
        apart = left != right
        left, right = left[apart], right[apart]
        if len(left):
            edges = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(nodes, nodes))
            label = connected_components(edges, directed=False)[1][label]
    return np.unique(label[:factors], return_inverse=True)[1]


def strong_components(counts: PairCounts, form: str = "product") -> np.ndarray:
    """[K] strong components: where clicks order factors both ways (Ford 1957).

    An arrow leads from factor k over a pair to factor l if the pair was shown under k and clicked
    under l; in the additive form, if it was shown under k without a click. Ratios are finite
    exactly within the strong components of this graph.
    """
    factors, pairs = counts.factors, len(counts.cluster)
    hit = counts.clicks > 0
    missed = counts.impressions > (counts.clicks if form == "additive" else 0)
    tail = np.concatenate([counts.factor[missed], factors + counts.pair[hit]])
    head = np.concatenate([factors + counts.pair[missed], counts.factor[hit]])
    edges = coo_array((np.ones(len(tail), bool), (tail, head)), shape=(factors + pairs,) * 2)
    return connected_components(edges, directed=True, connection="strong")[1][:factors]
