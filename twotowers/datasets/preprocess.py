"""The papers' preparation of ranking data sets."""

from collections.abc import Mapping

import numpy as np

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, best_rows
from twotowers.randomness import stream

# Rows that are transformed at a time, so that the temporaries stay in cache.
BLOCK_ROWS = 4096


def signed_log1p(x: np.ndarray) -> np.ndarray:
    """ln(1 + |x|) with the sign of x. It squashes both tails and keeps order, zeros and float32."""
    result = np.log1p(np.abs(x))
    return np.copysign(result, x, out=result)


def rescale_labels(label: np.ndarray, label_max: float) -> np.ndarray:
    """Map labels [rows] linearly from [0, label_max] to [0, 4].

    The gain 2^label - 1 then means the same on every data set. The labels 0, 1, 2 of MQ2008 become
    0, 2, 4. Labels that already have the range stay as they are.
    """
    return (label * (4 / label_max)).astype(np.float32)


def preprocess(rankings: Rankings, *, top: int = 25, label_max: float = 4) -> Rankings:
    """Truncate lists, drop irrelevant queries, squash features, rescale labels to 0-4.

    Each query keeps its `top` documents with the highest labels, as published, in descending order
    of labels. Ties stay in file order. Rows are selected first, so that memory holds the input
    and one copy of the kept rows.
    """
    relevant = _relevant_rows(rankings)
    rows = best_rows(rankings, rankings.label, top)
    kept = rankings.take(rows[relevant[rows]])
    for start in range(0, len(kept.features), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        kept.features[block] = signed_log1p(kept.features[block])
    label = rescale_labels(kept.label, label_max)
    return Rankings(kept.query, kept.document, label, kept.features)


LARGEST = 1e9
"""What larger features are cut to before a logarithm: Istella-S has some of 10^308."""


def preprocess_stratified(
    rankings: Rankings, *, most: int, log1p: bool, label_max: float = 4, seed: int = 0
) -> Rankings:
    """Cut lists to `most` documents, and keep the shares of labels (Hager 2026, Section 2.5.1).

    Of a longer list of n documents, n_l of them with label l, most * n_l / n with label l stay,
    rounded down. The places left go to labels with the largest remainders; of equal ones, to the
    lower label. `seed` draws which documents of a label stay. No query is dropped, and documents
    stay in the order of the file. `log1p` cuts features to +-1e9, and transforms them by
    `signed_log1p`. Labels are rescaled from [0, `label_max`] to [0, 4].
    """
    kept = rankings.take(np.sort(_stratified_rows(rankings, most, stream("truncation", seed))))
    if log1p:
        for start in range(0, len(kept.features), BLOCK_ROWS):
            block = kept.features[start : start + BLOCK_ROWS]
            block[:] = signed_log1p(np.clip(block, -LARGEST, LARGEST))
    label = rescale_labels(kept.label, label_max)
    return Rankings(kept.query, kept.document, label, kept.features)


def _stratified_rows(rankings: Rankings, most: int, rng: np.random.Generator) -> np.ndarray:
    """[kept] row numbers, in no order."""
    query, lengths = rankings.query_of_row, rankings.lengths
    grades, grade = np.unique(rankings.label, return_inverse=True)
    cells = np.bincount(query * len(grades) + grade, minlength=len(lengths) * len(grades))
    cells = cells.reshape(len(lengths), len(grades))
    exact = cells * np.minimum(most / lengths, 1)[:, None]
    quota = np.floor(exact + 1e-9).astype(np.int64)
    missing = np.minimum(lengths, most) - quota.sum(-1)
    order = np.argsort(quota - exact, axis=-1, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(len(grades))[None], axis=-1)
    quota += place < missing[:, None]
    # A random order within each query and label: its first `quota` rows stay.
    shuffled = np.lexsort((rng.random(len(query)), grade, query))
    first = np.cumsum(cells.reshape(-1)) - cells.reshape(-1)
    cell = query[shuffled] * len(grades) + grade[shuffled]
    return shuffled[np.arange(len(query)) - first[cell] < quota.reshape(-1)[cell]]


def preprocess_ultra(
    splits: Mapping[str, Rankings], *, logarithm: bool = False
) -> dict[str, Rankings]:
    """Prepare a data set as the ULTRA framework does, which Chen et al. (2024) used.

    Lists of fewer than two documents and queries without a relevant document are dropped from every
    split. Then each column is scaled to [-1, 1] by its lowest and highest value over all splits. A
    constant column becomes 0. Labels and list lengths stay. With `logarithm`, a column's distance x
    from its lowest value first becomes log10(x + 1), as for Istella-S, whose columns span many
    orders of magnitude.

    The framework's documentation removes irrelevant queries from validation and test only. Its
    scripts remove them from the training split, too, and the paper's counts of queries (Table 3)
    and nodes (Table 4) agree with the scripts. The scripts map an entry that is left out of a
    sparse file to 0, the middle of the range. Here such an entry is a 0 like any other.
    """
    kept = {name: rankings.take(_ultra_rows(rankings)) for name, rankings in splits.items()}
    low = np.min([rankings.features.min(0) for rankings in kept.values()], axis=0)
    span = np.max([rankings.features.max(0) for rankings in kept.values()], axis=0) - low
    if logarithm:
        span = np.log10(span + 1)
    varies = span > 0
    span = np.where(varies, span, 1)
    for rankings in kept.values():
        for start in range(0, len(rankings.features), BLOCK_ROWS):
            block = rankings.features[start : start + BLOCK_ROWS]
            block -= low
            if logarithm:
                np.log10(block + 1, out=block)
            block *= 2 / span
            block -= varies
    return kept


def _ultra_rows(rankings: Rankings) -> np.ndarray:
    """[rows] bool: whether the row's query has at least two documents and a label above 0."""
    kept = _relevant_rows(rankings) & (rankings.lengths > 1)[rankings.query_of_row]
    if not kept.any():
        raise InputError(
            "no query has two documents, one of them relevant", field="rankings", expected="one"
        )
    return kept


def _relevant_rows(rankings: Rankings) -> np.ndarray:
    """[rows] bool: whether the row's query has a label above 0. At least one row is True.

    No metric can tell two rankings of the other queries apart. On unscaled labels this is the
    published condition, a highest label of at least 1.
    """
    relevant = np.maximum.reduceat(rankings.label, rankings.offsets[:-1]) > 0
    if not relevant.any():
        raise InputError(
            f"none of the {len(relevant)} queries has a relevant document",
            field="label",
            expected="a query with a label above 0",
        )
    return relevant[rankings.query_of_row]
