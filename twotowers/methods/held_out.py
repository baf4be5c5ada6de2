"""Held-out losses of fitted towers: -ln P of each cell's clicks, and of each position of pages."""

from __future__ import annotations

import numpy as np
from flax import nnx

from twotowers.methods.task import Split
from twotowers.towers.page_towers import PageTowers
from twotowers.towers.parts import value_of
from twotowers.towers.two_towers import TwoTowers

CHUNK = 256
"""Queries evaluated at a time, which bounds memory."""
PAGES = 20_000
"""Pages evaluated at a time, which bounds memory."""


def cell_losses(model, split: Split, log: int) -> np.ndarray:
    """Negative log-likelihood of each cell of one log, in the shape of its counts."""
    counts = split.counts.of_log(log)
    columns = [counts.impressions, counts.clicks]
    if counts.listed:
        columns = [counts.document, counts.position, *columns]
    losses = _row_losses if counts.listed else _dense_losses
    parts = [
        losses(model, *(column[start : start + CHUNK] for column in (split.inputs, *columns)))
        for start in range(0, len(split.where), CHUNK)
    ]
    return np.concatenate(parts)


def dropped_losses(model: TwoTowers, split: Split, log: int) -> np.ndarray:
    """Negative log-likelihood of each cell, in expectation over the dropout of examination.

    With rate t a logit theta is 0 with probability t, else theta / (1 - t). So the expectation has
    two terms, and is exact.
    """
    rate = float(value_of(model.dropout))
    kept, none = (cell_losses(model.scaled(factor), split, log) for factor in (1 / (1 - rate), 0.0))
    return (1 - rate) * kept + rate * none


def page_losses(
    model: TwoTowers | PageTowers, split: Split, log: int
) -> tuple[np.ndarray, np.ndarray]:
    """-ln P(click or none, as observed) at each position of a log's pages, in two versions.

    P of the first version knows no other click of the page. P of the second is conditional on the
    clicks above. Both are the same for a model of cells, and [sessions, K].
    """
    pages, parts = split.sessions[log], []
    for start in range(0, len(pages.query), PAGES):
        rows = slice(start, start + PAGES)
        documents = pages.documents[rows].astype(np.int32)
        where, clicks = pages.where[rows], pages.clicks[rows] & pages.where[rows]
        columns = split.inputs[pages.query[rows]], documents
        if isinstance(model, PageTowers):
            parts.append(_both_losses(model, *columns, where, clicks))
        else:
            position = np.broadcast_to(np.arange(documents.shape[1]), documents.shape)
            losses = _row_losses(model, *columns, position, where, clicks)
            parts.append((losses, losses))
    return tuple(np.concatenate(part).astype(float) for part in zip(*parts, strict=True))


@nnx.jit
def _both_losses(model, *columns):
    return model.page_losses(*columns)


@nnx.jit
def _dense_losses(model, *columns):
    return model.cell_losses(*columns)


@nnx.jit
def _row_losses(model, *columns):
    return model.row_losses(*columns)
