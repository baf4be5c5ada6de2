"""The cells of a real log, divided at random into training, validation and test.

In the models that are fitted to cells, clicks are independent given query, document and position.
For these models, dividing the impressions of each cell at random is the same as dividing the
sessions. Impressions are multinomial, and the clicks among them hypergeometric.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.rankings import mask
from twotowers.files.tables import read_table
from twotowers.logs.counted import Counts
from twotowers.logs.counts import Counts as CellCounts
from twotowers.logs.counts import lay_out
from twotowers.randomness import draw_clicks, stream

TYPES = {
    "query": None,
    "document": None,
    "position": pa.int32(),
    "impressions": pa.int64(),
    "clicks": pa.int64(),
}


def observed_splits(
    path: str | Path, shares: Mapping[str, float], *, positions: int, seed: int
) -> tuple[np.ndarray, dict[str, CellCounts]]:
    """Read a log's cells and divide them.

    Args:
        path: a parquet file with query, document, position (from 1), impressions and clicks. Cells
            that differ in bias features only are added up.
        shares: of each split, which add up to 1.
        positions: positions on a page.
        seed: divides the log.

    Returns:
        [queries, documents] bool, False behind the end of a list; and the counts of each split,
        [1, queries, ...]. Dense counts have `positions` positions.
    """
    table = read_table(path, TYPES)
    log = Counts.of_batches(table.to_batches())
    position = log.values("position").to_numpy()
    if not len(position):
        raise InputError("the log is empty", path=path)
    if position.min() < 1 or position.max() > positions:
        raise InputError(
            f"positions reach from {position.min()} to {position.max()}",
            path=path,
            field="position",
            expected=f"1 to {positions}, the 'positions' of the experiment",
        )
    query, document = _numbered(log)
    pairs = log.groups(["query", "document"])[1]
    lengths = np.bincount(query[pairs])
    length = max(int(lengths.max()), positions)
    cell = (query * length + document) * length + position - 1
    shown, clicked = log.impressions, log.clicks
    if len(log) < len(table):  # Bias features tell cells apart; here only positions do.
        order = np.argsort(cell)
        cell, shown, clicked = cell[order], shown[order], clicked[order]
    rng = stream("observed split", seed)
    counts = {}
    for split, part in divided(shown, clicked, shares, rng=rng).items():
        kept = part[0] > 0
        rows = cell[kept], part[0][kept], part[1][kept]
        # Lists may be longer than the page.
        counts[split] = lay_out([rows], len(lengths), length).cut(positions)
    return mask(lengths, length), counts


def divided(
    shown: np.ndarray, clicked: np.ndarray, shares: Mapping[str, float], *, rng: np.random.Generator
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Impressions and clicks of each cell in each part of a random division.

    Args:
        shown, clicked: [cells].
        shares: of each part, which add up to 1.
        rng: source of randomness.
    """
    sizes = rng.multinomial(shown, list(shares.values()))
    clicks, others = clicked.copy(), shown - clicked
    parts = {}
    for number, split in enumerate(shares):
        size = sizes[:, number]
        drawn = draw_clicks(rng, clicks, clicks + others, size)
        clicks, others = clicks - drawn, others - (size - drawn)
        parts[split] = size, drawn
    return parts


def _numbered(log: Counts) -> tuple[np.ndarray, np.ndarray]:
    """[rows] numbers of the queries, and [rows] of the documents within their query."""
    codes = [pd.factorize(log.columns[name])[0] for name in ("query", "document")]
    pairs, pair = np.unique(codes[0] << 32 | codes[1], return_inverse=True)
    query_of_pair = pairs >> 32
    first = np.searchsorted(query_of_pair, query_of_pair)
    return codes[0], (np.arange(len(pairs)) - first)[pair]
