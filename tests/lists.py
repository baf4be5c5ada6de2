"""The fully synthetic lists of Chen et al. (2024), drawn, and the authors' own."""

from pathlib import Path

import numpy as np

from tests.items import experiment
from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability.linked_lists import Lists, linked_lists, rows_of


def given_lists(components: int, seed: int = 0) -> Lists:
    """The lists of a number of components, drawn by a seed."""
    lists = experiment("chen2024").logs[f"k{components}"].lists.model_dump()
    return linked_lists(positions=10, **lists | {"seed": seed})


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
