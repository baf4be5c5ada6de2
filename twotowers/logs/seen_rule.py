"""A rule for what users saw of a page: down to the lowest click, and some documents further.

A log often lists what a page held, and not how far its user scrolled. The rule takes a click for
proof that the documents above it were seen, and leaves out those from `further` documents below
the lowest click on. Of a page without clicks it keeps the first `further` documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.logs.sessions import EQUAL, Stream, bias_features

RULE = re.compile(r"clicked\+([0-9]{1,4})", re.ASCII)


def further_of(rule: object) -> int:
    """'clicked+2' -> 2."""
    found = RULE.fullmatch(rule) if isinstance(rule, str) else None
    if found is None:
        raise InputError(f"{rule!r}", field="seen", expected="clicked+0, clicked+1, ...")
    return int(found[1])


def only_seen(log: Stream, further: int) -> Stream:
    """The pages of a log, without the documents that were not seen.

    Args:
        log: pages.
        further: documents that are seen below the lowest click.

    Returns:
        The same pages; those of which nothing was seen are left out. It also counts them
        (`pages_not_seen`), and the documents that are left out of all pages (`documents_not_seen`).

    Examples:
        >>> page = pa.record_batch(
        ...     {"split": ["a"], "query": [7], "documents": [[3, 1, 2]], "clicks": [[1, 0, 0]]}
        ... )
        >>> cut = only_seen(Stream([page]), 1)
        >>> [batch["documents"].to_pylist() for batch in cut.batches], cut.seen
        ([[[3, 1]]], {'documents_not_seen': 1, 'pages_not_seen': 0})
    """
    return Stream(_cut(log, further), log.seen)


def _cut(log: Stream, further: int) -> Iterator[pa.RecordBatch]:
    found = dict.fromkeys(("documents_not_seen", "pages_not_seen"), 0)
    for batch in log.batches:
        lengths = batch["documents"].value_lengths().to_numpy()
        starts = np.cumsum(lengths) - lengths
        clicked = np.flatnonzero(batch["clicks"].flatten().to_numpy(zero_copy_only=False))
        page = np.searchsorted(starts, clicked, side="right") - 1
        lowest = np.zeros(len(batch), np.int64)
        np.maximum.at(lowest, page, clicked - starts[page] + 1)
        kept = np.minimum(lowest + further, lengths)
        place = np.arange(lengths.sum()) - np.repeat(starts, lengths)
        seen = pa.array(place < np.repeat(kept, lengths))
        offsets = pa.array(np.append(0, np.cumsum(kept)), pa.int32())
        for name in ("documents", "clicks", *bias_features(batch.schema)):
            lists = pa.ListArray.from_arrays(offsets, batch[name].flatten().filter(seen))
            batch = batch.set_column(batch.schema.get_field_index(name), name, lists)
        times = batch[EQUAL].to_numpy() if EQUAL in batch.schema.names else 1
        found["documents_not_seen"] += int(((lengths - kept) * times).sum())
        found["pages_not_seen"] += int(((kept == 0) * times).sum())
        log.seen.update(found)
        yield batch.filter(pa.array(kept > 0))
