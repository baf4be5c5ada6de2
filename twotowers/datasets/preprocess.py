"""What the papers do to a ranking data set before anything else."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twotowers.errors import InputError, check_range
from twotowers.files.rankings import Rankings

# Rows transformed at a time: the temporaries of the logarithm stay in cache.
BLOCK_ROWS = 4096


def signed_log1p(x: np.ndarray) -> np.ndarray:
    """ln(1 + |x|) with the sign of x: squashes both tails, keeps order and zeros.

    Args:
        x: Array of any shape.

    Returns:
        A new array of the same shape; float32 stays float32.
    """
    result = np.log1p(np.abs(x))
    return np.copysign(result, x, out=result)


def rescale_labels(label: np.ndarray, label_max: float, to: float = 4) -> np.ndarray:
    """Map labels linearly from [0, label_max] to [0, to].

    So that one gain, 2^label - 1, means the same on every data set: the labels 0, 1, 2 of
    MQ2008 become 0, 2, 4. Labels that already have the range are returned unchanged.

    Args:
        label: [rows] in [0, label_max].
        label_max: The highest label of the data set, above 0.
        to: The highest label wanted.

    Returns:
        [rows] float32 in [0, to].

    Raises:
        InputError: `label_max` is not positive, or a label is out of range.
    """
    if not label_max > 0:
        raise InputError(f"{label_max!r} is not positive", field="label_max")
    wrong = ~((label >= 0) & (label <= label_max))
    if wrong.any():
        raise InputError(
            f"{label[wrong][0]:g} is out of range",
            field="label",
            expected=f"a number in [0, {label_max:g}]",
        )
    return (label * (to / label_max)).astype(np.float32)


def truncate(rankings: Rankings, top: int) -> Rankings:
    """Keep the `top` documents of highest label of each query, as published.

    Args:
        rankings: At least one row.
        top: List length, 1 or more. Shorter lists are kept whole.

    Returns:
        Rankings whose lists are ordered by label, descending; ties stay in file order.

    Raises:
        InputError: there is no row, or `top` is not a whole number of at least 1.
    """
    return rankings.take(_top_rows(rankings, top))


def drop_irrelevant(rankings: Rankings) -> Rankings:
    """Keep the queries that have a relevant document (of any label above 0).

    No metric can tell two rankings of the other queries apart. On unscaled labels the
    condition is the published one, a highest label of at least 1; it does not change
    when labels are rescaled.

    Raises:
        InputError: there is no row, or no query remains.
    """
    return rankings.take(_relevant_rows(rankings))


def preprocess(rankings: Rankings, *, top: int = 25, label_max: float = 4) -> Rankings:
    """Truncate, drop irrelevant queries, squash features, bring labels to 0-4.

    Rows are selected before anything is computed: beyond the input, memory holds the
    rows kept, once.

    Args:
        rankings: Raw features and labels in [0, label_max].
        top: List length, as in `truncate`.
        label_max: The highest label of the data set, as in `rescale_labels`.

    Returns:
        Rankings of at most `top` documents per query by descending label, features
        transformed by `signed_log1p`, labels in [0, 4].

    Raises:
        InputError: a label or parameter is out of range, there is no row, or no query
            has a relevant document.
    """
    relevant = _relevant_rows(rankings)
    rows = _top_rows(rankings, top)
    kept = rankings.take(rows[relevant[rows]])
    for start in range(0, len(kept.features), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        kept.features[block] = signed_log1p(kept.features[block])
    label = rescale_labels(kept.label, label_max)
    return Rankings(kept.query, kept.document, label, kept.features)


def preprocess_ultra(
    splits: Mapping[str, Rankings], *, logarithm: bool = False
) -> dict[str, Rankings]:
    """Prepare a data set as the ULTRA framework does, which Chen et al. (2024) used.

    Lists of fewer than two documents and queries without a relevant document are dropped,
    from every split. Then each column is brought to [-1, 1] by its lowest and highest value
    over all splits; a column that never varies becomes 0. Labels and list lengths stay.

    The framework announces the removal of irrelevant queries for validation and test only,
    but its scripts remove them from the training split as well, and the paper's counts of
    queries (Table 3) and nodes (Table 4) agree with the latter. The published scripts map an
    entry that is left out of a sparse file to 0, in the middle of the range; here it is a 0
    like any other.

    Args:
        splits: Raw rankings by split; all of the same width.
        logarithm: Replace a column's distance x from its lowest value by log10(x + 1) first,
            as for Istella-S, whose columns span many orders of magnitude.

    Returns:
        The splits by the same names, features in [-1, 1].

    Raises:
        InputError: a split has no query, or keeps none.
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
    """[rows] bool: the row's query has two documents at least, and a label above 0."""
    offsets, query = _query_numbers(rankings)
    kept = _relevant_rows(rankings) & (np.diff(offsets) > 1)[query]
    if not kept.any():
        raise InputError(
            "no query has two documents, one of them relevant", field="rankings", expected="one"
        )
    return kept


def _top_rows(rankings: Rankings, top: int) -> np.ndarray:
    """[kept] row numbers, queries in order, within each the `top` highest labels descending."""
    check_range(top, field="top", low=1, high=np.inf)
    if not isinstance(top, int):
        raise InputError(f"{top!r} is not a whole number", field="top")
    offsets, query = _query_numbers(rankings)
    # A stable sort by query, then by descending label: ties keep the order of the file,
    # and each query keeps its block of rows.
    order = np.lexsort((-rankings.label, query))
    place = np.arange(len(order)) - offsets[query]
    return order[place < top]


def _relevant_rows(rankings: Rankings) -> np.ndarray:
    """[rows] bool: the row's query has a label above 0; true for one row at least."""
    offsets, query = _query_numbers(rankings)
    relevant = np.maximum.reduceat(rankings.label, offsets[:-1]) > 0
    if not relevant.any():
        raise InputError(
            f"none of the {len(relevant)} queries has a relevant document",
            field="label",
            expected="a query with a label above 0",
        )
    return relevant[query]


def _query_numbers(rankings: Rankings) -> tuple[np.ndarray, np.ndarray]:
    """[queries + 1] row offsets, and [rows] the 0-based number of each row's query."""
    if not len(rankings.query):
        raise InputError("there is no query", field="rankings", expected="at least one row")
    offsets = rankings.offsets
    return offsets, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
