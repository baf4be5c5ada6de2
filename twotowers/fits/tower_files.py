"""Saved fits of towers.

A parquet file with one row, and a column per array of parameters, such as `seed 0 ['bias']...`.
`mean` and `scale` are of the features, `bias mean` and `bias scale` of further features of places;
`query` and `document` name the pairs of a tower with a parameter per pair. The file's metadata has
the model, the names of the features, and the number of positions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from flax import nnx

from twotowers.errors import InputError
from twotowers.experiment.own_log import TRAINING, Divided, OwnLog
from twotowers.experiment.parts import Part, relevance_tower
from twotowers.files.artefacts import atomic, check_ending
from twotowers.fits.towers import UNCOUNTED, LogTowers
from twotowers.logs.described import inputs_of
from twotowers.logs.features import KEYS, Scaled, Standardised
from twotowers.methods.likelihood import built, predicting
from twotowers.methods.task import Split, Task
from twotowers.simulations.towers import setting_of

TOWERS = "towers"
"""The key of a saved fit's metadata."""


def save_towers(fit: LogTowers, path: str | Path) -> None:
    """Write a fit, all or nothing; see `LogTowers.save`."""
    check_ending(path, ".parquet")
    if fit.log is not None:
        fit.log.check_out(path)
    model, read = fit.setting.model, fit.read
    own: dict[str, Any] = {"kind": model.kind, **asdict(model.of), "features": model.features}
    own |= {"tower": _named(model.tower), "examination": _named(model.examination.kind)}
    if model.examination.dropout:
        given = own["examination"]
        given = given if isinstance(given, dict) else {"kind": given}
        own["examination"] = {**given, "dropout": model.examination.dropout}
    own["parts"] = {part: _named(tower) for part, tower in model.parts.items()}
    about: dict[str, Any] = {
        "model": own, "positions": fit.setting.log.positions, "seeds": fit.seeds
    }  # fmt: skip
    arrays: dict[str, Any] = {}
    if read.features is not None:
        about["features"] = read.features.scales.names
        about["called"] = {name: read.features.called.get(name, name) for name in KEYS}
        arrays |= {"mean": read.features.scales.mean, "scale": read.features.scales.scale}
    if read.bias is not None:
        about["bias"] = read.bias.names
        arrays |= {"bias mean": read.bias.mean, "bias scale": read.bias.scale}
    if "pair" in model.needs:
        arrays |= {name: read.pairs[name] for name in KEYS}
    try:
        for seed, found in zip(fit.seeds, fit.fitted, strict=True):
            leaves, _ = jax.tree_util.tree_flatten_with_path(nnx.state(found.towers))
            arrays |= {_column(seed, where): np.ravel(each) for where, each in leaves}
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


def _named(tower: Part | str) -> Any:
    """A tower as settings name it."""
    if not isinstance(tower, Part):
        return tower
    return {"kind": tower.name, **tower.options} | ({"reads": tower.reads} if tower.reads else {})


def _column(seed: int, path: Any) -> str:
    return f"seed {seed} {jax.tree_util.keystr(path)}"


def load_towers(path: str | Path, about: Mapping[str, Any], table: pa.Table) -> LogTowers:
    """What `load` returns of a fit of towers.

    Args:
        path: the file, for messages.
        about: its metadata.
        table: its row.
    """
    arrays = {name: table[name][0].values for name in table.column_names}
    own, features, bias, pairs = dict(about["model"]), None, None, pd.DataFrame(columns=[*KEYS])
    named: dict[str, Any] = {}
    if "features" in about:
        scales = about["features"], arrays["mean"].to_numpy(), arrays["scale"].to_numpy()
        features = Standardised(None, Scaled(*scales), about["called"])
        named["features"] = np.zeros((1, 1, len(scales[0])), np.float32)
    if "bias" in about:
        scales = about["bias"], arrays["bias mean"].to_numpy(), arrays["bias scale"].to_numpy()
        bias = Scaled(*scales)
        named["bias"] = np.zeros((1, 1, len(scales[0])), np.float32)
    if "document" in arrays:
        pairs = pd.DataFrame({name: arrays[name].to_pandas() for name in KEYS})
        named["pair"] = np.array([[len(pairs) - 1]])
    if not named.keys() - {"bias"}:
        named["pair"] = np.zeros((1, 1), int)
    inputs = inputs_of(named, {})
    log = OwnLog(
        path=str(path),
        positions=about["positions"],
        features="features" if features is not None else None,
        bias=tuple(about.get("bias", ())),
    )
    setting = setting_of(log, own, "likelihood", TRAINING)
    fitted = []
    for seed in about["seeds"]:
        task = Task(
            model=setting.model.of,
            tower=relevance_tower(setting.model.tower),
            splits={"train": Split(inputs, np.ones((1, 1), bool), None, UNCOUNTED)},
            lanes=[(0, {})],
            training={},
            positions=about["positions"],
            seed=seed,
            examination=setting.model.examination.arguments(),
            parts=setting.model.parts,
        )
        towers = built(task)
        leaves, structure = jax.tree_util.tree_flatten_with_path(nnx.state(towers))
        try:
            values = [
                arrays[_column(seed, where)].to_numpy().reshape(each.shape).astype(each.dtype)
                for where, each in leaves
            ]
        except (KeyError, ValueError):
            raise InputError(
                "its parameters are not those of its model", path=path, expected="a saved fit"
            ) from None
        nnx.update(towers, jax.tree_util.tree_unflatten(structure, values))
        fitted.append(predicting(towers))
    read = Divided({}, features, pairs, bias)
    return LogTowers(setting, tuple(about["seeds"]), fitted, read)
