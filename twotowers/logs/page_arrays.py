"""The pages of a log as arrays of one width, with query-document pairs numbered."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.blocks import in_order
from twotowers.files.rankings import mask
from twotowers.logs.log import Block, Log

FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1342543DE82EF95)
"""Odd numbers with irregular bits."""
SHIFT = np.uint64(32)
LONGEST = 200
"""Positions of a page whose end is cut off."""


@dataclass(frozen=True)
class Pages:
    """Pages with their clicks: all of a log, in its order, or the distinct ones.

    Attributes:
        pair: [rows, positions] number of the query-document pair at each position.
        clicks, where: [rows, positions] bool; `where` is False where a page shows no document:
            behind its end, and in gaps.
        pairs: number of query-document pairs.
        number: [rows] how often the log has the page, fractions allowed; None if once.
        ids: columns query and document of the pairs by number, if pairs have ids.
        bias: [rows, positions, columns] float32 further features of places, if any were asked for.
    """

    pair: np.ndarray
    clicks: np.ndarray
    where: np.ndarray
    pairs: int
    number: np.ndarray | None = None
    ids: pa.Table | None = None
    bias: np.ndarray | None = None


def page_arrays(
    log: Log,
    *,
    positions: int,
    places: str | None = None,
    cut: bool = False,
    path: object = None,
    by_id: bool = False,
    bias: Sequence[str] = (),
) -> Pages:
    """All pages of a log as arrays [pages, positions].

    Args:
        positions: of a page, at most.
        places: a bias feature with the position of each document, from 1 and rising, so that gaps
            stay; None for the positions of the log.
        cut: whether documents below the last position are left out. Otherwise they are an error.
        path: where the log is from, for messages.
        by_id: whether pairs are numbered in any order, which takes less time. Otherwise they are
            numbered in the order of their first occurrence.
        bias: columns of numbers that bias towers read.
    """
    if not log.pages:
        raise InputError("the log is empty", path=path)
    most = LONGEST if cut else positions
    check_lengths(log, most, path)
    lengths, click = log.flat("lengths"), log.flat("click")
    query, document = log.flat("query"), log.flat("document")
    query, where = np.repeat(query, lengths), mask(lengths, positions)
    further = [_numbers(log, name, "a column of numbers", path) for name in bias]
    if places is not None or cut or log.gaps:
        page = np.repeat(np.arange(len(lengths)), lengths)
        at = np.concatenate([each.position for each in log.blocks])
        if places is not None:
            at = _places(log, places, page, most, path)
        kept = at < positions
        where[:] = False
        where[page[kept], at[kept]] = True
        if not where.any(axis=1).all():
            wrong = log.ids["query"].take(log.flat("query")[~where.any(axis=1)][:1])[0]
            raise InputError(
                f"a page of query {wrong} shows nothing down to position {positions}",
                path=path,
                field="positions",
                expected="more positions",
            )
        query, document, click, *further = (
            each[kept] for each in (query, document, click, *further)
        )
    pair, ids = _pairs(log, query, document, by_id)
    arrays = np.zeros(where.shape, np.int32), np.zeros(where.shape, bool)
    for array, values in zip(arrays, (pair, click), strict=True):
        array[where] = values
    described = np.zeros((*where.shape, len(further)), np.float32) if further else None
    for column, values in enumerate(further):
        described[where, column] = values
    return Pages(*arrays, where, len(ids), log.times, ids, described)


def check_lengths(log: Log, positions: int, path: object) -> None:
    """Raise InputError for a page without documents, or with more than positions."""
    ends = [(each.lengths.min(), each.lengths.max()) for each in log.blocks if len(each.lengths)]
    low, high = min(one for one, _ in ends), max(other for _, other in ends)
    high = max(high, log.longest) if log.gaps else high
    if low < 1 or high > positions:
        raise InputError(
            f"pages show {low} to {high} documents",
            path=path,
            field="documents",
            expected=f"1 to {positions}, the 'positions' of the experiment",
        )


def distinct_arrays(log: Log, *, positions: int) -> Pages:
    """The distinct pages, counted; see `page_arrays`. They are in the order of their first pair, so
    that those of a query, which share parameters, follow each other.

    Pages are distinguished by two hashes of 64 bits.
    """
    hashes = in_order(page_hashes, list(log.blocks), cells=log.shown)
    one, other = (np.concatenate(each) for each in zip(*hashes, strict=True))
    order = np.argsort(one, kind="stable")
    for _ in range(2):
        equal = one[order[1:]] == one[order[:-1]]
        both = equal & (other[order[1:]] == other[order[:-1]])
        if np.array_equal(equal, both):
            break
        order = np.lexsort([other, one])  # Two pages share a hash, which hardly ever happens.
    starts = np.flatnonzero(np.append(True, ~both))
    times = np.ones(len(one), int) if log.times is None else log.times
    first, number = order[starts], np.add.reduceat(times[order], starts)
    rows = np.zeros(len(one), bool)
    rows[first] = True
    pages = page_arrays(log.part(rows), positions=positions, by_id=True)
    order = np.argsort(pages.pair[:, 0], kind="stable")
    arrays = {name: getattr(pages, name)[order] for name in ("pair", "clicks", "where")}
    return replace(pages, number=number[np.argsort(first)][order].astype(float), **arrays)


def page_hashes(block: Block, *, clicks: bool = True, number: int = 2) -> list[np.ndarray]:
    """[pages] so many numbers, at most two, each equal where pages are, and hardly ever elsewhere.

    `clicks`: whether pages with other clicks are others.
    """
    starts = np.cumsum(block.lengths, dtype=np.int64) - block.lengths
    marked = (block.column("document").astype(np.uint64) + np.uint64(1)) * np.uint64(2)
    if clicks:
        marked += block.click
    if "position" in block.of_documents:
        marked ^= block.position.astype(np.uint64) << SHIFT
    query = block.of_pages["query"].astype(np.uint64) + np.uint64(1)
    hashes = [_stirred(query, factor) for factor in FACTORS[:number]]
    for place in range(int(block.lengths.max(initial=0))):
        there = block.lengths > place
        values = marked[starts[there] + place]
        for mixed, factor in zip(hashes, FACTORS, strict=False):
            mixed[there] = _stirred(mixed[there] ^ values, factor)
    return hashes


def _stirred(values: np.ndarray, factor: np.uint64) -> np.ndarray:
    values = values * factor
    return values ^ (values >> SHIFT)


def _pairs(log: Log, query: np.ndarray, document: np.ndarray, by_id: bool):
    """[shown] numbers of pairs, from those of query and document; and the pairs' ids."""
    size = log.ids["document"].size
    query_of = np.full(size, -1, np.int32)
    query_of[document] = query
    if not np.array_equal(query_of[document], query):
        number, distinct = pd.factorize(query * np.int64(size) + document)
        queries, documents = np.divmod(distinct, size)
    else:  # No document belongs to two queries, so documents are pairs.
        if by_id:
            documents = np.flatnonzero(query_of >= 0)
            rank = np.zeros(size, np.int32)
            rank[documents] = np.arange(len(documents), dtype=np.int32)
            number = rank[document]
        else:
            number, documents = pd.factorize(document)
        queries = query_of[documents]
    ids = {"query": log.ids["query"].take(queries)}
    return number, pa.table({**ids, "document": log.ids["document"].take(documents)})


