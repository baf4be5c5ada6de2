"""Two towers fitted to a click log and a table of features: rank, predict, save, load.

A saved fit is a parquet file with one row, and a column per array of parameters, such as
`seed 0 ['bias']...`. `mean` and `scale` are of the features; `query` and `document` name the pairs
of a tower with a parameter per pair. The file's metadata has the model, the names of the features,
and the number of positions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from flax import nnx

from twotowers.errors import InputError, check_range
from twotowers.experiment.parts import relevance_tower
from twotowers.files.artefacts import atomic, check_ending
from twotowers.fits.divided import (
    UNCOUNTED,
    DividedLog,
    cell_splits,
    likelihood_of_rates,
    measures_of_cells,
    page_splits,
)
from twotowers.fits.features import KEYS, Standardised, read_features, rows_of
from twotowers.fits.fit import means_of
from twotowers.fits.models import model_of
from twotowers.fits.predictions import pages_to_predict, predictions
from twotowers.jobs.fit import fit_lanes
from twotowers.jobs.gates import fall_at_limit
from twotowers.logs.checks import MOST_POSITIONS
from twotowers.logs.click_log import ClickLog, as_log, check_pages
from twotowers.logs.described import Gathered
from twotowers.logs.frames import PANDAS, Native, native
from twotowers.logs.page_arrays import Pages
from twotowers.logs.simulation import Sessions
from twotowers.methods.likelihood import built, predicting
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.protocol import CellModel
from twotowers.simulations.towers import TwoTower, checked_seeds, setting_of

if TYPE_CHECKING:
    from twotowers.experiment.settings import Setting

TRAINING = {
    "learning_rate": 0.003, "weight_decay": 1e-4, "batch": 256, "epochs": 50, "patience": 3,
    "min_delta": 1e-6,
}  # fmt: skip
"""How towers are trained on a log by default: AdamW. An epoch is a pass over it, or `STEPS`."""
STEPS = 50
"""The fewest steps of an epoch."""
LIKELIHOOD = "likelihood"
STILL_FALLING = 1e-3
"""By more than this share, a loss fell in the last tenth of the epochs."""


@dataclass(frozen=True, eq=False)
class LogTowers:
    """Two towers fitted to a log, a copy per seed. `fit` makes one.

    Attributes:
        setting: what was fitted, and how.
        seeds: of the initial parameters and the order of batches.
        fitted: what each seed has.
        features: what the relevance tower reads; None if it has a parameter per pair.
        pairs: columns query and document of the log's pairs.
        positions: of the longest page.
        task: with the splits of the log; None if the fit was loaded.
        examined: the examination part, as the model was given it.
        kind: the library of the frames that answers come in.
        log: to which they were fitted; None if the fit was loaded.
    """

    setting: Setting
    seeds: tuple[int, ...]
    fitted: list[Fitted]
    features: Standardised | None
    pairs: pd.DataFrame
    positions: int
    task: Task | None = field(default=None, repr=False)
    examined: Any = "table"
    kind: str = PANDAS
    log: ClickLog | None = None

    def __repr__(self) -> str:
        model, method = self.setting.model, self.setting.method.name
        return f"<{model.tower.name} tower, {model.kind}, by {method}, seeds {self.seeds}>"

    def __str__(self) -> str:
        return "\n".join([repr(self), *self.notes()])

    def examination(self) -> Native:
        """Position bias of each seed, relative to position 1.

        It has no interval. Training that stops early has no sampling theory, and a tower that lacks
        what the ranker knew mixes relevance into the bias (Hager et al. 2025, Section 5.3). Seeds
        that differ show what training leaves open. `propensities` needs no features and has
        intervals; `diagnose` tests towers of features.

        Returns:
            a frame: seed, position (from 1), and estimate: a difference of log-odds for the
            additive model, of logarithms of probabilities for the position-based one. It is NaN
            where training shows nothing.

        Raises:
            InputError: the model or the method has no position bias.
        """
        parts = []
        for seed, found in zip(self.seeds, self.fitted, strict=True):
            if found.bias is None:
                raise InputError(
                    f"{self!r} has no bias that depends on the position alone",
                    field="model",
                    expected="'additive' or 'position_based'",
                )
            bias = pd.DataFrame({"seed": seed, "estimate": found.bias - found.bias[0]})
            bias.insert(1, "position", np.arange(1, len(bias) + 1))
            parts.append(bias)
        return native(pd.concat(parts, ignore_index=True), self.kind)

    def relevance(self, features: object = None) -> Native:
        """Scores of documents: means over seeds, the best of each query first.

        Args:
            features: a table of documents or pairs to score, which need not be in the log; the
                pairs of the log if None.

        Returns:
            a frame: query (if the table has it), document, and score: log-odds, or the relevance
            of a model of pages, a probability. Higher is more relevant.

        Raises:
            InputError: the model has no relevance, or a parameter per pair of its log.
        """
        ids, inputs = self.pairs, np.arange(len(self.pairs))
        if self.features is not None:
            own = self.features if features is None else self.features.of(features)
            ids = ids if features is None else own.ids
            inputs = own.values(ids)
        elif features is not None:
            expected = "None, or a tower that reads features"
            raise InputError("the tower reads none", field="features", expected=expected)
        scores = [each.scores(inputs[None])[0] for each in self.fitted if each.scores]
        if not scores:
            raise InputError(f"{self!r} has no relevance", field="model", expected="another model")
        found = ids.assign(score=np.mean(scores, axis=0, dtype=float))
        by = [name for name in KEYS[:1] if name in ids]
        rising = [True] * len(by) + [False, True]
        found = found.sort_values([*by, "score", "document"], ascending=rising, ignore_index=True)
        return native(found, self.kind)

    def predict(self, log: object, features: object = None) -> Native:
        """Click probabilities of each document of a log's pages: means over seeds.

        Args:
            log: see `read_log`, with pages.
            features: of its documents; those that the fit was given if None.

        Returns:
            a frame as `Fit.predict` has it.

        Raises:
            InputError: a document has no features, a page is longer than the fit's, or the method
                predicts no clicks.
        """
        split, pages = self._of_log(log, features)
        losses = [self._losses(each, split) for each in self.fitted]
        return native(predictions(pages, losses), self.kind)

    def evaluate(self, log: object = None, features: object = None) -> Native:
        """How well each seed predicts the clicks of a log.

        Args:
            log: see `predict`; the held-out tenth of the log that was fitted if None.
            features: see `predict`.

        Returns:
            a frame: seed, and perplexity, conditional and log_likelihood as `Fit.evaluate` has
            them.
        """
        of_log = self.held_out if log is None else self._measured(self._of_log(log, features)[0])
        return native(of_log, self.kind)

    @cached_property
    def held_out(self) -> pd.DataFrame:
        """What `evaluate` returns of the held-out tenth."""
        return self._measured(self._split("test"))

    @cached_property
    def gains(self) -> pd.DataFrame:
        """How much better each seed predicts held-out clicks than rates do.

        Columns seed; constant and ranks: nats per document over a click rate for all, and over one
        per position; fall: by what share the loss still fell in the last tenth of the epochs.
        """
        train, test = self._split("train"), self._split("test")
        rows: list[dict[str, float]] = []
        rates = {name: likelihood_of_rates(train, test, name) for name in ("constant", "ranks")}
        for found, measured in zip(self.fitted, self.held_out.to_dict("records"), strict=True):
            gains = {name: measured["log_likelihood"] - rate for name, rate in rates.items()}
            rows.append({"seed": measured["seed"], "fall": fall_at_limit(found) or 0.0, **gains})
        return pd.DataFrame(rows)

    def notes(self) -> Iterator[str]:
        """What to know before the fit is used, line by line. `print(fit)` shows it."""
        if self.task is None:
            return
        for row in self.gains.to_dict("records"):
            yield (
                f"seed {row['seed']}: {row['constant']:+.5f} nats per held-out document over one "
                f"click rate, {row['ranks']:+.5f} over click rates of positions"
            )
            if min(row["constant"], row["ranks"]) <= 0:
                yield "  it predicts no better than such rates: do not use it"
            if row["fall"] > STILL_FALLING:
                yield "  its loss was still falling: train for more epochs"
        yield "position bias here has no interval; `twotowers propensities` has one"

    def save(self, path: str | Path) -> None:
        """Write the fit, all or nothing: the parquet file that the module describes.

        `load` reads it. The features of documents are not in it.

        Raises:
            InputError: another ending, no such folder, or the file is the log itself; or the
                towers are no likelihood's, or of a class that is no file of twotowers/towers.
        """
        check_ending(path, ".parquet")
        if self.log is not None:
            self.log.check_out(path)
        model = self.setting.model
        tower = {"kind": model.tower.name, **model.tower.options}
        own = {"kind": model.kind, **asdict(model.of), "tower": tower, "features": model.features}
        own["examination"] = self.examined
        about: dict[str, Any] = {"model": own, "positions": self.positions, "seeds": self.seeds}
        if self.features is not None:
            about["features"] = self.features.names
            about["called"] = {name: self.features.called.get(name, name) for name in KEYS}
            arrays: dict[str, Any] = {"mean": self.features.mean, "scale": self.features.scale}
        else:
            arrays = {name: self.pairs[name] for name in KEYS}
        try:
            for seed, found in zip(self.seeds, self.fitted, strict=True):
                leaves, _ = jax.tree_util.tree_flatten_with_path(nnx.state(found.towers))
                arrays |= {_named(seed, where): np.ravel(each) for where, each in leaves}
            known = {TOWERS: json.dumps(about)}
        except (TypeError, ValueError):
            raise InputError(
                f"{self!r} cannot be saved",
                field="model",
                expected="towers of twotowers/towers, fitted by likelihood",
            ) from None
        with atomic(path) as temporary:
            table = pa.table({name: pa.array([np.asarray(each)]) for name, each in arrays.items()})
            pq.write_table(table.replace_schema_metadata(known), temporary)

    def _measured(self, split: Split) -> pd.DataFrame:
        rows = []
        for seed, found in zip(self.seeds, self.fitted, strict=True):
            if split.sessions is not None:
                own = means_of(*self._losses(found, split), split.sessions[0].where)
            else:
                own = measures_of_cells(found, split)
            rows.append({"seed": seed, **own})
        return pd.DataFrame(rows)

    def _losses(self, found: Fitted, split: Split) -> tuple[np.ndarray, np.ndarray]:
        if found.page_losses is None:
            raise InputError(
                f"method {self.setting.method.name!r} predicts no clicks",
                field="method",
                expected="one that does, such as 'likelihood'",
            )
        return found.page_losses(split)

    def _split(self, name: str) -> Split:
        if self.task is None:
            raise InputError("a loaded fit holds none", field="log", expected="a log")
        return self.task.splits[name]

    def _of_log(self, log: object, features: object) -> tuple[Split, Pages]:
        """A log as towers read it, and its pages."""
        given = as_log(log)
        pages = pages_to_predict(given, self.setting.model.of, self.positions)
        assert pages.ids is not None  # A log names its documents.
        ids = pages.ids.to_pandas()
        if self.features is not None:
            own = self.features if features is None else self.features.of(features)
            inputs: Any = Gathered(own.values(ids), pages.pair)
        else:
            row = rows_of(self.pairs, ids)
            if (row < 0).any():
                raise InputError(
                    f"{(row < 0).sum():,} of its query-document pairs are none of the fit's",
                    path=given.source,
                    field="document",
                    expected="pairs of the fit, or a tower that reads features",
                )
            inputs = row[pages.pair]
        page = np.arange(len(pages.pair))
        place = np.broadcast_to(np.arange(self.positions), pages.pair.shape)
        sessions = [Sessions(page, place, pages.clicks, pages.where, page)]
        return Split(inputs, pages.where, None, UNCOUNTED, sessions), pages


TOWERS = "towers"
"""The key of a saved fit's metadata."""


