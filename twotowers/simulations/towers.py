"""Two-tower models, and how they are fitted: the objects of a paper's `settings`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from twotowers.errors import InputError, check_range
from twotowers.experiment.fields import read
from twotowers.logs.click_log import Trained
from twotowers.models.mixed import Mixed
from twotowers.models.names import MODELS
from twotowers.models.protocol import ClickModel

if TYPE_CHECKING:
    from twotowers.experiment.log import Log
    from twotowers.experiment.settings import Setting
    from twotowers.files.rankings import Rankings
    from twotowers.methods.task import Fitted, Split
    from twotowers.simulations.clicks import SimulatedClicks

TRAINING = {
    "learning_rate": 0.003, "batch": 32, "steps": 100, "epochs": 50, "patience": 3,
    "min_delta": 1e-5,
}  # fmt: skip
"""How towers are trained by default: AdamW as in Hager et al. (2025), on queries of a stand-in."""


def Tower(kind: str | type, **options: Any) -> dict[str, Any]:
    """A tower with its options; lists may be lanes.

    Args:
        kind: the name of a file in twotowers/towers, or a class of your own.
        options: those of the tower.

    Example:
        >>> Tower("dense", layers=[32, 16], dropout=0.1)
        {'kind': 'dense', 'layers': [32, 16], 'dropout': 0.1}
    """
    return {"kind": kind, **options}


def Dense(layers: Sequence[int], **options: Any) -> dict[str, Any]:
    """A tower of dense layers with the given widths; options are those of `DenseTower`.

    Example:
        >>> Dense([32, 16], activation="relu")
        {'kind': 'dense', 'layers': [32, 16], 'activation': 'relu'}
    """
    return Tower("dense", layers=list(layers), **options)


def Method(kind: str | Callable[..., Any], **options: Any) -> dict[str, Any]:
    """A method with its options; lists may be lanes.

    Args:
        kind: the name of a file in twotowers/methods, or a function of your own. Its module holds
            the constants that a method's file may have, such as `TRAINS` (docs/extending.md).
        options: those of the method. `heads` are auxiliary losses, by name or class, with options.

    Example:
        >>> Method("likelihood", weighting=["none", "ips"])
        {'kind': 'likelihood', 'weighting': ['none', 'ips']}
    """
    return {"kind": kind, **options}


@dataclass(frozen=True)
class TwoTower(Trained):
    """A click model whose parts are towers (docs/settings.md, Model).

    Attributes:
        relevance: the relevance tower: "linear", "deep", "embedding", a class, or `Tower` or
            `Dense`.
        examination: "table" (a parameter per position), "known" (the simulated user's), or a tower
            of positions.
        click_model: how both make a click: "additive", "position_based", ... or a click model or
            its class.
        features: the share of the features that the relevance tower sees, from the first; at least
            one.
        parts: parts of the click model with a tower of their own, such as `{"continuation":
            Tower("linear", reads="both")}`: a tower, perhaps with what it `reads` (documents,
            positions or both), "table", or the part whose tower it shares.
    """

    relevance: str | type | Mapping[str, Any] = "deep"
    examination: str | type | Mapping[str, Any] = "table"
    click_model: str | type[ClickModel] | ClickModel = "additive"
    features: float = 1.0
    parts: Mapping[str, Any] = field(default_factory=dict)

    def settled(self) -> dict[str, Any]:
        """The model as a paper has it."""
        model: Any = self.click_model
        if isinstance(model, str):
            model = Mixed(model.split("+")) if "+" in model else MODELS.get(model, model)
        given = isinstance(model, ClickModel)
        own = {"kind": type(model), **asdict(model)} if given else {"kind": model}
        return {
            **own, "tower": self.relevance, "examination": self.examination,
            "features": self.features, "parts": self.parts,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class TowerFit:
    """Two towers fitted to simulated clicks, a copy for each lane and seed.

    Attributes:
        setting: what was fitted, and how.
        lanes: the values of each lane's columns.
        seeds: of the fits.
        fitted: per seed what the method found of each lane.
        test: the log's test queries.
    """

    setting: Setting
    lanes: list[dict[str, Any]]
    seeds: tuple[int, ...]
    fitted: list[list[Fitted]] = field(repr=False)
    test: Split = field(repr=False)

    def __repr__(self) -> str:
        model, method = self.setting.model, self.setting.method.name
        lanes = f"{len(self.lanes)} lane{'s' if len(self.lanes) > 1 else ''}"
        return f"<{model.tower.name} tower, {model.kind}, by {method}: {lanes}, seeds {self.seeds}>"

    def examination(self) -> pd.DataFrame:
        """Estimated position bias of each lane and seed, relative to position 1.

        Returns:
            the lane columns, seed, position (from 1), and estimate: a difference of log-odds for
            the additive model, of logarithms of probabilities for products. It is NaN at positions
            that training does not show.

        Raises:
            InputError: the method estimates no position bias.
        """
        rows = (({**lane, "seed": seed}, result) for seed, lane, result in self._each())
        return relative_bias(rows, self.setting)

    def evaluate(self, lists: Rankings | None = None) -> pd.DataFrame:
        """How well each lane and seed ranks documents by their labels.

        Documents of equal scores count by expectation. So a tower that scores all alike ranks as
        chance does, however the lists are sorted.

        Args:
            lists: such as `rankings.validation`; the log's test queries if None.

        Returns:
            the lane columns, seed, and means over queries of ndcg@5, ndcg@10, mrr@10 and arp (the
            average relevant position; lower is better).

        Raises:
            InputError: the towers read numbers of pairs, so they know no other documents; or a
                score is not finite.
        """
        from twotowers.claims.metrics import arp, mrr, ndcg

        if lists is None:
            inputs, where, labels = self.test.inputs, self.test.where, self.test.relevance
        else:
            inputs, where = self._read(lists)
            labels, _ = lists.padded(lists.label)
        metrics: dict[str, Callable[..., np.ndarray]] = {
            "ndcg@5": partial(ndcg, topn=5),
            "ndcg@10": ndcg,
            "mrr@10": mrr,
            "arp": arp,
        }
        assert labels is not None  # Simulated users know relevance.
        rows: list[dict[str, Any]] = []
        for seed, lane, result in self._each():
            assert result.scores is not None  # Towers score any document.
            scores, columns = np.asarray(result.scores(inputs)), {**lane, "seed": seed}
            if not np.isfinite(scores[where]).all():
                of = ", ".join(f"{name} {value}" for name, value in columns.items())
                raise InputError(
                    f"the tower of {of} has scores that are not finite",
                    field="training",
                    expected="a fit that succeeded: perhaps with a lower learning_rate",
                )
            means = {
                name: float(metric(scores, labels, where=where).mean())
                for name, metric in metrics.items()
            }
            rows.append({**columns, **means})
        return pd.DataFrame(rows)

    def _read(self, lists: Rankings) -> tuple[np.ndarray, np.ndarray]:
        """What the towers read of each list's documents, and where there are any."""
        from twotowers.experiment.log import tower_inputs

        model = self.setting.model
        if model.by_pair:
            raise InputError(
                f"a tower {model.tower.name!r} knows the pairs of its log only",
                field="tower",
                expected="a tower of features, or no lists: those of the log",
            )
        (where,) = lists.padded()
        inputs = tower_inputs(lists, where, model.features)
        if inputs.shape[-1] != (width := self.test.inputs.shape[-1]):
            raise InputError(
                f"of their {lists.features.shape[1]} features the tower would read "
                f"{inputs.shape[-1]}, and was fitted to {width}",
                field="lists",
                expected="lists with the features of the simulated clicks",
            )
        return inputs, where

    def _each(self) -> Iterator[tuple[int, dict[str, Any], Fitted]]:
        for seed, of_lanes in zip(self.seeds, self.fitted, strict=True):
            for lane, result in zip(self.lanes, of_lanes, strict=True):
                yield seed, lane, result


def relative_bias(
    fits: Iterable[tuple[Mapping[str, Any], Fitted]], setting: Setting
) -> pd.DataFrame:
    """Position bias of fits relative to position 1: columns of each fit, position and estimate."""
    parts = []
    for columns, result in fits:
        if result.bias is None:
            raise InputError(
                f"a {setting.model.kind} model by {setting.method.name} estimates no position bias",
                field="model",
                expected="a model and a method with a bias that depends on the position alone",
            )
        bias = np.asarray(result.bias) - result.bias[0]
        position = np.arange(1, len(bias) + 1)
        parts.append(pd.DataFrame({**columns, "position": position, "estimate": bias}))
    return pd.concat(parts, ignore_index=True)


def fit_towers(
    clicks: SimulatedClicks,
    model: TwoTower,
    *,
    method: str | Callable[..., Any] | Mapping[str, Any] = "likelihood",
    training: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
) -> TowerFit:
    """Fit two towers to simulated clicks, once per seed.

    Args:
        clicks: from `simulate`.
        model: the towers.
        method: a name, a function, or `Method`.
        training: what differs from `TRAINING` (docs/settings.md, Training).
        seeds: of the initial parameters and the order of batches.

    Raises:
        InputError: an argument is unknown or out of range, or log, model and method do not fit
            together.
    """
    from twotowers.jobs.fit import fit_lanes

    setting = setting_of(clicks.settings, model.settled(), method, {**TRAINING, **(training or {})})
    lanes: list[dict[str, Any]] = []
    fitted: list[list[Fitted]] = []
    seeds = checked_seeds(seeds)
    for seed in seeds:
        task, results = fit_lanes(clicks.files, setting, seed=seed)
        lanes = [{**task.logs[number], **values} for number, values in task.lanes]
        fitted.append(results)
    return TowerFit(setting, lanes, seeds, fitted, task.splits["test"])


def setting_of(
    log: Log, model: Mapping[str, Any], method: Any, training: Mapping[str, Any]
) -> Setting:
    """What is fitted to which log, and how, as a paper has it; InputError if it is not possible."""
    try:
        from twotowers.experiment.settings import Setting
        from twotowers.jobs import fit as _  # noqa: F401  # JAX may not be installed.
    except ModuleNotFoundError as error:
        raise InputError(
            f"{error.name} is not installed",
            field="model",
            expected="pip install '.[jax]', in a clone of the project",
        ) from error
    given = {"name": "fit", "log": log, "model": model, "method": method, "training": training}
    return read(Setting, given)


def checked_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """Seeds of a user; InputError if one is out of range, or there is none."""
    if not isinstance(seeds, Iterable) or not (seeds := list(seeds)):
        expected = "a list of seeds, one or more, such as [0, 1]"
        raise InputError(f"{seeds!r} was given", field="seeds", expected=expected)
    for seed in seeds:
        check_range(seed, field="seeds", low=0, high=2**31 - 1, whole=True)
    return tuple(seeds)
