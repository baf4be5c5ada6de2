"""Scores from a file, so that a ranker from elsewhere is measured like the other methods."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from twotowers import ROOT
from twotowers.errors import InputError
from twotowers.files.tables import read_table
from twotowers.logs.cells import pair_keys
from twotowers.methods.task import Fitted, Task

TYPES = {"query": pa.int64(), "document": pa.int32(), "score": pa.float64()}


def fit(task: Task, *, file: str) -> list[Fitted]:
    """Give every lane the scores of the file. Nothing is fitted.

    Args:
        task: its log must be simulated, because only then the test split has the ids of its pairs.
        file: a parquet file with a row per query-document pair of the test split. Its columns are
            query (int64), document (int32, the document's 0-based number within its query in the
            source file) and score (double). A relative path starts at the project's folder.

    Raises:
        InputError: the log is not simulated, or the file cannot be read, lists a pair twice, or
            lacks a pair.
    """
    path = ROOT / file
    table = read_table(path, TYPES)
    pairs = task.splits["test"].pairs
    if pairs is None:
        raise InputError(
            "a real log has no pairs that a file of scores could name",
            field="method",
            expected="a simulated log",
        )
    keys = pair_keys(table["query"].to_numpy(), table["document"].to_numpy())
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(twice):
        row = order[twice[0] + 1]
        raise InputError(f"row {row + 1} repeats the query and document of another", path=path)
    wanted = pair_keys(pairs.query, pairs.document)
    found = order[np.minimum(np.searchsorted(keys[order], wanted), max(len(order) - 1, 0))]
    missing = np.flatnonzero(keys[found] != wanted) if len(order) else np.arange(len(wanted))
    if len(missing):
        query, document = pairs.query[missing[0]], pairs.document[missing[0]]
        raise InputError(
            f"has no score of query {query}, document {document}",
            path=path,
            expected=f"a row for each of the {len(wanted)} pairs of the test split",
        )
    scores = np.zeros(task.splits["test"].where.shape)
    scores[task.splits["test"].where] = table["score"].to_numpy()[found]
    return [Fitted(scores=lambda inputs: scores) for _ in task.lanes]
