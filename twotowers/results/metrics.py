"""Ranking metrics: the one nDCG of the whole project.

Rax computes them; what is fixed here is what libraries disagree on. The gain is
2^y - 1, the discount log2(1 + rank), and a list without any relevant document counts
0 (LightGBM and allRank >= 1.4.1 count it 1, which shifts absolute values).
"""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import rax


def ndcg(scores, labels, *, where, topn: int = 10) -> np.ndarray:
    """Normalised discounted cumulative gain of each list.

    Args:
        scores: [queries, documents] model scores; higher ranks first.
        labels: [queries, documents] graded relevance >= 0, not necessarily whole.
        where: [queries, documents] bool, False on padding.
        topn: rank after which gain is not counted.

    Returns:
        [queries] float32 in [0, 1]; 0 where no document has a positive label.
    """
    return np.asarray(_ndcg(scores, labels, where=where, topn=topn))


def mrr(scores, labels, *, where, topn: int = 10) -> np.ndarray:
    """Reciprocal rank of the first document with label >= 1, per list.

    Args and returns as in `ndcg`; 0 where no such document is in the first `topn`.
    """
    return np.asarray(_mrr(scores, labels >= 1, where=where, topn=topn))


def correlation(truth: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """Pearson's correlation with the true relevance: [lanes] float64.

    Each document counts once, however often it is shown. Chen et al. (2024) call it MCC.

    Args:
        truth: [documents] true relevance, or [lanes, documents].
        relevance: [lanes, documents] estimates.

    Returns:
        NaN where either is constant.
    """
    truth, relevance = (
        values - values.mean(-1, keepdims=True)
        for values in (np.asarray(truth, float), np.asarray(relevance, float))
    )
    scale = np.sqrt((truth**2).sum(-1) * (relevance**2).sum(-1))
    return (truth * relevance).sum(-1) / np.where(scale > 0, scale, np.nan)


# Compiled whole: op by op they take seconds to start.
_ndcg = jax.jit(partial(rax.ndcg_metric, reduce_fn=None), static_argnames="topn")
_mrr = jax.jit(partial(rax.mrr_metric, reduce_fn=None), static_argnames="topn")
