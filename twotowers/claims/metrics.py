"""Metrics of rankings, of predicted clicks and of relevance.

Libraries disagree on nDCG. Here, as in Rax, the gain is 2^y - 1, the discount is
1 / log2(1 + rank), and a list without a relevant document counts 0. (LightGBM and
allRank >= 1.4.1 count it 1, which shifts absolute values.)

Documents with equal scores count by expectation, as if each of their orders were as likely
(McSherry and Najork 2008). So a model that scores all alike is as good as chance, however lists
are sorted.

Those of each annotated query and of each logged page are as Hager (2026, chapter 3) has them.
"""

import numpy as np
import pandas as pd

from twotowers.logs.counts import Counts

CONSTANT = 1e-14
"""Values that vary less, relative to their size, are equal but for rounding."""
CUTS = (1, 3, 5, 10)
"""The ranks at which DCG is cut."""


def ndcg(scores, labels, *, where, topn: int = 10) -> np.ndarray:
    """Normalised discounted cumulative gain (nDCG) of each list, [queries] in [0, 1].

    DCG = sum over ranks of (2^y - 1) / log2(1 + rank), divided by the DCG of the best order
    (Järvelin and Kekäläinen 2002; Burges et al. 2005). Scores, labels y >= 0, which may be
    fractions, and `where`, False on padding, are [queries, documents]. A list without a positive
    label has 0.

    Example:
        >>> scores, labels = np.array([[0.3, 0.2, 0.1]]), np.array([[0, 1, 0]])
        >>> ndcg(scores, labels, where=np.ones((1, 3), bool)).round(3)
        array([0.631])
    """
    gained = dcg(scores, labels, where=where, topn=topn)
    best = dcg(labels, labels, where=where, topn=topn)
    return np.divide(gained, best, out=np.zeros(len(gained)), where=best > 0)


def dcg(scores, labels, *, where, topn: int = 10) -> np.ndarray:
    """Discounted cumulative gain of each list, sum of (2^label - 1) / log2(1 + rank).

    Args and the rule for lists without a relevant document are those of `ndcg`. Documents without a
    label above 0 add nothing, so the largest value depends on the list.

    Example:
        >>> shown = np.ones((1, 3), bool)
        >>> dcg(np.array([[3.0, 2, 1]]), np.array([[0.0, 2, 1]]), where=shown).round(3)
        array([2.393])
    """
    gain = _ranked(2.0 ** np.asarray(labels, float) - 1, scores, where)[:, :topn]
    return gain @ (1 / np.log2(2 + np.arange(gain.shape[1])))


def mrr(scores, labels, *, where, topn: int = 10) -> np.ndarray:
    """Reciprocal rank of each list: 1 / rank of the first document with label >= 1.

    Args and returns are those of `ndcg`. The value is 0 if the first `topn` have no such document.

    Example:
        >>> scores, labels = np.array([[0.3, 0.2, 0.1]]), np.array([[0, 1, 0]])
        >>> mrr(scores, labels, where=np.ones((1, 3), bool)).tolist()
        [0.5]
    """
    share, place, size = _ranked(np.asarray(labels) >= 1, scores, where, places=True)
    # If no document before was relevant, all relevant ones of this score are among those left.
    none = np.cumprod(np.maximum(1 - share * size / (size - place), 0), axis=-1)
    first = -np.diff(none, axis=-1, prepend=1)[:, :topn]
    return first @ (1 / (1 + np.arange(first.shape[1])))


def arp(scores, labels, *, where) -> np.ndarray:
    """Average relevant position of each list: sum of rank x label / sum of labels.

    It is that of Joachims et al. (2017), here with graded labels. Lower is better; it is 1 or more.
    A list without a positive label has 0, as in the published code.

    Example:
        >>> arp(np.array([[0.3, 0.2, 0.1]]), np.array([[3, 0, 1]]), where=np.ones((1, 3), bool))
        array([1.5])
    """
    gain = _ranked(np.asarray(labels, float), scores, where)
    total = gain.sum(-1)
    ranks = gain @ np.arange(1, gain.shape[-1] + 1)
    return np.divide(ranks, total, out=np.zeros(len(gain)), where=total > 0)


def shown_arp(counts: Counts, relevance: np.ndarray, *, where: np.ndarray) -> np.ndarray:
    """`arp` of the rankings that a log showed, averaged over the sessions of each query."""
    label = np.where(where, relevance, 0).astype(float)
    shown = counts.total(counts.impressions * counts.of_documents(label) * (counts.place + 1.0))
    total = label.sum(-1) * counts.sessions
    return np.divide(shown, total, out=np.zeros(len(label)), where=total > 0)


def shown_ndcg(
    counts: Counts, relevance: np.ndarray, *, where: np.ndarray, topn: int = 10
) -> np.ndarray:
    """nDCG of the rankings that a log showed, averaged over the sessions of each query.

    DCG is a sum over cells, so its mean over sessions follows from the counts exactly. Relevance is
    [queries, documents], >= 0. Queries without sessions or without a positive label have 0.
    """
    gain = np.where(where, 2.0**relevance - 1, 0)
    discount = 1 / np.log2(2 + np.arange(topn))
    ideal = -np.sort(-gain, axis=-1)[:, :topn] @ discount[: gain.shape[1]]
    at = np.append(discount, 0)[np.minimum(counts.place, topn)]
    shown = counts.total(counts.impressions * (counts.of_documents(gain) * at))
    possible = ideal * counts.sessions
    return np.divide(shown, possible, out=np.zeros(len(gain)), where=possible > 0)


