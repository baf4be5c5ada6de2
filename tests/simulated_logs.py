"""Logs that tests simulate the plain way, session by session, and their rows and cells."""

import numpy as np
import pandas as pd

from twotowers.logs.counts import Cells, Counts
from twotowers.logs.simulation import Sessions


def rows_of(query, documents, clicks, **further) -> pd.DataFrame:
    """A row per document shown, of [pages] queries, and [pages, length] documents and clicks.

    Further columns have a value per page.
    """
    pages, length = documents.shape
    columns = {
        "session": np.repeat(np.arange(pages), length),
        "query": np.repeat(query, length),
        "document": documents.ravel(),
        "position": np.tile(np.arange(1, length + 1), pages),
        "clicks": clicks.ravel().astype(int),
    }
    more = {name: np.repeat(values, length) for name, values in further.items()}
    return pd.DataFrame(columns | more)


def linear_log(
    rng: np.random.Generator, pages: int, queries: int, shown: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A log of random rankings, whose clicks follow the first of two features; and the features."""
    query = rng.integers(queries, size=pages)
    document = query[:, None] * shown + np.argsort(rng.random((pages, shown)), axis=1)
    features = rng.normal(size=(queries * shown, 2))
    click = rng.random(document.shape) < 1 / (1 + np.exp(-features[document, 0]))
    table = pd.DataFrame(features, columns=["one", "two"]).assign(document=np.arange(len(features)))
    return rows_of(query, document, click), table


def tabled(cells: Cells, shape: tuple[int, ...]) -> np.ndarray:
    """[queries, documents, positions] impressions of cells."""
    shown = np.zeros(shape, np.int64)
    shown[cells.query, cells.document, cells.position] = cells.impressions
    return shown


def simulate_sessions(
    order: np.ndarray,
    probability: np.ndarray,
    lengths: np.ndarray,
    *,
    sessions: int,
    temperature: float,
    rng: np.random.Generator,
) -> Sessions:
    """The plain simulation, session by session (Hager et al. 2025, Section 7), from the policy's
    order of [queries, positions] and P(click) of [queries, documents, positions]."""
    queries, length = order.shape
    query = np.sort(rng.integers(queries, size=sessions))
    where = np.arange(length) < np.asarray(lengths)[query, None]
    documents = order[query].copy()
    for row in np.flatnonzero(rng.random(sessions) < temperature):
        size = lengths[query[row]]
        documents[row, :size] = rng.permutation(size)
    chance = probability[query[:, None], documents, np.arange(length)]
    return Sessions(query, documents, (rng.random(chance.shape) < chance) & where, where)


def cells_of(log: Sessions, queries: int) -> Counts:
    """The same log as impressions and clicks per cell."""
    length = log.documents.shape[1]
    cell = (log.query[:, None] * length + log.documents) * length + np.arange(length)

    def count(selected):
        total = np.bincount(cell[selected], minlength=queries * length * length)
        return total.reshape(queries, length, length)

    return Counts(count(log.where), count(log.where & log.clicks))
