"""Counts of pairs by bias factor, with the features of each pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twotowers.fitting.pair_counts import PairCounts


@dataclass(frozen=True)
class FeatureCounts:
    """Counts by pair and bias factor, with the features of each pair.

    Attributes:
        counts: all pairs, also those at one position only.
        features: [pairs, width] with mean 0 and standard deviation 1; constant ones are left out.
        score: [rows of counts] scores of the policy, or None.
    """

    counts: PairCounts
    features: np.ndarray
    score: np.ndarray | None = None

    @classmethod
    def of_arrays(
        cls, query, pair, factor, impressions, clicks, features, score=None, *, factors=None
    ) -> FeatureCounts:
        """From rows in any order. Rows of one pair and factor are added up.

        Args:
            query: [rows] integers.
            pair: [rows] integers: the query-document pair.
            factor: [rows] integers in [0, K): position - 1, or another bias factor.
            impressions, clicks: [rows] counts, 0 <= clicks <= impressions.
            features: [rows, width] finite numbers. The first row of a pair counts.
            score: [rows] scores of the policy that ranked. The first row of a pair and factor
                counts.
            factors: K; by default the largest factor + 1.
        """
        query, pair, factor = (np.asarray(each, np.int64) for each in (query, pair, factor))
        features, impressions = np.asarray(features, float), np.asarray(impressions, float)
        counts = PairCounts.of_arrays(
            pair, factor, impressions, clicks, query=query, factors=factors, every=True
        )
        seen = np.flatnonzero(impressions > 0)
        first = seen[np.unique(pair[seen], return_index=True)[1]]
        features = features[first].reshape(len(first), -1)
        spread = features.std(0) if len(first) else np.zeros(features.shape[1])
        varies = spread > 1e-9 * np.maximum(np.abs(features).max(0, initial=0), 1e-300)
        features = (features[:, varies] - features[:, varies].mean(0)) / spread[varies]
        if score is not None:
            key = pair[seen] * np.int64(counts.factors) + factor[seen]
            score = np.asarray(score, float)[seen[np.unique(key, return_index=True)[1]]]
        return cls(counts, features, score)

    @property
    def cluster(self) -> np.ndarray:
        """[rows] the query's number."""
        return self.counts.cluster[self.counts.pair]

    def mean_rank(self) -> np.ndarray:
        """[rows] minus the mean factor that the row's pair was shown under: a score without one."""
        counts = self.counts
        shown, places = (
            np.bincount(counts.pair, counts.impressions * by) for by in (1, counts.factor)
        )
        return -(places / shown)[counts.pair]
