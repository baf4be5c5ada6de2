"""Independent random streams, named by what they are for."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(purpose: str, *key: object) -> np.random.Generator:
    """The generator of one purpose: the same for the same key, independent for any other.

    Args:
        purpose: what is drawn, for example 'relevance noise'.
        key: seed, split, strength ...: whatever tells one such draw from another. Numbers
            count by value: 1 and 1.0 are the same key.
    """
    parts = [purpose, *(float(part) if isinstance(part, int | float) else part for part in key)]
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))
