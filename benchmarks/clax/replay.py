"""CLAX's position-based model with its own trainer and collate function, timed.

It runs in CLAX's environment, called by `benchmarks.measure`, and imports nothing of this project.
"""

from __future__ import annotations

import contextlib
import sys
import time

import numpy as np
import optax
import torch
from clax import PositionBasedModel, Trainer
from clax.datasets.utils import SessionCollator
from clax.parameters import DeepParameterConfig, LinearParameterConfig
from flax import nnx
from torch.utils.data import DataLoader, Dataset, Subset

HIDDEN = 32


class Clicks(Dataset):
    """Pages of one length, one by one, in the form of CLAX's own data sets.

    A subclass adds what is known of the documents.
    """

    def __init__(self, clicks: np.ndarray):
        self.clicks = clicks
        self.positions = np.arange(1, clicks.shape[1] + 1)
        self.mask = np.ones(clicks.shape[1], bool)

    def __len__(self) -> int:
        return len(self.clicks)

    def __getitem__(self, index: int) -> dict:
        return {
            "n": len(self.mask),
            "positions": self.positions,
            "clicks": self.clicks[index],
            "mask": self.mask,
        }


def collator(**documents: type) -> SessionCollator:
    """CLAX's collate function for `Clicks`, with the types of what is known of the documents."""
    shared = {"positions": np.int32, "clicks": np.int32, "mask": bool}
    return SessionCollator(query_features={"n": np.int32}, doc_features=documents | shared)


class Sessions(Clicks):
    """Sessions with the features of their documents."""

    def __init__(self, file, split: str):
        self.features, self.query, self.documents, clicks = (
            file[f"{split}.{name}"] for name in ("features", "query", "documents", "clicks")
        )
        super().__init__(clicks)

    def __getitem__(self, index: int) -> dict:
        features = self.features[self.query[index], self.documents[index]]
        return super().__getitem__(index) | {"query_doc_features": features}


COLLATE = collator(query_doc_features=np.float32)


class Clock:
    """Early stopping that also records the time and loss of each epoch.

    The trainer copies this object, and calls it once per epoch.
    """

    def __init__(self, *, patience: int, min_delta: float):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad, self.has_improved = np.inf, 0, False
        self.seconds, self.nll = [], []
        self.start = time.perf_counter()

    def __deepcopy__(self, memo):
        return self

    @property
    def should_stop(self) -> bool:
        return self.bad >= self.patience

    def update(self, loss) -> Clock:
        self.seconds.append(time.perf_counter() - self.start)
        self.nll.append(float(loss))
        self.has_improved = loss < self.best - self.min_delta
        self.best = min(self.best, float(loss)) if self.has_improved else self.best
        self.bad = 0 if self.has_improved else self.bad + 1
        return self


def attraction(tower: str, width: int):
    """A CLAX tower with the layers of `two_towers`. It does not normalise features."""
    shared = {"use_feature": "query_doc_features", "features": width, "input_norm": None}
    if tower == "linear":
        return LinearParameterConfig(**shared)
    return DeepParameterConfig(**shared, hidden_units=HIDDEN, layers=2, norm=None)


def fit_log(*, tower: str, log: str, epochs: int, training: dict, seed: int) -> dict:
    """Fit the file of a log. Returns what `benchmarks.replay.replay` returns."""
    with np.load(log) as file:
        train, validation = (Sessions(file, split) for split in ("train", "validation"))
    torch.manual_seed(seed)
    model = PositionBasedModel(
        positions=train.clicks.shape[1],
        attraction=attraction(tower, train.features.shape[-1]),
        rngs=nnx.Rngs(seed),
    )
    size = training["batch"]
    # The trainer compiles for each batch size, and the last batch of an epoch is smaller.
    few = [Subset(data, range(size + len(data) % size)) for data in (train, validation)]
    compiled, timed = (
        [
            DataLoader(data, batch_size=size, shuffle=data is train, collate_fn=COLLATE)
            for data in pair
        ]
        for pair in (few, (train, validation))
    )
    optimizer = optax.adamw(training["learning_rate"], weight_decay=1e-4)
    stopping = {name: training[name] for name in ("patience", "min_delta")}
    # Compiled programs belong to the trainer, so the same trainer warms up and is timed.
    trainer = Trainer(optimizer, epochs=1, early_stopping=Clock(**stopping))
    # stdout is for the result, so the trainer's progress table goes to stderr.
    with contextlib.redirect_stdout(sys.stderr):
        start = time.perf_counter()
        trainer.train(nnx.clone(model), *compiled)
        compilation = time.perf_counter() - start
        trainer.epochs, trainer.early_stopping = epochs, Clock(**stopping)
        trainer.train(model, *timed)
    clock = trainer.early_stopping
    first = {"positions": train.positions[None]}
    return {
        "compilation": compilation,
        "seconds": clock.seconds,
        "nll": clock.nll,
        "bias": np.asarray(model.examination.log_prob(first)).ravel().tolist(),
    }
