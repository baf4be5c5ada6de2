"""Towers fitted to a click log: rank, predict, save."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.special import expit, xlogy

from twotowers.claims.metrics import perplexities
from twotowers.errors import InputError, nearest
from twotowers.experiment.own_log import Divided
from twotowers.files.artefacts import atomic, check_target
from twotowers.fits.fit import means_of
from twotowers.fits.reduction import pages_to_predict, predictions, shown_with
from twotowers.fits.tables import places
from twotowers.jobs.gates import fall_at_limit, totals
from twotowers.logs.click_log import ClickLog, as_log
from twotowers.logs.counts import Counts
from twotowers.logs.described import inputs_of
from twotowers.logs.features import KEYS, rows_of
from twotowers.logs.frames import PANDAS, Native, native
from twotowers.logs.page_arrays import Pages
from twotowers.logs.simulation import Sessions
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.protocol import ONCE, PER_JUMP, PER_POSITION
from twotowers.randomness import stream
from twotowers.simulations.towers import relative_bias

if TYPE_CHECKING:
    from twotowers.experiment.settings import Setting


TOWERS = "towers"
"""The key of a saved fit's metadata."""
STILL_FALLING = 1e-3
"""By more than this share, a loss fell in the last tenth of the epochs."""
UNCOUNTED = Counts(np.zeros(0), np.zeros(0))
"""The counts of pages that are predicted and not fitted: none."""


@dataclass(frozen=True, eq=False)
class LogTowers:
    """Two towers fitted to a log, a copy per seed. `fit` makes one.

    Attributes:
        model: the towers, as a paper has them.
        setting: what was fitted, and how.
        seeds: of the initial parameters and the order of batches.
        fitted: what each seed has.
        read: the scales of features, and the pairs; of a fit that was not loaded, also the splits.
        task: with the splits of the log; None if the fit was loaded.
        kind: the library of the frames that answers come in.
        log: to which they were fitted; None if the fit was loaded.
    """

    model: Mapping[str, Any]
    setting: Setting
    seeds: tuple[int, ...]
    fitted: list[Fitted]
    read: Divided = field(repr=False)
    task: Task | None = field(default=None, repr=False)
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
        fits = zip(({"seed": seed} for seed in self.seeds), self.fitted, strict=True)
        return native(relative_bias(fits, self.setting), self.kind)

    def parameters(self, part: str) -> Native:
        """The probabilities of a part of the click model that does not depend on what a page shows.

        Args:
            part: such as "examination", "continuation" or, of a mixture, "share_1".

        Returns:
            a frame: seed, position (from 1) and last_click (0 for none), as far as the part has
            them, and estimate.

        Raises:
            InputError: there is no such part, or it depends on documents or on further features.
        """
        model = self.setting.model.of
        if part not in model.parts:
            raise InputError(f"{self!r} has no part {part!r}", expected=nearest(part, model.parts))
        frames = []
        for seed, result in zip(self.seeds, self.fitted, strict=True):
            logits = result.towers.table(part) if result.towers is not None else None
            if logits is None:
                raise InputError(
                    f"{part} depends on what the page shows, or the method has no such part",
                    field="part",
                    expected="a table, or a tower of positions; `predict` has click probabilities",
                )
            values = expit(np.asarray(logits, float))
            kind = (ONCE, PER_POSITION, PER_JUMP)[values.ndim]
            own = places(kind, values.size, pa.table({}))
            frame = pd.DataFrame({"seed": seed, **own, "estimate": values.ravel()})
            if kind == PER_JUMP:
                frame = frame[frame["last_click"] < frame["position"]]
            frames.append(frame)
        return native(pd.concat(frames, ignore_index=True), self.kind)

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
        ids, own, needs = self.read.pairs, self.read.features, self.setting.model.needs
        if features is not None:
            if own is None or "pair" in needs:
                found = "the towers read numbers of pairs" if needs else "the towers read none"
                expected = "None, or towers of features alone"
                raise InputError(found, field="features", expected=expected)
            own = own.of(features)
            ids = own.ids
        named = {} if own is None else {"features": own.values(ids)[None]}
        if own is None or "pair" in needs:
            named["pair"] = np.arange(len(ids))[None]
        inputs = inputs_of(named, {})
        scores = [each.scores(inputs)[0] for each in self.fitted if each.scores]
        if not scores:
            expected = "a model whose parts per document read documents alone"
            raise InputError(f"{self!r} has no relevance", field="model", expected=expected)
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

    def sample(self, log: object, features: object = None, seed: int = 0) -> Native:
        """Clicks that users of the model could have made, by the mean probabilities of all seeds.

        Args:
            log, features: see `predict`.
            seed: of the clicks.

        Returns:
            a frame as `Fit.sample` has it.

        Raises:
            InputError: see `predict`.
        """
        split, pages = self._of_log(log, features)
        assert split.sessions is not None
        where, clicks = pages.where, np.zeros(pages.where.shape, bool)
        chance = stream("sample", seed).random(where.shape)
        for place in range(where.shape[1]):
            # The clicks above are drawn. None is here yet, so these losses are of no click. Losses
            # of a split are remembered, so each place has a split of its own.
            drawn = replace(split, sessions=[replace(split.sessions[0], clicks=clicks)])
            none = [np.exp(-self._losses(each, drawn)[1][:, place]) for each in self.fitted]
            clicks[:, place] = where[:, place] & (chance[:, place] >= np.mean(none, axis=0))
        return native(pd.DataFrame(shown_with(pages, clicks)), self.kind)

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
        for result, measured in zip(self.fitted, self.held_out.to_dict("records"), strict=True):
            gains = {name: measured["log_likelihood"] - rate for name, rate in rates.items()}
            rows.append({"seed": measured["seed"], "fall": fall_at_limit(result) or 0.0, **gains})
        return pd.DataFrame(rows)

    def notes(self) -> Iterator[str]:
        """What to know before the fit is used, line by line. `print(fit)` shows it."""
        if self.task is None:
            return
        if any(each.page_losses is None and each.cell_losses is None for each in self.fitted):
            yield "this method predicts no clicks, so held-out clicks do not say whether it learnt"
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
        yield self.read.how
        yield "position bias here has no interval; `twotowers propensities` has one"

    def save(self, path: str | Path) -> None:
        """Write the fit, all or nothing: a parquet file, which `load` reads.

        It has one row, and a column per array of parameters, such as `seed 0 ['bias']...`. `mean`
        and `scale` are of the features, `bias mean` and `bias scale` of further features of places;
        `query` and `document` name the pairs of a tower with a parameter per pair. The metadata has
        the model, the names of the features, and the number of positions. The features of documents
        are not in it.

        Raises:
            InputError: another ending, no such folder, or the file is the log itself; or the
                towers are no likelihood's, or of a class that is no file of twotowers/towers.
        """
        check_target(path, self.log, ".parquet")
        read, positions = self.read, self.setting.log.positions
        about: dict[str, Any] = {"model": self.model, "positions": positions, "seeds": self.seeds}
        arrays: dict[str, Any] = {}
        if read.features is not None:
            about["features"] = read.features.scales.names
            about["called"] = {name: read.features.called.get(name, name) for name in KEYS}
            arrays |= {"mean": read.features.scales.mean, "scale": read.features.scales.scale}
        if read.bias is not None:
            about["bias"] = read.bias.names
            arrays |= {"bias mean": read.bias.mean, "bias scale": read.bias.scale}
        if "pair" in self.setting.model.needs:
            arrays |= {name: read.pairs[name] for name in KEYS}
        try:
            for seed, result in zip(self.seeds, self.fitted, strict=True):
                named = parameters_of(result.towers, seed).items()
                arrays |= {name: np.ravel(each) for name, each in named}
            known = {TOWERS: json.dumps(about)}
        except (TypeError, ValueError):
            raise InputError(
                f"{self!r} cannot be saved",
                field="model",
                expected="towers of twotowers/towers, fitted by likelihood",
            ) from None
        with atomic(path) as temporary:
            columns = {name: pa.array([np.asarray(each)]) for name, each in arrays.items()}
            pq.write_table(pa.table(columns).replace_schema_metadata(known), temporary)

    def _measured(self, split: Split) -> pd.DataFrame:
        rows = []
        for seed, result in zip(self.seeds, self.fitted, strict=True):
            if split.sessions is not None:
                own = means_of(*self._losses(result, split), split.sessions[0].where)
            else:
                own = measures_of_cells(result, split)
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
        given, needs, own = as_log(log), self.setting.model.needs, self.read.features
        bias = self.read.bias
        names = [] if bias is None else bias.names
        pages = pages_to_predict(
            given, self.setting.model.of, self.setting.log.positions, bias=names
        )
        assert pages.ids is not None  # A log names its documents.
        ids, named = pages.ids.to_pandas(), dict[str, Any]()
        tables: dict[str, Any] = {}
        if own is not None:
            own = own if features is None else own.of(features)
            named["features"], tables["features"] = pages.pair, own.values(ids)
        if "pair" in needs:
            row = rows_of(self.read.pairs, ids)
            if (row < 0).any():
                raise InputError(
                    f"{(row < 0).sum():,} of its query-document pairs are none of the fit's",
                    path=given.source,
                    field="document",
                    expected="pairs of the fit, or a tower that reads features",
                )
            named["pair"] = row[pages.pair]
        if not named:
            named["pair"] = pages.pair
        if bias is not None and pages.bias is not None:
            named["bias"] = bias(pages.bias)
        inputs = inputs_of(named, tables)
        page = np.arange(len(pages.pair))
        place = np.broadcast_to(np.arange(pages.pair.shape[1]), pages.pair.shape)
        sessions = [Sessions(page, place, pages.clicks, pages.where, page)]
        return Split(inputs, pages.where, None, UNCOUNTED, sessions), pages


