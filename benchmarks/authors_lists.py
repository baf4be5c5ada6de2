"""Read the lists that Chen et al. (2024) published. The project may not distribute them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from twotowers.identifiability.graph import factor_components
from twotowers.identifiability.linked_lists import Lists, rows_of


def read_lists(folder: str | Path) -> Lists:
    """Read the lists of a folder that holds `train.init_list` and `train.labels`.

    Both have a line per query: its number, then its documents, or their labels, by position.
    """
    pages, labels = (
        np.loadtxt(Path(folder) / f"train.{name}", int, ndmin=2) for name in ("init_list", "labels")
    )
    documents, by_document = pages[:, 1:], np.full(pages[:, 1:].max() + 1, -1)
    by_document[documents] = labels[:, 1:]
    # Every document has one label, wherever it is shown.
    assert (pages[:, 0] == labels[:, 0]).all()
    assert (by_document[documents] == labels[:, 1:]).all()
    components = factor_components(*rows_of(documents), factors=documents.shape[1]).max() + 1
    return Lists(documents, by_document, int(components))
