"""The fully synthetic lists of Chen et al. (2024): K = 1 to 4 components (Appendix C.1).

Documents are their own feature vectors, and positions the only bias factors. The construction
is not described in the paper; it was inferred from the lists the authors published.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from papers.chen2024.contexts import POSITIONS
from twotowers.errors import InputError, check_range
from twotowers.randomness import stream

DOCUMENTS_PER_POSITION = 1000
QUERIES = 1150
EXCHANGED = 50

# Figure 5, positions from 0; an edge that is listed twice exchanges twice as many documents.
EDGES = {
    1: ((0, 1), (0, 2), (1, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (7, 9), (8, 9)),
    2: ((0, 1), (0, 2), (1, 2), (1, 3), (4, 5), (5, 6), (6, 7), (7, 8), (7, 9), (8, 9)),
    3: ((0, 1), (0, 2), (1, 2), (1, 3), (4, 5), (4, 6), (5, 6), (7, 8), (7, 9), (8, 9)),
    4: (
        *((0, 1), (0, 2), (1, 2), (1, 2), (3, 4), (3, 5), (4, 5)),
        *((6, 7), (6, 7), (8, 9), (8, 9)),
    ),
}

# Shares of labels 0 to 4 over all documents, and their change from one position to the next,
# both by linear regression on the authors' K = 2 lists.
LABEL_SHARES = np.array([0.386, 0.344, 0.220, 0.035, 0.015])
LABEL_DRIFT = np.array([0.0074, 0.0029, -0.0087, -0.0020, 0.0004])

# Probability of a click on an examined document, by label (Eq. C.1), with noise 0.1 and
# y_max = 5, which no label reaches.
RELEVANCE = 0.1 + 0.9 * (2.0 ** np.arange(5) - 1) / (2**5 - 1)


@dataclass(frozen=True)
class Lists:
    """Result pages of documents that have a label each.

    Attributes:
        documents: [queries, positions] int64, the document shown there.
        labels: [documents] int64 in [0, 4].
    """

    documents: np.ndarray
    labels: np.ndarray


def generate(components: int, *, seed: int) -> Lists:
    """Lists whose identifiability graph has the given number of components.

    A thousand documents belong to each position. Over every edge, fifty of each end are shown
    at the other end as well. Every position is filled up to 1,150 documents with repetitions
    and shuffled; the n-th document of every position makes the n-th query.

    Args:
        components: K in {1, 2, 3, 4}.
        seed: any integer.

    Raises:
        InputError: there are no such lists.
    """
    check_range(components, field="components", low=1, high=max(EDGES), whole=True)
    rng = stream("synthetic lists", components, seed)
    own = np.arange(POSITIONS * DOCUMENTS_PER_POSITION).reshape(POSITIONS, -1)
    shown = [[documents] for documents in own]
    for a, b in EDGES[components]:
        for source, target in ((a, b), (b, a)):
            shown[target].append(rng.choice(own[source], EXCHANGED, replace=False))
    columns = []
    for parts in shown:
        documents = np.concatenate(parts)
        repeated = rng.choice(documents, QUERIES - len(documents))
        columns.append(rng.permutation(np.concatenate([documents, repeated])))
    labels = [
        rng.choice(len(LABEL_SHARES), DOCUMENTS_PER_POSITION, p=shares) for shares in label_shares()
    ]
    return Lists(np.stack(columns, axis=1), np.concatenate(labels))


def label_shares() -> np.ndarray:
    """[positions, labels] probability of each label among a position's own documents."""
    from_the_middle = np.arange(POSITIONS) - (POSITIONS - 1) / 2
    return LABEL_SHARES + from_the_middle[:, None] * LABEL_DRIFT


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
    bad = np.argwhere(labels >= len(LABEL_SHARES))
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
    return Lists(documents, by_document)


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
