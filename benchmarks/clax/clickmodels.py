"""CLAX's ten click models with its own trainer, parameters and collate function, timed.

It runs in a Python environment of CLAX's own, which lacks this project's packages. So it imports
only `benchmarks.clax.replay` of this project.
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
from flax import nnx
from torch.utils.data import DataLoader, Subset

from benchmarks.clax.replay import Clicks, Clock, collator

VALIDATION = 50_000
"""How many of the held-out pages CLAX's early stopping may see."""


class Pages(Clicks):
    """Pages with the numbers of their query-document pairs."""

    def __init__(self, pair: np.ndarray, clicks: np.ndarray):
        super().__init__(clicks)
        self.pair = pair

    @classmethod
    def of_file(cls, path: str) -> Pages:
        """From the columns query_doc_ids and clicks of a parquet file of pages of one length."""
        table = pq.read_table(path)
        columns = (table[name].combine_chunks() for name in ("query_doc_ids", "clicks"))
        return cls(
            *(
                column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
                for column in columns
            )
        )

    def __getitem__(self, index: int) -> dict:
        return super().__getitem__(index) | {"query_doc_ids": self.pair[index]}


COLLATE = collator(query_doc_ids=np.int32)


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


def fit_log(*, log: str, name: str, batch: int, learning_rate: float, epochs: int) -> dict:
    """Train until early stopping, or for so many epochs, and predict the held-out pages."""
    start = time.perf_counter()
    train = Pages.of_file(f"{log}/train-clax.parquet")
    reading = time.perf_counter() - start
    test = Pages.of_file(f"{log}/test-clax.parquet")
    validation = Subset(test, range(min(VALIDATION, len(test))))
    torch.manual_seed(0)
    # Ids count from 1, and CLAX's tables add a row for padding.
    model = built(name, max(int(data.pair.max()) for data in (train, test)), train.clicks.shape[1])

    def loader(data, *, shuffle: bool = False) -> DataLoader:
        return DataLoader(data, batch_size=batch, shuffle=shuffle, collate_fn=COLLATE)

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
        found = trainer.test_clicks(model, loader(test)).iloc[-1]
    clock = trainer.early_stopping
    return {
        "compilation": compilation,
        "file": reading + clock.seconds[-1],
        "arrays": clock.seconds[-1],
        "epochs": len(clock.seconds),
        "ended": bool(clock.bad >= clock.patience),
        "conditional": float(found["test_cond_ppl"]),
        "perplexity": float(found["test_ppl"]),
        "log_likelihood": float(found["test_ll"]),
    }
