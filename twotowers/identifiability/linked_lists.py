"""Result lists whose identifiability graph is given: which positions share documents.

The construction is that of the lists that Chen et al. (2024) published (Appendix C.1). They do not
describe it; it was inferred from the lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.pair_counts import factor_components
from twotowers.randomness import stream


@dataclass(frozen=True)
class Lists:
    """Result lists of documents that have a label each, the same on every list.

    Attributes:
        documents: [queries, positions] int64, the document shown there.
        labels: [documents] int64 from 0.
        components: of their identifiability graph.
    """

    documents: np.ndarray
    labels: np.ndarray
    components: int

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """[queries x positions] document and 0-based position of every place, list by list."""
        return rows_of(self.documents)


def linked_lists(
    *,
    positions: int,
    components: int,
    links: Sequence[Sequence[int]],
    documents: int,
    queries: int,
    exchanged: int,
    shares: Sequence[float],
    drift: Sequence[float],
    seed: int,
) -> Lists:
    """Lists whose positions share documents as the links say.

    As many documents belong to each position. Over every link, a pair of positions from 1, some of
    each end are shown at the other end as well; a pair that is listed twice exchanges twice as
    many. Every position is filled up with repetitions and shuffled. The n-th documents of all
    positions make the n-th list. P(label y) at position k is shares_y + (k - (positions + 1) / 2)
    drift_y, where shares add up to 1 and drifts to 0. The number of components names the lists, and
    is checked.
    """
    ends = np.asarray(links, int).reshape(-1, 2) - 1
    if ends.size and not (ends.min() >= 0 and ends.max() < positions):
        raise InputError("is no position", field="links", expected=f"1 to {positions}")
    middle = np.arange(positions) - (positions - 1) / 2
    chances = np.asarray(shares) + middle[:, None] * np.asarray(drift)
    if chances.min() < 0 or not np.allclose(chances.sum(1), 1):
        raise InputError(
            "is no probability", field="shares", expected="at all positions a sum of 1"
        )
    rng = stream("synthetic lists", components, seed)
    own = np.arange(positions * documents).reshape(positions, -1)
    shown = [[each] for each in own]
    for a, b in ends:
        for source, target in ((a, b), (b, a)):
            shown[target].append(rng.choice(own[source], exchanged, replace=False))
    columns = []
    for position, parts in enumerate(shown, start=1):
        column = np.concatenate(parts)
        if len(column) > queries:
            raise InputError(
                f"{len(column)} documents at position {position} do not fit into {queries} lists",
                field="queries",
                expected=f"at least {len(column)}",
            )
        repeated = rng.choice(column, queries - len(column))
        columns.append(rng.permutation(np.concatenate([column, repeated])))
    labels = [rng.choice(len(each), documents, p=each) for each in chances]
    lists = Lists(np.stack(columns, axis=1), np.concatenate(labels), components)
    number = int(factor_components(*lists.rows, factors=positions).max()) + 1
    if number != components:
        raise InputError(
            f"the links make {number} components", field="links", expected=f"{components}"
        )
    return lists


def rows_of(documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Document and 0-based position of every place of [queries, positions] documents."""
    return documents.ravel(), np.tile(np.arange(documents.shape[1]), len(documents))