def perplexity(losses: np.ndarray, impressions: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Click perplexity at each position: 2^(-mean log2 P(click or none, as observed)).

    A perfect prediction has 1, and P(click) = 1/2 has 2 (Chuklin et al. 2015, Section 5.1.2, Eq.
    5.3). Losses are negative log-likelihoods (natural logarithm) of cells, of any shape; positions
    are from 0. A position that was never shown has NaN.

    Example:
        >>> perplexity(np.log([2.0, 1.0]), np.array([1, 1]), np.array([0, 1]))
        array([2., 1.])
    """
    place = np.asarray(position, int).ravel()
    total = np.bincount(place, np.asarray(losses, float).ravel())
    shown = np.bincount(place, np.asarray(impressions, float).ravel())
    mean = np.divide(total, shown, out=np.full(len(shown), np.nan), where=shown > 0)
    return np.exp(mean)


def pooled_perplexity(losses: np.ndarray, impressions: np.ndarray) -> float:
    """Click perplexity over all documents at once (thesis of P. Hager, Eq. 5.14).

    CLAX reports the mean of `perplexity` over ranks instead. By Jensen's inequality that is no
    lower, where all ranks are shown equally often.

    Example:
        >>> losses, shown = np.log([4.0, 1.0]), np.array([1, 1])
        >>> ranks = perplexity(losses, shown, np.array([0, 1]))
        >>> ranks.mean().item(), round(pooled_perplexity(losses, shown), 6)
        (2.5, 2.0)
    """
    total = np.sum(impressions)
    return float(np.exp(np.sum(losses) / total)) if total else np.nan


def perplexities(losses: np.ndarray, counts: Counts, log: int) -> list[tuple]:
    """Perplexity at each shown position, the mean over positions, and that of all impressions."""
    counts = counts.of_log(log)
    shown = counts.impressions
    by_rank = perplexity(losses, shown, np.broadcast_to(counts.place, shown.shape))
    rows = [("perplexity", rank, value) for rank, value in enumerate(by_rank, start=1)]
    rows.append(("pooled_perplexity", None, pooled_perplexity(losses, shown)))
    return [*rows, ("mean_perplexity", None, np.nanmean(by_rank))]


def page_perplexities(
    alone: np.ndarray, given: np.ndarray, where: np.ndarray, number: np.ndarray | None = None
) -> list[tuple]:
    """Perplexities and log-likelihoods of pages.

    From losses [sessions, K] of each click, alone and given those above it: metric, position and
    value: (conditional) perplexity at each position, its mean over positions, as CLAX has it, and
    that of all documents (Eq. 5.14); and the mean log-likelihood as CLAX has it, over all documents
    shown, and as PyClick has it, over the documents of a session, then over sessions. The two
    differ where pages differ in length. `number` [sessions] is how many equal sessions each is.
    """
    position, rows = np.broadcast_to(np.arange(where.shape[1]), where.shape), []
    alone, given = (np.where(where, each, 0) for each in (alone, given))
    if number is not None:
        where, alone, given = (each * number[:, None] for each in (where, alone, given))
    for prefix, losses in (("", alone), ("conditional_", given)):
        by_rank = perplexity(losses, where, position)
        rows += [(f"{prefix}perplexity", k, value) for k, value in enumerate(by_rank, start=1)]
        rows.append((f"mean_{prefix}perplexity", None, np.nanmean(by_rank)))
        rows.append((f"pooled_{prefix}perplexity", None, pooled_perplexity(losses, where)))
    return [
        *rows,
        ("log_likelihood_clax", None, -given.sum() / where.sum()),
        ("log_likelihood_pyclick", None, -np.average(given.sum(1) / where.sum(1), weights=number)),
    ]


def correlation(truth: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """[lanes] Pearson's correlation of estimates with the truth; NaN if either is constant.

    All documents have the same weight, however often they were shown. Chen et al. (2024) call it
    MCC. The truth is [documents] or [lanes, documents].

    Example:
        >>> correlation(np.array([1.0, 2.0, 3.0]), np.array([[2.0, 4.0, 6.0], [3.0, 2.0, 1.0]]))
        array([ 1., -1.])
    """
    given = np.asarray(truth, float), np.asarray(relevance, float)
    truth, relevance = (values - values.mean(-1, keepdims=True) for values in given)
    spread, size = (
        np.sqrt((one**2).sum(-1) * (other**2).sum(-1)) for one, other in ((truth, relevance), given)
    )
    constant = spread <= CONSTANT * size
    return (truth * relevance).sum(-1) / np.where(constant, np.nan, spread)


def of_each_query(scores, labels, *, where) -> dict[str, np.ndarray]:
    """DCG@1, 3, 5, 10, nDCG@10 and MRR@10 of every annotated query; 0 if nothing is relevant.

    Documents with equal scores count by expectation, as in `ndcg`.
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


def _ranked(values, scores, where, *, places: bool = False):
    """[queries, documents] values in the order of scores, and 0 in the place of padding. Documents
    with equal scores have their mean. If asked, also places among such documents and their number.

    Padding comes last, behind documents whose scores are no numbers.
    """
    where = np.asarray(where)
    down = np.nan_to_num(-np.asarray(scores, float), nan=np.finfo(float).max)
    down = np.where(where, down, np.inf)
    order = np.argsort(down, kind="stable", axis=-1)
    values, down = (
        np.take_along_axis(each, order, axis=-1) for each in (np.where(where, values, 0), down)
    )
    first = np.ones(down.shape, bool)
    first[:, 1:] = down[:, 1:] != down[:, :-1]
    group = np.cumsum(first) - 1
    size = np.bincount(group)
    mean = (np.bincount(group, values.ravel()) / size)[group].reshape(values.shape)
    if not places:
        return mean
    place = np.arange(len(group)) - np.flatnonzero(first)[group]
    return mean, place.reshape(mean.shape), size[group].reshape(mean.shape)
