"""Independent random streams, each named by its purpose."""

from __future__ import annotations

import hashlib

import numpy as np

MANY = 10**9
"""Impressions of a cell from which numpy has no hypergeometric law."""


def stream(purpose: str, *key: object) -> np.random.Generator:
    """The generator of a purpose and a key. Generators of different keys are independent.

    Args:
        purpose: what is drawn, such as 'relevance noise'.
        key: what tells such draws apart, such as seed, split and strength. Numbers count by
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

    Args:
        clicked, shown, size: [cells] integers, clicked <= shown and size <= shown.

    From `MANY` impressions the hypergeometric law is a binomial if it has few clicks or draws, else
    a normal law, rounded.
    """
    many = shown >= MANY
    found = rng.hypergeometric(*(np.where(many, 0, n) for n in (clicked, shown - clicked, size)))
    if many.any():
        shown, clicked, size = shown[many], clicked[many], size[many]
        few, share = np.minimum(clicked, size), np.maximum(clicked, size) / shown
        spread = np.sqrt(few * share * (1 - share) * (1 - few / shown))
        normal = np.rint(few * share + spread * rng.standard_normal(len(few)))
        normal = np.clip(normal, np.maximum(clicked + size - shown, 0), few)
        found[many] = np.where(few < 1e-3 * shown, rng.binomial(few, share), normal)
    return found
