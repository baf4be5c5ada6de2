"""Reads the lists that Chen et al. (2024) published. The project may not distribute them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from twotowers.errors import InputError
from twotowers.identifiability.graph import factor_components
from twotowers.identifiability.linked_lists import Lists, rows_of

LABELS = 5


def read_lists(folder: str | Path) -> Lists:
    """The authors' lists: a folder with `train.init_list` and `train.labels`.

    Both have a line per query: its number, then its documents, or their labels, by position.

    Raises:
        InputError: a file is missing, a line is no such line, or the two files disagree.
    """
    folder = Path(folder)
    pages, labels = (_read_table(folder / f"train.{name}") for name in ("init_list", "labels"))
    path = folder / "train.labels"
    if pages.shape != labels.shape:
        raise InputError(
            f"has {labels.shape[0]} lines of {labels.shape[1] - 1} labels",
            path=path,
            expected=f"{pages.shape[0]} of {pages.shape[1] - 1}, as in train.init_list",
        )
    differ = np.flatnonzero(pages[:, 0] != labels[:, 0])
    if differ.size:
        row = differ[0]
        raise InputError(
            f"the query is {labels[row, 0]}",
            path=path,
            line=int(row) + 1,
            expected=f"{pages[row, 0]}, as in train.init_list",
        )
    documents, labels = pages[:, 1:], labels[:, 1:]
    bad = np.argwhere(labels >= LABELS)
    if bad.size:
        row, column = bad[0]
        raise InputError(
            f"the label is {labels[row, column]}", path=path, line=int(row) + 1, expected="0 to 4"
        )
    by_document = np.full(documents.max() + 1, -1)
    by_document[documents] = labels
    conflict = np.argwhere(by_document[documents] != labels)
    if conflict.size:
        row, column = conflict[0]
        document = documents[row, column]
        raise InputError(
            f"document {document} has label {labels[row, column]}",
            path=path,
            line=int(row) + 1,
            expected=f"{by_document[document]}, as elsewhere",
        )
    unseen = np.flatnonzero(by_document < 0)
    if unseen.size:
        raise InputError(
            f"document {unseen[0]} is in no list",
            path=folder / "train.init_list",
            expected="documents numbered from 0 without a gap",
        )
    component = factor_components(*rows_of(documents), factors=documents.shape[1])
    return Lists(documents, by_document, int(component.max()) + 1)


def _read_table(path: Path) -> np.ndarray:
    """[lines, numbers] of a text file whose lines have as many whole numbers >= 0 each."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        raise InputError("the file is missing", path=path) from None
    rows = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not all(word.isdecimal() for word in words):
            word = next(word for word in words if not word.isdecimal())
            raise InputError(f"found {word!r}", path=path, line=number, expected="whole numbers")
        if len(words) < 2 or (rows and len(words) != len(rows[0])):
            raise InputError(
                f"has {len(words)} numbers",
                path=path,
                line=number,
                expected=f"{len(rows[0])}, as the first line" if rows else "a query and documents",
            )
        rows.append([int(word) for word in words])
    if not rows:
        raise InputError("the file is empty", path=path)
    return np.array(rows)
