"""The base of all logs: what a setting may ask of any of them.

There is a class for each way to come by clicks: `SimulatedLog`, `ObservedLog`, `DrawnLists` and
`RankedLists`. Each owns what depends on its kind: its inputs, how it is simulated or read, how it
is divided, and what it can tell. No other place asks what kind a log is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field

from twotowers.errors import InputError
from twotowers.experiment.fields import Config, Positive, config_error
from twotowers.files.rankings import Rankings, pad
from twotowers.logs.described import Gathered
from twotowers.logs.observed_pages import ObservedPages
from twotowers.methods.task import Split
from twotowers.models.protocol import ClickModel

if TYPE_CHECKING:
    from twotowers.experiment.config import DataSet

Columns = float | Sequence[int] | None
"""Features that a tower reads: a share of them, counted from the first, and at least one feature.
Or the numbers of the first and the last, from 1, where -1 is the last of all. None if the tower
reads numbers of query-document pairs instead."""


def chosen(features: float | Sequence[int], width: int) -> slice:
    """Which of `width` features a tower reads. A share of them is at least one."""
    if not isinstance(features, Sequence):
        return slice(0, max(round(features * width), 1))
    first, last = features
    if not 1 <= first <= width or not (last == -1 or first <= last <= width):
        raise InputError(
            f"{list(features)}",
            field="model.features",
            expected=f"the first and the last of {width} features, from 1",
        )
    return slice(first - 1, width if last == -1 else last)


def tower_inputs(lists: Rankings, where: np.ndarray, features: Columns) -> np.ndarray:
    """The input of the relevance tower: pair numbers, or the features that it reads."""
    if features is None:
        return np.arange(where.size, dtype=np.int32).reshape(where.shape)
    read = lists.features[:, chosen(features, lists.features.shape[1])]
    return pad(read, lists.offsets, where.shape[1])


@dataclass(frozen=True)
class Files:
    """A function from the kind and the names of a paper's artefact to its path, and the data sets
    of the run."""

    path: Callable[..., str]
    datasets: Mapping[str, DataSet]


class Log(Config):
    """A click log."""

    SIMULATED: ClassVar[bool] = True
    """Whether it has simulated users, whose truth is known."""
    RANKED: ClassVar[bool] = False
    """Whether a ranker sorted lists that are given, whose places have context types."""
    has_pages: ClassVar[Any] = False
    """Whether it keeps what shared a page."""
    has_gaps: ClassVar[Any] = False
    """Whether a page may show no document at a position above others."""
    has_features: ClassVar[Any] = False
    """Whether towers may read features of its documents."""
    same_queries: ClassVar[Any] = True
    """Whether all splits ask the same queries, so that pairs recur."""

    name: str = Field("", exclude=True)
    """Its name in the paper."""
    positions: Positive = 10
    """Positions on a page, instead of the paper's."""

    @property
    def lanes(self) -> dict[str, list]:
        """The values of each lane column."""
        return {}

    @property
    def datasets(self) -> list[str]:
        """The data sets that it stands on; none if it is all simulated."""
        return []

    def has_factors(self, lanes: Mapping[str, Sequence]) -> bool:
        """Whether the chosen lanes have bias factors that are not positions."""
        return False

    def users(self, lanes: Sequence[Mapping]) -> list[ClickModel] | None:
        """The user of each lane; None if nobody knows them."""
        return None

    def labels(self) -> dict[str, Any]:
        """Further columns of the results of its fits."""
        return {}

    def ranking(self, seed: int) -> dict[str, Any] | None:
        """The policy that its clicks need: relevance, ranker and seed; None if nobody ranked."""
        return None

    def clicks_inputs(self, files: Files, seed: int) -> dict[str, str] | None:
        """What its clicks are simulated from; None if they are observed."""
        return None

    def fit_inputs(self, files: Files, seed: int, setting: Any) -> dict[str, str]:
        """The files that a fit of a setting reads."""
        raise NotImplementedError

    def clicks(self, files: Files, seed: int) -> str:
        """Where its simulated clicks are."""
        dataset = self.datasets[0] if self.datasets else "lists"
        return files.path("clicks", dataset=dataset, log=self.name, seed=seed)

    def simulate(self, inputs: Mapping[str, str], output: str | Path, *, seed: int) -> None:
        """Draw the clicks of all lanes, from `clicks_inputs`, and write them."""
        raise NotImplementedError

    def splits(
        self, inputs: Mapping[str, str], lanes: Sequence[Mapping], *, seed: int, setting: Any
    ) -> dict[str, Split]:
        """Train, validation and test split of some lanes, from `fit_inputs`.

        The seed divides an observed log; the setting says what its towers read.
        """
        raise NotImplementedError

    def settled(self, setting: Any) -> Any:
        """A setting of this log, with what follows from model, method and log."""
        return setting

    def steps(self, splits: Mapping[str, Split], batch: int) -> int | None:
        """Steps of an epoch, if training does not say it; None for a pass over each lane's log."""
        return None


def need_pages(log: Log, what: str, at: str = "") -> None:
    """Refuse what needs to know which clicks shared a page, where a log does not keep it."""
    if not log.has_pages:
        raise config_error(
            f"{what} needs the clicks of whole pages", "a log with 'record: sessions'", at
        )


def splits_of(pages: ObservedPages, inputs: np.ndarray | Gathered) -> dict[str, Split]:
    """The splits of divided pages, with the relevance tower's inputs for each ranking."""
    return {
        split: Split(
            inputs,
            pages.where,
            None,
            pages.counts(split),
            sessions=[sessions],
            pair=pages.pair,
            query=pages.query,
        )
        for split, sessions in pages.sessions.items()
    }
