"""Random numbers as a function of what they belong to, so that they can be drawn in any order.

A document of a query has the same numbers whenever the query is asked, and nothing need be kept.
The hash is the finaliser of SplitMix64 (Steele, Lea and Flood 2014), once per part of the key.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from twotowers.randomness import stream

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def key_of(purpose: str, *key: object) -> np.uint64:
    """The key of a purpose, as of `twotowers.randomness.stream`."""
    return stream(purpose, *key).integers(2**64, dtype=np.uint64)


def hashed(key: np.uint64, *index: np.ndarray) -> np.ndarray:
    """uint64 of the broadcast shape of the whole numbers `index`, spread evenly.

    Example:
        >>> first, again = (hashed(np.uint64(1), np.arange(3), np.int64(7)) for _ in range(2))
        >>> first.tolist() == again.tolist(), len(set(first.tolist()))
        (True, 3)
    """
    mixed = key
    with np.errstate(over="ignore"):
        for each in index:
            mixed = _mix(mixed + GOLDEN * (np.asarray(each).astype(np.uint64) + np.uint64(1)))
    return mixed


def uniforms(key: np.uint64, *index: np.ndarray) -> np.ndarray:
    """float64 in (0, 1), a number for each index."""
    return ((hashed(key, *index) >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52


def normals(key: np.uint64, *index: np.ndarray) -> np.ndarray:
    """float32 from the standard normal distribution, a number for each index."""
    return ndtri(uniforms(key, *index)).astype(np.float32)


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
