"""A log as the parquet that CLAX reads, and the table that leads from its numbers to the ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.tables import write_batches
from twotowers.logs.counted import GROUP, key_of
from twotowers.logs.log import Log

PAIR = ("query", "document")


def beside(path: str | Path) -> Path:
    """The path of a file's table of numbers: `cells.numbers.parquet` for `cells.parquet`."""
    return Path(path).with_suffix(".numbers.parquet")


class Numbers:
    """Queries from 0, documents from 0 within their query, and pairs of both from 1.

    Numbers follow the order of the ids, so equal logs get equal numbers.
    """

    def __init__(self, log: Log) -> None:
        pairs = log.count(PAIR)
        self.ids, self.keys = pairs.ids, key_of(pairs.columns, pairs.ids)
        self.query, first = pairs.groups(["query"])
        self.document = np.arange(len(pairs)) - first[self.query]
        self._values = {name: pairs.values(name) for name in PAIR}

    def pair(self, query: np.ndarray, document: np.ndarray) -> np.ndarray:
        """[rows] numbers of pairs from 0, from the log's numbers of query and document."""
        both = {"query": query, "document": document}
        return np.searchsorted(self.keys, key_of(both, self.ids))

    def write(self, path: str | Path) -> None:
        """Write query_number, document_number, pair_number, query and document."""
        table = pa.table(
            {
                "query_number": self.query,
                "document_number": self.document,
                "pair_number": np.arange(1, len(self.query) + 1),
                **self._values,
            }
        )
        write_batches(path, [table], group=GROUP)


def write_clax(log: Log, path: str | Path) -> int:
    """Write a log as the parquet that CLAX reads, a row per page.

    Args:
        log: with pages.
        path: the parquet file to write: query_id (int32, from 1), query_doc_ids (list of int32,
            a number per query and document, from 1, since CLAX pads with 0), clicks (list of
            uint8). `beside(path)` is written, too: query_number (query_id - 1),
            document_number, pair_number (as in query_doc_ids), query, document.

    Returns:
        The number of pages.
    """
    numbers = Numbers(log)
    if len(numbers.query) >= 2**31:
        pairs = f"{len(numbers.query):,} pairs of query and document"
        raise InputError(pairs, field="documents", expected="below 2^31")
    numbers.write(beside(path))

    def batches() -> Iterator[pa.RecordBatch]:
        for block in log.blocks:
            pair = numbers.pair(block.column("query"), block.column("document"))
            ends = np.append(0, np.cumsum(block.lengths))
            offsets = pa.array(ends, pa.int32())
            lists = pa.array(pair + 1, pa.int32()), pa.array(block.click, pa.uint8())
            columns = [pa.ListArray.from_arrays(offsets, each) for each in lists]
            query = pa.array(numbers.query[pair[ends[:-1]]] + 1, pa.int32())
            names = ["query_id", "query_doc_ids", "clicks"]
            yield pa.RecordBatch.from_arrays([query, *columns], names=names)

    return write_batches(path, batches(), group=GROUP)
