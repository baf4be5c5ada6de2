"""Metrics of each annotated query and of each logged page, as Hager (2026, chapter 3) has them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from twotowers.claims.metrics import dcg, mrr, ndcg

CUTS = (1, 3, 5, 10)
"""The ranks at which DCG is cut."""


def of_each_query(scores, labels, *, where) -> dict[str, np.ndarray]:
    """DCG@1, 3, 5, 10, nDCG@10 and MRR@10 of every annotated query; 0 if nothing is relevant.

    Documents with equal scores count by expectation, as in `twotowers.claims.metrics.ndcg`.
    """
    lists = (scores, labels)
    cut = {f"dcg@{topn}": dcg(*lists, where=where, topn=topn) for topn in CUTS}
    return cut | {"ndcg@10": ndcg(*lists, where=where), "mrr@10": mrr(*lists, where=where)}


def logged_ndcg(scores: np.ndarray, *, where: np.ndarray, topn: int = 10) -> np.ndarray:
    """How well scores predict the logged order: nDCG of pages, with label 1 / k at position k.

    Gains are 2^(1 / k) - 1, as in Rax. So a random order of ten documents has about .7, not 0
    (Hager 2026, Section 3.7.1; de Haan and Hager 2024, Table 1). `scores` and `where`, False where
    a page shows no document, are [pages, positions].
    """
    labels = np.broadcast_to(1 / np.arange(1, scores.shape[1] + 1), scores.shape)
    return ndcg(scores, labels, where=where, topn=topn)


def nll_of_pages(losses: np.ndarray, where: np.ndarray) -> np.ndarray:
    """[pages] mean negative log-likelihood of each page's clicks; NaN for one without documents.

    Losses are in nats; `where` is False where a page shows no document.
    """
    shown = where.sum(1)
    total = np.where(where, losses, 0).sum(1, dtype=float)
    return np.divide(total, shown, out=np.full(len(shown), np.nan), where=shown > 0)


def joined_by_number(nll: np.ndarray, page: np.ndarray, query: np.ndarray) -> np.ndarray:
    """NLL beside annotated queries, as the published notebook joined them.

    It joins pages and annotated queries on ids that only coincide in number. Its tables show the
    mean without NaN, over the few pages that happen to have an annotated query's number. Its tests
    take NaN for 0. `nll_of_pages` of all test pages is the metric that the text describes. The
    result has a row per annotated query, or per page with its id if there are several; NaN if there
    is none.
    """
    pages = pd.DataFrame({"id": page, "nll": nll})
    return pd.DataFrame({"id": query}).merge(pages, on="id", how="left")["nll"].to_numpy(float)
