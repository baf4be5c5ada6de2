"""Context types of places on result pages: bias factors beside the position.

A place gets one of some context types at random. A bias factor is a (context, position). It is
numbered context * positions + position, with positions from 0 (Chen et al. 2024, Section 5.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twotowers.randomness import stream


@dataclass(frozen=True)
class Places:
    """The bias factors of the places of lists, numbered context * positions + position.

    Attributes:
        shown: [rows] those of the documents, list by list.
        empty: [empty places] those behind the end of short lists.
    """

    shown: np.ndarray
    empty: np.ndarray

    def padded(self, feature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors and factors with the empty places as displays of one more vector.

        So short lists connect factors that share no document. The code that Chen et al. (2024)
        published checks identifiability on these: it reads ten places of every list, and those
        behind its end hold one vector of zeros. Its fits leave them out.

        Args:
            feature: [rows] numbers of the documents' vectors.
        """
        empty = np.full(len(self.empty), feature.max(initial=-1) + 1)
        return np.concatenate([feature, empty]), np.concatenate([self.shown, self.empty])


def assign_contexts(lengths: np.ndarray, contexts: int, *, positions: int, seed: int) -> Places:
    """Give each place of each list a context type, uniformly at random.

    Args:
        lengths: [lists] numbers of documents displayed, `positions` at most.
        contexts: number of context types, 1 or more; with one, positions are the only bias.
        positions: of a page.
        seed: of the draw; the same for any number of documents in the lists.

    Example:
        >>> places = assign_contexts(np.array([2, 1]), 1, positions=2, seed=0)
        >>> places.shown.tolist(), places.empty.tolist()
        ([0, 1, 0], [1])
    """
    lengths = np.asarray(lengths)
    drawn = stream("contexts", seed).integers(contexts, size=(len(lengths), positions))
    factor = drawn * positions + np.arange(positions)
    shown = np.arange(positions) < lengths[:, None]
    return Places(shown=factor[shown], empty=factor[~shown])


def context_vectors(contexts: int, *, width: int, deviation: float, seed: int) -> np.ndarray:
    """[contexts, width] float64: a vector X_t of each context type, normal with mean 0
    (Chen et al. 2024, Appendix C.2)."""
    return stream("context vectors", seed).normal(0, deviation, (contexts, width))


def bias_features(vectors: np.ndarray, *, positions: int, weight: float) -> np.ndarray:
    """[contexts * positions, width + 1]: X_t and the weighted 0-based position, by factor.

    Node merging compares these.

    Args:
        vectors: [contexts, width] X_t.
        positions: of a page.
        weight: by which positions are multiplied, so that they weigh more in a distance.
    """
    position = np.tile(weight * np.arange(positions), len(vectors))
    return np.column_stack([np.repeat(vectors, positions, axis=0), position])


def vector_ids(features: np.ndarray) -> np.ndarray:
    """[rows] ids from 0, equal if and only if two [rows, width] float32 rows are equal.

    Rows are compared as bytes, with the two zeros of floating point made one.
    """
    features = np.ascontiguousarray(features, np.float32) + np.float32(0)
    rows = features.view(np.dtype((np.void, features.itemsize * features.shape[1])))[:, 0]
    return np.unique(rows, return_inverse=True)[1]
