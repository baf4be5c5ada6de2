"""Saved fits of towers.

A parquet file with one row, and a column per array of parameters, such as `seed 0 ['bias']...`.
`mean` and `scale` are of the features, `bias mean` and `bias scale` of further features of places;
`query` and `document` name the pairs of a tower with a parameter per pair. The file's metadata has
the model, the names of the features, and the number of positions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from flax import nnx

from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.logs.click_log import check_out
from twotowers.logs.features import KEYS

TOWERS = "towers"
"""The key of a saved fit's metadata."""


def save_towers(fit: Any, path: str | Path) -> None:
    """Write a fit, all or nothing; see `LogTowers.save`."""
    check_out(path, fit.log, ".parquet")
    read, positions = fit.read, fit.setting.log.positions
    about: dict[str, Any] = {"model": fit.model, "positions": positions, "seeds": fit.seeds}
    arrays: dict[str, Any] = {}
    if read.features is not None:
        about["features"] = read.features.scales.names
        about["called"] = {name: read.features.called.get(name, name) for name in KEYS}
        arrays |= {"mean": read.features.scales.mean, "scale": read.features.scales.scale}
    if read.bias is not None:
        about["bias"] = read.bias.names
        arrays |= {"bias mean": read.bias.mean, "bias scale": read.bias.scale}
    if "pair" in fit.setting.model.needs:
        arrays |= {name: read.pairs[name] for name in KEYS}
    try:
        for seed, result in zip(fit.seeds, fit.fitted, strict=True):
            leaves, _ = jax.tree_util.tree_flatten_with_path(nnx.state(result.towers))
            arrays |= {column_of(seed, where): np.ravel(each) for where, each in leaves}
        known = {TOWERS: json.dumps(about)}
    except (TypeError, ValueError):
        raise InputError(
            f"{fit!r} cannot be saved",
            field="model",
            expected="towers of twotowers/towers, fitted by likelihood",
        ) from None
    with atomic(path) as temporary:
        columns = {name: pa.array([np.asarray(each)]) for name, each in arrays.items()}
        pq.write_table(pa.table(columns).replace_schema_metadata(known), temporary)


def column_of(seed: int, path: Any) -> str:
    return f"seed {seed} {jax.tree_util.keystr(path)}"
