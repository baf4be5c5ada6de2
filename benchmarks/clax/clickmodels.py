"""CLAX's ten click models with its own trainer, parameters and collate function, timed.

It runs in a Python environment of CLAX's own, and imports nothing of this project.
"""

from __future__ import annotations

import contextlib
import sys
import time

import numpy as np
import optax
import pyarrow.parquet as pq
import torch
from clax import Trainer
from clax.datasets.utils import SessionCollator
from clax.models import (
    CascadeModel,
    ClickChainModel,
    DependentClickModel,
    DocumentCTRModel,
    DynamicBayesianNetwork,
    GlobalCTRModel,
    PositionBasedModel,
    RankCTRModel,
    UserBrowsingModel,
)
from clax.parameters import DeepParameterConfig
from flax import nnx
from torch.utils.data import DataLoader, Dataset, Subset

PAIR = "query_doc_ids"
VALIDATION = 50_000
"""How many of the held-out pages CLAX's early stopping may see."""


class Pages(Dataset):
    """Pages of one length, with the numbers of their pairs, in the form of CLAX's data sets."""

    def __init__(self, path: str, features: np.ndarray | None = None):
        """Read the columns query_doc_ids and clicks of a parquet file.

        `features` [documents, width] are given to the model instead of numbers of pairs, by the
        column documents.
        """
        self.features = features
        table = pq.read_table(path)
        number = "query_doc_ids" if features is None else "documents"
        columns = (table[name].combine_chunks() for name in (number, "clicks"))
        self.pair, self.clicks = (
            column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
            for column in columns
        )
        self.positions = np.arange(1, self.clicks.shape[1] + 1)
        self.mask = np.ones(self.clicks.shape[1], bool)

    def __len__(self) -> int:
        return len(self.clicks)

    def __getitem__(self, index: int) -> dict:
        return {
            "n": len(self.mask),
            "positions": self.positions,
            "clicks": self.clicks[index],
            "mask": self.mask,
            PAIR: self.pair[index] if self.features is None else self.features[self.pair[index]],
        }


def collator(features: np.ndarray | None) -> SessionCollator:
    kind = np.int32 if features is None else np.float32
    columns = {PAIR: kind, "positions": np.int32, "clicks": np.int32, "mask": bool}
    return SessionCollator(query_features={"n": np.int32}, doc_features=columns)


class Clock:
    """Early stopping that also records the time of each epoch.

    The trainer copies this object, and calls it once per epoch.
    """

    def __init__(self, *, patience: int, min_delta: float):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad, self.has_improved = np.inf, 0, False
        self.seconds = []
        self.start = time.perf_counter()

    def __deepcopy__(self, memo):
        return self

    @property
    def should_stop(self) -> bool:
        return self.bad >= self.patience

    def update(self, loss) -> Clock:
        self.seconds.append(time.perf_counter() - self.start)
        self.has_improved = loss < self.best - self.min_delta
        self.best = min(self.best, float(loss)) if self.has_improved else self.best
        self.bad = 0 if self.has_improved else self.bad + 1
        return self


def of_features(name: str, width: int, length: int, layers: list[int]):
    """PBM or DBN with a deep network of features for each parameter of documents."""
    deep = DeepParameterConfig(PAIR, width, hidden_units=layers[0], layers=len(layers))
    if name == "pbm":
        return PositionBasedModel(positions=length, attraction=deep, rngs=nnx.Rngs(0))
    return DynamicBayesianNetwork(attraction=deep, satisfaction=deep, rngs=nnx.Rngs(0))


def built(name: str, pairs: int, length: int):
    """The model with CLAX's own choice of parameters: a table, and a baseline that learns."""
    pair, place = {"query_doc_pairs": pairs}, {"positions": length}
    kinds = {
        "gctr": (GlobalCTRModel, {}),
        "rctr": (RankCTRModel, place),
        "dctr": (DocumentCTRModel, pair),
        "pbm": (PositionBasedModel, pair | place),
        "cm": (CascadeModel, pair),
        "ubm": (UserBrowsingModel, pair | place),
        "dcm": (DependentClickModel, pair | place),
        "ccm": (ClickChainModel, pair),
        "dbn": (DynamicBayesianNetwork, pair),
        "sdbn": (DynamicBayesianNetwork, pair | {"fix_continuation": True}),
    }
    kind, arguments = kinds[name]
    return kind(**arguments, rngs=nnx.Rngs(0))


def fit_log(
    *,
    log: str,
    name: str,
    batch: int,
    learning_rate: float,
    epochs: int,
    layers: list[int] | None = None,
) -> dict:
    """Train until early stopping, or for so many epochs, and predict the held-out pages.

    With `layers`, parameters of documents are deep networks of the features in features.npy.
    """
    start = time.perf_counter()
    features = None if layers is None else np.load(f"{log}/features.npy")
    end = "-clax" if features is None else ""
    train = Pages(f"{log}/train{end}.parquet", features)
    reading = time.perf_counter() - start
    test = Pages(f"{log}/test{end}.parquet", features)
    validation = Subset(test, range(min(VALIDATION, len(test))))
    torch.manual_seed(0)
    if features is not None:
        model = of_features(name, features.shape[1], train.clicks.shape[1], layers)
    else:  # Ids count from 1, and CLAX's tables add a row for padding.
        pairs = max(int(data.pair.max()) for data in (train, test))
        model = built(name, pairs, train.clicks.shape[1])

    def loader(data, *, shuffle: bool = False) -> DataLoader:
        return DataLoader(data, batch_size=batch, shuffle=shuffle, collate_fn=collator(features))

    def some(data) -> Subset:
        """A whole batch and one of the last one's size, so that both programs are compiled."""
        return Subset(data, range(min(len(data), batch + len(data) % batch)))

    optimizer = optax.adamw(learning_rate, weight_decay=1e-4)
    # CLAX's patience of 0 is 1 here: an epoch without a gain ends training.
    stopping = {"patience": 1, "min_delta": 1e-5}
    trainer = Trainer(optimizer, epochs=1, early_stopping=Clock(**stopping))
    with contextlib.redirect_stdout(sys.stderr):
        start = time.perf_counter()
        trainer.train(nnx.clone(model), loader(some(train)), loader(some(validation)))
        compilation = time.perf_counter() - start
        trainer.epochs, trainer.early_stopping = epochs, Clock(**stopping)
        trainer.train(model, loader(train, shuffle=True), loader(validation))
        tested = trainer.test_clicks(model, loader(test)).iloc[-1]
    clock = trainer.early_stopping
    return {
        "compilation": compilation,
        "file": reading + clock.seconds[-1],
        "epochs": len(clock.seconds),
        "ended": bool(clock.bad >= clock.patience),
        "conditional": float(tested["test_cond_ppl"]),
        "perplexity": float(tested["test_ppl"]),
        "log_likelihood": float(tested["test_ll"]),
    }
