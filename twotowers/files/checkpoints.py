"""The state of a training in a file, so that a fit that was ended goes on where it was."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import numpy as np

from twotowers.errors import InputError
from twotowers.files.artefacts import atomic

SAMPLE = 1_000
"""Numbers of each array that are compared, to see whether a log is the same."""


@dataclass(frozen=True)
class Checkpoint:
    """Keeps the state of a training in a file; without one, nothing.

    It has each array of the state, in the order of JAX, and how far the training is; and a digest
    of settings, seed and data, since a state is of no use to another fit.
    """

    path: Path | None
    fit: str = ""

    @classmethod
    def of(cls, path: str | Path | None, *about: Any) -> Checkpoint:
        """The checkpoint of the fit of these settings, seed and data, whose arrays are sampled."""
        if path is None:
            return cls(None)
        digest = hashlib.sha256()
        for leaf in jax.tree.leaves(about):
            array = isinstance(leaf, np.ndarray | jax.Array)
            own = np.asarray(leaf.ravel()[:SAMPLE]).tobytes() if array else repr(leaf).encode()
            digest.update(repr(np.shape(leaf)).encode() + own)
        return cls(Path(path), digest.hexdigest())

    def save(self, progress: tuple[int, ...], state: Any) -> None:
        """Write how far the training is, and its state, all or nothing."""
        if self.path is None:
            return
        arrays = {f"{n}": np.asarray(each) for n, each in enumerate(jax.tree.leaves(state))}
        about = json.dumps({"fit": self.fit, "progress": progress})
        with atomic(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, about=about, **arrays)

    def load(self, progress: tuple[int, ...], state: Any) -> tuple[tuple[int, ...], Any]:
        """What was saved; the given start if nothing was."""
        if self.path is None or not self.path.exists():
            return progress, state
        expected = "that of a fit with the same log, model, training and seed; or remove it"
        leaves, structure = jax.tree.flatten(state)
        try:
            with np.load(self.path) as kept:
                about = json.loads(str(kept["about"]))
                arrays = [jax.numpy.asarray(kept[str(number)]) for number in range(len(leaves))]
        except (OSError, ValueError, KeyError, BadZipFile):
            raise InputError("it is no checkpoint", path=self.path, expected=expected) from None
        alike = all(one.shape == other.shape for one, other in zip(arrays, leaves, strict=True))
        if about["fit"] != self.fit or not alike:
            raise InputError("it is of another fit", path=self.path, expected=expected)
        return tuple(about["progress"]), jax.tree.unflatten(structure, arrays)

    def remove(self) -> None:
        """Remove the file: the training has ended."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
