"""Clicks that depend on a context type as well as on the position (Section 5.2, Appendix C.2).

A bias factor is a (context, position). It is numbered context * 10 + position, with positions
from 0, as in the authors' code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from twotowers.errors import InputError, check_range
from twotowers.randomness import stream

POSITIONS = 10
# Examination by position, and relevance by label 0 to 4: the authors' click_model.json.
EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
RELEVANCE = np.array([0.1, 0.16, 0.28, 0.52, 1.0])
# w of Appendix C.2, in the same file.
WEIGHTS = np.array(
    [
        -0.13390555877443555,
        0.1988461661157539,
        -0.026005814485797307,
        -0.14176620063529133,
        -0.38422296795127564,
        0.06025565950422718,
        -0.35635814410370004,
        0.5520136349350745,
        0.6957929543729735,
        -0.46464952897752965,
    ]
)
CONTEXT_SD = 0.35
# "We multiplied p by 10" (Appendix C.3): positions weigh more than contexts in a distance.
POSITION_WEIGHT = 10


@dataclass(frozen=True)
class Places:
    """The bias factors of ten places per list, numbered context * 10 + position.

    Attributes:
        shown: [rows] those of the documents, list by list.
        empty: [empty places] those behind the end of short lists.
    """

    shown: np.ndarray
    empty: np.ndarray

    def padded(self, feature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors and factors with the empty places as displays of one more vector.

        The authors' identifiability check is made on these: it reads ten places of every list,
        and those behind its end hold one vector of zeros. So short lists connect factors that
        share no document, and Table 4 counts these connections. Their fits leave them out.

        Args:
            feature: [rows] numbers of the documents' vectors.
        """
        empty = np.full(len(self.empty), feature.max(initial=-1) + 1)
        return np.concatenate([feature, empty]), np.concatenate([self.shown, self.empty])


def assign_contexts(lengths: np.ndarray, contexts: int, *, seed: int) -> Places:
    """Give each place of each list a context type, uniformly at random (Section 5.2).

    Args:
        lengths: [lists] numbers of documents displayed, ten at most.
        contexts: number of context types, 1 or more; with one, positions are the only bias.
        seed: of the draw; the same for any number of documents in the lists.

    Raises:
        InputError: a list is too long, or the number of contexts out of range.
    """
    check_range(contexts, field="contexts", low=1, high=2**31, whole=True)
    lengths = np.asarray(lengths)
    if lengths.max(initial=0) > POSITIONS:
        raise InputError(
            f"a list has {lengths.max()} documents",
            field="lengths",
            expected=f"{POSITIONS} documents at most",
        )
    drawn = stream("contexts", seed).integers(contexts, size=(len(lengths), POSITIONS))
    factor = drawn * POSITIONS + np.arange(POSITIONS)
    shown = np.arange(POSITIONS) < lengths[:, None]
    return Places(shown=factor[shown], empty=factor[~shown])


def vector_ids(features: np.ndarray) -> np.ndarray:
    """[rows] ids from 0, equal if and only if two [rows, width] float32 rows are equal.

    Rows are compared as bytes, with the two zeros of floating point made one.
    """
    features = np.ascontiguousarray(features, np.float32) + np.float32(0)
    rows = features.view(np.dtype((np.void, features.itemsize * features.shape[1])))[:, 0]
    return np.unique(rows, return_inverse=True)[1]


def context_vectors(contexts: int, *, seed: int) -> np.ndarray:
    """[contexts, 10] float64: X_t, elements normal with standard deviation 0.35 (Appendix C.2)."""
    return stream("context vectors", seed).normal(0, CONTEXT_SD, (contexts, len(WEIGHTS)))


def examination(vectors: np.ndarray) -> np.ndarray:
    """The chance that a document is observed under each bias factor (Appendix C.2).

    Args:
        vectors: [contexts, 10] X_t.

    Returns:
        [contexts * 10] in [0, 1]: o(p) ** max(w X_t + 1, 0), by number of the factor.
    """
    exponent = np.maximum(vectors @ WEIGHTS + 1, 0)
    return (EXAMINATION ** exponent[:, None]).ravel()


def bias_features(vectors: np.ndarray) -> np.ndarray:
    """[contexts * 10, 11]: X_t and ten times the 0-based position, by number of the factor.

    Node merging compares these (Appendix C.3).
    """
    contexts = len(vectors)
    position = np.tile(POSITION_WEIGHT * np.arange(POSITIONS), contexts)
    return np.column_stack([np.repeat(vectors, POSITIONS, axis=0), position])


def relevance(label: np.ndarray) -> np.ndarray:
    """[rows] labels 0 to 4 -> [rows] the chance that a user finds the document relevant.

    Raises:
        InputError: a label is not one of 0, 1, 2, 3, 4.
    """
    wrong = ~np.isin(label, np.arange(len(RELEVANCE)))
    if wrong.any():
        raise InputError(
            f"{label[wrong][0]:g} is no label", field="label", expected="0, 1, 2, 3 or 4"
        )
    return RELEVANCE[label.astype(int)]


def click_chance(label: np.ndarray, places: Places, vectors: np.ndarray) -> np.ndarray:
    """[rows] the chance of a click on each displayed document: relevance x examination.

    Args:
        label: [rows] labels 0 to 4.
        places: the bias factor of each display.
        vectors: [contexts, 10] X_t.
    """
    return relevance(label) * examination(vectors)[places.shown]