def _named(seed: int, path: Any) -> str:
    return f"seed {seed} {jax.tree_util.keystr(path)}"


def fit_log_towers(
    log: object,
    model: TwoTower,
    *,
    features: object = None,
    method: Any = LIKELIHOOD,
    training: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
    positions: int | None = None,
) -> LogTowers:
    """Fit two towers to a click log, once per seed.

    A tenth of the log stops training early, and a tenth is held out: `evaluate` reports it. If
    clicks are independent given document and position, as in the additive and the position-based
    model, and the method is the likelihood, the log is counted: a unit of a batch is a row of
    features with its impressions at each position. All other models and methods see pages.

    Args:
        log: a log of `read_log`, or what `read_log` takes.
        model: the towers. Its `click_model` may be one of the ten click models.
        features: a table (a path or a frame) with `document`, perhaps `query`, and a column per
            feature. Each is scaled to mean 0 and standard deviation 1. None if the relevance tower
            is "embedding", with a parameter per query-document pair.
        method: see `fit_towers`.
        training: what differs from `TRAINING` (docs/settings.md, Training).
        seeds: of the initial parameters and the order of batches.
        positions: of the longest page that the fit shall predict; the longest of the log if None.

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
    model = replace(model, click_model=(click_model := model_of(model.click_model)[1]))
    seeds = checked_seeds(seeds)
    counted = method in (LIKELIHOOD, {"kind": LIKELIHOOD})
    counted &= isinstance(click_model, CellModel) and "attraction" in click_model.parts
    if counted:
        method = {"kind": LIKELIHOOD, "weighting": "impressions"}
    else:
        check_pages(given)
        given = given if click_model.gaps else given.closed()
    length = int(given.count(["position"]).values("position").to_numpy().max())
    positions = positions or length
    check_range(positions, field="positions", low=length, high=MOST_POSITIONS, whole=True)
    log_of = DividedLog(record="cells" if counted else "sessions", positions=positions)
    setting = setting_of(log_of, model.settled(), method, {**TRAINING, **(training or {})})
    lanes = {name: each for own in setting.lanes.values() for name, each in own.items()}
    if several := [name for name, each in lanes.items() if len(each) > 1]:
        message = f"{', '.join(several)} have several values"
        raise InputError(message, field="model", expected="one value of each")
    by_pair = setting.model.by_pair
    if by_pair == (features is not None):
        raise InputError(
            f"tower {setting.model.tower.name!r} reads {'none' if by_pair else 'features'}",
            field="features",
            expected="None" if by_pair else "a table with document and a column per feature",
        )
    table = None if features is None else read_features(features, called=given.layout.columns)
    read = (cell_splits if counted else page_splits)(given, table, positions)
    how = setting.training
    if how is not None and how.steps is None:
        train = read.splits["train"]
        units = len(train.sessions[0].query if train.sessions else train.where)
        how = how.model_copy(update={"steps": max(units // how.batch, STEPS)})
    log_of = log_of.model_copy(update={"parts": read.splits})
    setting = setting.model_copy(update={"log": log_of, "training": how})
    tasks, found = zip(*(fit_lanes({}, setting, seed=seed) for seed in seeds), strict=True)
    fitted = [each for lanes in found for each in lanes]
    about = tasks[0], model.examination, given.kind, given
    return LogTowers(setting, seeds, fitted, read.features, read.pairs, positions, *about)


def load_towers(path: str | Path, about: Mapping[str, Any], table: pa.Table) -> LogTowers:
    """What `load` returns of a fit of towers.

    Args:
        path: the file, for messages.
        about: its metadata.
        table: its row.
    """
    arrays = {name: table[name][0].values for name in table.column_names}
    own, features, pairs = dict(about["model"]), None, pd.DataFrame(columns=[*KEYS])
    if "features" in about:
        mean, scale = arrays["mean"].to_numpy(), arrays["scale"].to_numpy()
        features = Standardised(None, about["features"], mean, scale, about["called"])
        inputs = np.zeros((1, 1, len(about["features"])), np.float32)
    else:
        pairs = pd.DataFrame({name: arrays[name].to_pandas() for name in KEYS})
        inputs = np.array([[len(pairs) - 1]])
    log = DividedLog(record="sessions", positions=about["positions"])
    setting = setting_of(log, own, LIKELIHOOD, TRAINING)
    fitted = []
    for seed in about["seeds"]:
        task = Task(
            model=setting.model.of,
            tower=relevance_tower(setting.model.tower),
            splits={"train": Split(inputs, np.ones(inputs.shape[:2], bool), None, UNCOUNTED)},
            lanes=[(0, {})],
            training={},
            positions=about["positions"],
            seed=seed,
            examination=setting.model.examination.arguments(),
        )
        towers = built(task)
        leaves, structure = jax.tree_util.tree_flatten_with_path(nnx.state(towers))
        try:
            values = [
                arrays[_named(seed, where)].to_numpy().reshape(each.shape).astype(each.dtype)
                for where, each in leaves
            ]
        except (KeyError, ValueError):
            raise InputError(
                "its parameters are not those of its model", path=path, expected="a saved fit"
            ) from None
        nnx.update(towers, jax.tree_util.tree_unflatten(structure, values))
        fitted.append(predicting(towers))
    return LogTowers(setting, tuple(about["seeds"]), fitted, features, pairs, about["positions"])
