"""Towers fitted to a click log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from twotowers.errors import InputError, check_names, check_range
from twotowers.experiment.own_log import TRAINING, OwnLog
from twotowers.fits.models import model_of
from twotowers.fits.towers import LogTowers
from twotowers.jobs.fit import fit_lanes
from twotowers.logs.checks import MOST_POSITIONS
from twotowers.logs.click_log import ClickLog, as_log
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
        training: what differs from `TRAINING` (docs/settings.md, Training).
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
    given = as_log(log)
    model = replace(model, click_model=model_of(model.click_model)[1])
    seeds = checked_seeds(seeds)
    own_log = OwnLog(
        path=str(given.source),
        positions=_positions(given, positions),
        features=None if features is None else "features",
        bias=tuple(check_names(bias, field="bias")) if bias else (),
        given=(given, features),
        kept=None if checkpoint is None else str(checkpoint),
    )
    setting = setting_of(own_log, model.settled(), method, {**TRAINING, **(training or {})})
    lanes = {name: each for own in setting.lanes.values() for name, each in own.items()}
    if several := [name for name, each in lanes.items() if len(each) > 1]:
        message = f"{', '.join(several)} have several values"
        raise InputError(message, field="model", expected="one value of each")
    if features is not None and setting.model.needs == {"pair"}:
        wrong = f"tower {setting.model.tower.name!r} reads none"
        raise InputError(wrong, field="features", expected="None")
    settled: Any = setting.log
    read = settled.read(setting.model.read)
    held = settled.model_copy(update={"given": read})
    setting = setting.model_copy(update={"log": held})
    tasks, found = zip(*(fit_lanes({}, setting, seed=seed) for seed in seeds), strict=True)
    fitted = [each for lanes in found for each in lanes]
    return LogTowers(setting, seeds, fitted, read, tasks[0], given.kind, given)


def _positions(log: ClickLog, positions: int | None) -> int:
    length = int(log.count(["position"]).values("position").to_numpy().max())
    check_range(positions or length, field="positions", low=length, high=MOST_POSITIONS, whole=True)
    return positions or length
