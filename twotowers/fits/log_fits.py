"""Towers fitted to a click log, or loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
from flax import nnx

from twotowers.errors import InputError, check_names
from twotowers.experiment.own_log import TRAINING, Divided, OwnLog, checked_positions
from twotowers.experiment.parts import relevance_tower
from twotowers.fits.models import model_of
from twotowers.fits.towers import UNCOUNTED, LogTowers, parameters_of
from twotowers.jobs.fit import fit_lanes
from twotowers.logs.click_log import as_log
from twotowers.logs.described import inputs_of
from twotowers.logs.features import KEYS, Scaled, Standardised
from twotowers.methods.likelihood import built, predicting
from twotowers.methods.task import Split, Task
from twotowers.simulations.towers import TwoTower, checked_seeds, setting_of


def fit_log_towers(
    log: object,
    model: TwoTower,
    *,
    features: object = None,
    bias: Sequence[str] = (),
    method: Any = "likelihood",
    training: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
    positions: int | None = None,
    checkpoint: str | Path | None = None,
) -> LogTowers:
    """Fit two towers to a click log, once per seed.

    A tenth of the log stops training early, and a tenth is held out: `evaluate` reports it. If
    clicks are independent given document and position, as in the additive and the position-based
    model, and the method is the likelihood, the log is counted: a unit of a batch is a row of
    features with its impressions at each position. All other models and methods see pages: in
    memory, if the `memory` of `read_log` holds them, or read in shuffled blocks. `print(fit)` says
    which.

    Args:
        log: a log of `read_log`, or what `read_log` takes.
        model: the towers. Its `click_model` may be one of the ten click models.
        features: a table (a path or a frame) with `document`, perhaps `query`, and a column per
            feature. Each is scaled to mean 0 and standard deviation 1. None if no tower reads
            features, as "embedding", which has a parameter per query-document pair.
        bias: columns of numbers of the log, such as the height of a result, that towers of
            positions read.
        method: see `fit_towers`.
        training: what differs from `TRAINING` (docs/settings.md, Training). Its `optimizer` may be
            a function, such as `lambda rate: optax.chain(optax.clip(1.0), optax.adam(rate))`.
        seeds: of the initial parameters and the order of batches.
        positions: of the longest page that the fit shall predict; the longest of the log if None.
        checkpoint: a file that keeps the state of training until it ends (a seed is added to its
            name). The same call goes on from it if it was ended, with the same result.

    Raises:
        InputError: an argument is unknown or out of range; a document has no features; or log,
            model and method do not fit together.

    Example:
        >>> pages = {"documents": [["a", "b"], ["b", "a"]] * 50, "clicks": [[1, 0], [0, 1]] * 50}
        >>> prices = pd.DataFrame({"document": ["a", "b"], "price": [1.0, 2.0]})
        >>> fit_log_towers(pa.table(pages), TwoTower("linear"), features=prices)
        <linear tower, additive, by likelihood, seeds (0,)>
    """
    if checkpoint is not None and callable((training or {}).get("optimizer")):
        wrong = "a later call could not tell whether a function is the same"
        raise InputError(wrong, field="checkpoint", expected="an optimiser by its name")
    given = as_log(log)
    model = replace(model, click_model=model_of(model.click_model)[1])
    seeds = checked_seeds(seeds)
    own_log = OwnLog(
        path=str(given.source),
        positions=checked_positions(given, positions),
        features=None if features is None else "features",
        bias=tuple(check_names(bias, field="bias")) if bias else (),
        given=(given, features),
    )
    towers = model.settled()
    setting = setting_of(own_log, towers, method, {**TRAINING, **(training or {})})
    towers["kind"] = setting.model.kind
    lanes = {name: each for own in setting.lanes.values() for name, each in own.items()}
    if several := [name for name, each in lanes.items() if len(each) > 1]:
        message = f"{', '.join(several)} have several values"
        raise InputError(message, field="model", expected="one value of each")
    if features is not None and setting.model.needs == {"pair"}:
        wrong = f"tower {setting.model.tower.name!r} reads none"
        raise InputError(wrong, field="features", expected="None")
    settled: Any = setting.log
    read = settled.read(setting)
    held = settled.model_copy(update={"given": read})
    setting = setting.model_copy(update={"log": held})
    kept = [None if checkpoint is None else f"{checkpoint}.{seed}" for seed in seeds]
    runs = zip(seeds, kept, strict=True)
    fits = (fit_lanes({}, setting, seed=seed, checkpoint=file) for seed, file in runs)
    tasks, results = zip(*fits, strict=True)
    fitted = [each for lanes in results for each in lanes]
    return LogTowers(towers, setting, seeds, fitted, read, tasks[0], given.kind, given)


def load_towers(path: str | Path, about: Mapping[str, Any], table: pa.Table) -> LogTowers:
    """The fit of towers that is saved at `path`, a file with the contents `about` and `table`."""
    arrays = {name: table[name][0].values for name in table.column_names}
    features, bias, pairs = None, None, pd.DataFrame(columns=[*KEYS])
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
    setting = setting_of(log, about["model"], "likelihood", TRAINING)
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
        try:
            values = [
                arrays[name].to_numpy().reshape(each.shape).astype(each.dtype)
                for name, each in parameters_of(towers, seed).items()
            ]
        except (KeyError, ValueError):
            raise InputError(
                "its parameters are not those of its model", path=path, expected="a saved fit"
            ) from None
        structure = jax.tree_util.tree_structure(nnx.state(towers))
        nnx.update(towers, jax.tree_util.tree_unflatten(structure, values))
        fitted.append(predicting(towers))
    read = Divided({}, features, pairs, bias)
    return LogTowers(about["model"], setting, tuple(about["seeds"]), fitted, read)
