"""Independent random streams, each named by its purpose; and numbers that belong to an index.

A number that is a hash of what it belongs to can be drawn in any order: a document of a query has
the same numbers whenever the query is asked, and nothing need be kept. The hash is the finaliser of
SplitMix64 (Steele, Lea and Flood 2014), once per part of the key.
"""

import hashlib

import numpy as np
from scipy.special import ndtri

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MANY = 10**9
"""Impressions of a cell from which numpy has no hypergeometric law."""


def stream(purpose: str, *key: object) -> np.random.Generator:
    """The generator of a purpose and a key. Generators of different keys are independent.

    The key, such as seed, split and strength, tells draws of a purpose apart. Numbers count by
    value: 1 and 1.0 are the same key.
    """
    parts = [purpose, *(float(part) if isinstance(part, int | float) else part for part in key)]
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def some(sizes: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """[groups] bool: groups at random, while their sizes add up to `most` or less; at least one.

    Example:
        >>> some(np.array([5, 5]), 9, stream("example")).sum()
        np.int64(1)
    """
    order = rng.permutation(len(sizes))
    chosen = np.zeros(len(sizes), bool)
    chosen[order[np.cumsum(sizes[order]) <= most]] = True
    if not chosen.any():
        chosen[order[:1]] = True
    return chosen


def draw_clicks(
    rng: np.random.Generator, clicked: np.ndarray, shown: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """[cells] clicks on `size` of the impressions of each cell, drawn without replacement.

    From `MANY` impressions the hypergeometric law is a binomial if it has few clicks or draws, else
    a normal law, rounded.
    """
    many = shown >= MANY
    drawn = rng.hypergeometric(*(np.where(many, 0, n) for n in (clicked, shown - clicked, size)))
    if many.any():
        shown, clicked, size = shown[many], clicked[many], size[many]
        few, share = np.minimum(clicked, size), np.maximum(clicked, size) / shown
        spread = np.sqrt(few * share * (1 - share) * (1 - few / shown))
        normal = np.rint(few * share + spread * rng.standard_normal(len(few)))
        normal = np.clip(normal, np.maximum(clicked + size - shown, 0), few)
        drawn[many] = np.where(few < 1e-3 * shown, rng.binomial(few, share), normal)
    return drawn


def key_of(purpose: str, *key: object) -> np.uint64:
    """The key of a purpose, as of `stream`."""
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