def _places(log: Log, name: str, page: np.ndarray, most: int, path: object) -> np.ndarray:
    """[shown] positions from 0, by a bias feature."""
    at = _numbers(log, name, "a bias feature with the position of each document", path)
    rising = (np.diff(at, prepend=-1) > 0) | (np.diff(page, prepend=-1) > 0)
    expected = f"rising positions from 1 to {most}, the 'positions' of the experiment"
    _check((at >= 1) & (at <= most) & rising, log, name, page, path, expected)
    return at.astype(np.int64) - 1


def _numbers(log: Log, name: str, expected: str, path: object) -> np.ndarray:
    """[shown] float32: a bias feature of all documents."""
    if name not in {*log.blocks[0].of_documents, *log.page_columns}:
        raise InputError("the column is missing", path=path, field=name, expected=expected)
    ids, numbers = log.ids[name], np.concatenate([each.column(name) for each in log.blocks])
    values = ids.take(np.arange(ids.size)).to_pandas()
    if pa.types.is_temporal(ids.type):  # Pandas would take days for numbers.
        values = values.astype(str)
    values = pd.to_numeric(values, errors="coerce").to_numpy(float)
    good = np.abs(values) < np.finfo(np.float32).max
    page = np.repeat(np.arange(len(log.flat("lengths"))), log.flat("lengths"))
    _check(good[numbers], log, name, page, path, "a number below 3e38")
    return values.astype(np.float32)[numbers]


def _check(good: np.ndarray, log: Log, name: str, page: np.ndarray, path: object, expected: str):
    if not good.all():
        at = int(np.argmin(good))
        numbers = np.concatenate([each.column(name) for each in log.blocks])
        value = log.ids[name].take(numbers[at : at + 1])[0].as_py()
        message = f"row {page[at] + 1}: {value!r:.40} was found"
        raise InputError(message, path=path, field=name, expected=expected)
