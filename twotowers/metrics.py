"""Ranking metrics: the one nDCG of the whole project.

Rax computes them; what is fixed here is what libraries disagree on. The gain is
2^y - 1, the discount log2(1 + rank), and a list without any relevant document counts
0 (LightGBM and allRank >= 1.4.1 count it 1, which shifts absolute values).
"""

from __future__ import annotations

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
    return np.asarray(rax.ndcg_metric(scores, labels, where=where, topn=topn, reduce_fn=None))


def mrr(scores, labels, *, where, topn: int = 10) -> np.ndarray:
    """Reciprocal rank of the first document with label >= 1, per list.

    Args and returns as in `ndcg`; 0 where no such document is in the first `topn`.
    """
    return np.asarray(rax.mrr_metric(scores, labels >= 1, where=where, topn=topn, reduce_fn=None))
