# ruff: noqa: E402 - some modules have to be replaced before CLAX is imported
"""CLAX's click probabilities against ours, in CLAX's environment: see ../probabilities.py."""

import sys
from contextlib import suppress
from unittest.mock import MagicMock

# Models need none of these, but the package imports them with its trainer and data sets.
for name in ("torch", "torch.utils", "torch.utils.data", "rax", "pandas", "progress_table",
             "pyarrow", "pyarrow.parquet", "datasets"):  # fmt: skip
    with suppress(ImportError):
        __import__(name)
    sys.modules.setdefault(name, MagicMock())

import jax.numpy as jnp
import numpy as np
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
from clax.parameters import Parameter
from flax import nnx


class Table(Parameter):
    """Given logits, by a feature of the batch."""

    def __init__(self, values, feature):
        self.values, self.feature = nnx.Param(jnp.asarray(values)), feature

    def logit(self, batch):
        return self.values[...][batch[self.feature]]

    def prob(self, batch):
        return nnx.sigmoid(self.logit(batch))

    def log_prob(self, batch):
        return nnx.log_sigmoid(self.logit(batch))


def document(values):
    return Table(values, "query_doc_ids")


def position(values):
    return Table(np.concatenate([[0], values]), "positions")  # CLAX counts from 1


def jumps(values):
    length = len(values)
    table = np.zeros((length + 1) * length)
    table[length:] = values.reshape(-1)  # position k and last click k' are at k length + k'
    return Table(table, "examination_idx")


def once(parameter, value):
    parameter.weight.value = jnp.asarray(value).reshape(1)


def built(name, own, rngs):
    """CLAX's model with our parameters."""
    length = 8
    if name == "gctr":
        model = GlobalCTRModel(rngs=rngs)
        once(model.ctr, own["rate"])
        return model
    if name == "rctr":
        return RankCTRModel(ctr=position(own["examination"]), rngs=rngs)
    attraction = document(own["attraction"])
    if name == "dctr":
        return DocumentCTRModel(ctr=attraction, rngs=rngs)
    if name == "pbm":
        return PositionBasedModel(
            attraction=attraction, examination=position(own["examination"]), rngs=rngs
        )
    if name == "cm":
        return CascadeModel(attraction=attraction, rngs=rngs)
    if name == "ubm":
        return UserBrowsingModel(
            length, attraction=attraction, examination=jumps(own["examination"]), rngs=rngs
        )
    if name == "dcm":
        return DependentClickModel(
            attraction=attraction, continuation=position(own["continuation"]), rngs=rngs
        )
    if name == "ccm":
        model = ClickChainModel(attraction=attraction, rngs=rngs)
        once(model.continuation_exam_no_click, own["after_none"])
        once(model.continuation_click_not_satisfied, own["after_dissatisfied"])
        once(model.continuation_click_satisfied, own["after_satisfied"])
        return model
    model = DynamicBayesianNetwork(
        attraction=attraction,
        satisfaction=document(own["satisfaction"]),
        fix_continuation=name == "sdbn",
        rngs=rngs,
    )
    if name == "dbn":
        once(model.continuation, own["continuation"])
    return model


def main(path):
    ours = np.load(path)
    where = ours["where"]
    batch = {
        "positions": np.broadcast_to(np.arange(1, where.shape[1] + 1), where.shape),
        "query_doc_ids": ours["pair"],
        "clicks": ours["clicks"].astype(int),
        "mask": where,
    }
    batch = {name: jnp.asarray(values) for name, values in batch.items()}
    names = list(dict.fromkeys(key.split("/")[0] for key in ours if "/" in key))
    for name in names:
        own = {key.split("/")[1]: ours[key] for key in ours if key.startswith(f"{name}/")}
        model = built(name, own, nnx.Rngs(0))
        theirs = model.predict_clicks(batch), model.predict_conditional_clicks(batch)
        gaps = [
            np.abs(np.exp(np.asarray(log)) - np.exp(own[key]))[where].max()
            for log, key in zip(theirs, ("alone", "given"), strict=True)
        ]
        print(f"{name:5} alone {gaps[0]:.1e}  given those above {gaps[1]:.1e}")


if __name__ == "__main__":
    main(sys.argv[1])