def parameters_of(towers: Any, seed: int) -> dict[str, Any]:
    """The arrays of parameters, in the order of the state, by the columns of a saved fit."""
    from flax import nnx
    from jax.tree_util import keystr, tree_flatten_with_path  # here: `Fit` needs no JAX

    leaves, _ = tree_flatten_with_path(nnx.state(towers))
    return {f"seed {seed} {keystr(where)}": each for where, each in leaves}


def measures_of_cells(found: Fitted, split: Split) -> dict[str, float]:
    """What `Fit.evaluate` returns, from the losses of counts."""
    assert found.cell_losses is not None  # The likelihood of counts.
    losses = found.cell_losses(split)
    measured = {name: value for name, at, value in perplexities(losses, split.counts, 0) if not at}
    one = measured["mean_perplexity"]
    likelihood = -float(losses.sum() / split.counts.impressions.sum())
    return {"perplexity": one, "conditional": one, "log_likelihood": likelihood}


def likelihood_of_rates(train: Split, test: Split, name: str) -> float:
    """Log-likelihood of held-out clicks by click rates of training, a mean over documents shown.

    "constant" is one rate for all, "ranks" one per position.
    """
    shown, clicked = totals(train, 0, name)
    rate = (clicked + clicked.sum() / shown.sum()) / (shown + 1)
    shown, clicked = totals(test, 0, name, size=len(rate))
    return float((xlogy(clicked, rate) + xlogy(shown - clicked, 1 - rate)).sum() / shown.sum())
