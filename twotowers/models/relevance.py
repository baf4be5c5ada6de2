"""The relevance of documents for the simulated user (Hager et al. 2025, Section 7).

Relevance is the annotated label, or a synthetic function of the features plus noise (Eqs. 23 and
24), scaled to the range of the labels, [0, 4].
"""

from collections.abc import Sequence

import numpy as np

from twotowers.errors import check_choice
from twotowers.randomness import stream

HIGHEST = 4.0
NOISE = 0.2
HIDDEN = 16


def relevance(
    name: str, labels: np.ndarray, features: np.ndarray, *, seed: int, split: str, padding: int = 0
) -> np.ndarray:
    """Relevance of each document in [0, 4]: 'annotated', 'linear' (Eq. 23) or 'deep' (Eq. 24).

    All splits of a seed share the weights of a synthetic function. Each split draws its own noise.
    Scaling uses the percentiles of the split itself, as the published code does, with so many
    documents of zero features as `padding`: the code pads short lists with such documents before it
    scales.

    Example:
        >>> labels, features = np.array([0, 4]), np.zeros((2, 3))
        >>> relevance("annotated", labels, features, seed=1, split="train")
        array([0., 4.], dtype=float32)
    """
    check_choice(name, ["annotated", *SYNTHETIC], field="relevance")
    if name == "annotated":
        return labels.astype(np.float32)
    scores = noisy_scores(name, features, "relevance noise", seed, split)
    return rescale(scores, empty_scores(name, features.shape[1], padding, seed, split))


def noisy_scores(
    name: str, features: np.ndarray, purpose: str, seed: int, split: str
) -> np.ndarray:
    """Draw synthetic relevance [rows] of `features` [rows, width], before it is scaled to [0, 4].

    `name` is "linear" (Eq. 23) or "deep" (Eq. 24), a function whose weights follow from `seed`. The
    noise is normal, with standard deviation `NOISE`, from the stream of `purpose`, seed and split.
    """
    noise = stream(purpose, seed, split).normal(0, NOISE, len(features))
    return SYNTHETIC[name](features, np.random.default_rng(seed)) + noise


def empty_scores(name: str, width: int, padding: int, seed: int, split: str) -> np.ndarray:
    """[padding] scores of documents with zero features.

    Their noise is a stream of its own, so their number does not change the noise of documents.
    """
    empty = np.broadcast_to(np.zeros(width), (padding, width))
    return noisy_scores(name, empty, "relevance noise of padding", seed, split)


def padding_of(lengths: np.ndarray, places: int | None) -> int:
    """Number of empty places in all lists if each is padded to `places`; 0 if `places` is None."""
    return 0 if places is None else int(np.maximum(places - lengths, 0).sum())


def linear(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """w x with standard normal w (Eq. 23 without noise): [rows, width] -> [rows]."""
    return features @ rng.standard_normal(features.shape[1])


def deep(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """w2 tanh(W1 x + b1) + b2, 16 hidden units, all standard normal (Eq. 24 without noise)."""
    first = rng.standard_normal((features.shape[1], HIDDEN))
    first_bias = rng.standard_normal(HIDDEN)
    second = rng.standard_normal(HIDDEN)
    return np.tanh(features @ first + first_bias) @ second + rng.standard_normal()


SYNTHETIC = {"linear": linear, "deep": deep}


def rescale(scores: np.ndarray, empty: Sequence[float] | np.ndarray = ()) -> np.ndarray:
    """Clip to the 5th and 95th percentile, then map these to 0 and 4, as float32.

    `empty` are further scores that only the percentiles include.
    """
    low, high = np.percentile(np.concatenate([scores, empty]), [5, 95])
    return (HIGHEST * (np.clip(scores, low, high) - low) / (high - low)).astype(np.float32)
