"""Click probabilities of all ten models on random parameters, for other libraries to be compared.

    .venv/bin/python -m benchmarks.probabilities probabilities.npz
    CLAX_PYTHON benchmarks/clax/probabilities.py probabilities.npz

The second command runs in CLAX's environment (see README.md), and prints the largest difference.
"""

from __future__ import annotations

import argparse

import numpy as np

from twotowers.experiment.components import build_model
from twotowers.models.chances import Chance
from twotowers.models.names import MODELS
from twotowers.models.page import lay_out
from twotowers.models.protocol import ONCE, PER_DOCUMENT, PER_JUMP, PER_POSITION

PAGES, PAIRS, LENGTH = 500, 40, 8


def main(path: str) -> None:
    """Write parameters, pages, and ln P of each click, alone and given those above it."""
    rng = np.random.default_rng(0)
    shapes = {
        PER_DOCUMENT: (PAIRS,), PER_POSITION: (LENGTH,), PER_JUMP: (LENGTH, LENGTH), ONCE: (),
    }  # fmt: skip
    pair = rng.integers(PAIRS, size=(PAGES, LENGTH))
    where = np.arange(LENGTH) < rng.integers(1, LENGTH + 1, PAGES)[:, None]
    clicks = (rng.random(pair.shape) < 0.35) & where
    arrays = {"pair": pair, "where": where, "clicks": clicks}
    for name, kind in MODELS.items():
        model = build_model(kind)
        logits = {part: rng.normal(0, 2, shapes[by]) for part, by in model.parts.items()}
        chances = {
            part: Chance.from_logits(np.asarray(values))
            for part, values in lay_out(logits, model.parts, pair).items()
        }
        arrays |= {f"{name}/{part}": values for part, values in logits.items()}
        arrays[f"{name}/alone"] = model.marginal(chances).broadcast(pair.shape).log
        arrays[f"{name}/given"] = model.conditional(chances, clicks).log
    np.savez(path, **arrays)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="the .npz file to write")
    main(**vars(parser.parse_args()))
