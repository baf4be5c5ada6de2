"""Logs of given lists, each of which is shown as often, with repairs as lanes.

Clicks are counts per place. Documents keep their number on every list. A repair merges bias factors
into one, or adds lists in which two documents have changed places (Chen et al. 2024, Section 4).
As a file, a log has a row per place of a list, lane after lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, model_validator

from twotowers.experiment.fields import Positive, config_error
from twotowers.experiment.log import Files, Log, need_pages
from twotowers.experiment.parts import User, UserField
from twotowers.files.artefacts import atomic
from twotowers.files.tables import read_table
from twotowers.logs.cells import Lane
from twotowers.logs.counts import Counts
from twotowers.methods.task import Split
from twotowers.models.protocol import ClickModel
from twotowers.splits import SPLITS
from twotowers.towers.lane import Lanes, values_of

NEAREST = "nearest"
"""What a repair merges, besides listed pairs: those that connect the graph at least cost."""
TYPES = {
    "query": pa.int64(),
    "given": pa.bool_(),
    "document": pa.int64(),
    "position": pa.int32(),
    "factor": pa.int32(),
    "relevance": pa.float32(),
    "impressions": pa.int64(),
    "clicks": pa.int64(),
}
"""The columns of a file, besides those of its lanes. A list is given unless a repair added it."""


class GivenLists(Log):
    """Lists that users see again and again."""

    origin: Literal["lists"] = Field("lists", alias="from")
    """A simulation on given lists."""
    user: UserField
    """The user: a click model of twotowers/models/ or of the paper's models/, and its constants."""
    views: Lanes[Positive]
    """How often each list is shown."""
    repairs: dict[str, Any]
    """Lanes by name (column `repair`), each with a repair."""

    @model_validator(mode="after")
    def _one_user(self) -> GivenLists:
        user: User = self.user
        for name, values in user.lanes.items():
            raise config_error(f"{name!r} is {values!r}", "one value", "user")
        for model in user.models:
            if model.has("PAGES"):
                need_pages(self, f"user {model.name!r}", "user")
        return self

    @property
    def lanes(self) -> dict[str, list]:
        return {
            "repair": list(self.repairs),
            "views": [float(views) for views in values_of(self.views)],
        }

    def fit_inputs(self, files: Files, seed: int, setting: Any) -> dict[str, str]:
        return {"clicks": self.clicks(files, seed)}

    def users(self, lanes: Sequence[Mapping]) -> list[ClickModel]:
        return [self.user.of(lane) for lane in lanes]

    def simulate(self, inputs: Mapping[str, str], output: str | Path, *, seed: int) -> None:
        with atomic(output) as temporary:
            lanes = pa.concat_tables(self.draw(inputs, seed=seed))
            pq.write_table(lanes, temporary, compression="zstd")

    def draw(self, inputs: Mapping[str, str], *, seed: int) -> Iterable[pa.Table]:
        """Yield the rows of each lane, a row per place. Repairs share the clicks on given lists."""
        raise NotImplementedError

    def splits(
        self, inputs: Mapping[str, str], lanes: Sequence[Mapping], *, seed: int, setting: Any
    ) -> dict[str, Split]:
        return read_lists(inputs["clicks"], lanes)


def lane_table(lane: Lane, columns: Mapping[str, np.ndarray]) -> pa.Table:
    """The rows of one lane, from [rows] values of `TYPES`."""
    columns = {name: pa.array(columns[name], kind) for name, kind in TYPES.items()}
    rows = len(columns["query"])
    return pa.table({name: pa.repeat(value, rows) for name, value in lane.items()} | columns)


def read_lists(path: str | Path, lanes: Sequence[Lane]) -> dict[str, Split]:
    """The splits of some lanes: all lists to train on, and those given to measure on."""
    names = [pa.string() if isinstance(value, str) else pa.float64() for value in lanes[0].values()]
    table = read_table(path, dict(zip(lanes[0], names, strict=True)) | TYPES).to_pandas()
    parts = [
        table[np.logical_and.reduce([table[name] == value for name, value in lane.items()])]
        for lane in lanes
    ]
    shown = np.unique(np.concatenate([part["query"] for part in parts]))
    shape = len(shown), int(table["position"].max())
    inputs, relevance = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    where, given = np.zeros(shape, bool), np.zeros(len(shown), bool)
    impressions, clicks = (np.zeros((len(lanes), *shape), np.int64) for _ in range(2))
    position = np.broadcast_to(np.arange(shape[1]), impressions.shape)
    factors = position.copy()
    for lane, part in enumerate(parts):
        at = np.searchsorted(shown, part["query"]), part["position"] - 1
        inputs[at], relevance[at], where[at] = part["document"], part["relevance"], True
        given[at[0]] = part["given"]
        for values, name in (factors, "factor"), (impressions, "impressions"), (clicks, "clicks"):
            values[lane][at] = part[name]

    def split(lists: np.ndarray) -> Split:
        columns = (each[:, lists] for each in (impressions, clicks, position, position))
        return Split(
            inputs[lists],
            where[lists],
            relevance[lists],
            Counts(*columns),
            factors=factors[:, lists],
        )

    parts_of = dict.fromkeys(SPLITS, given) | {"train": np.full(len(shown), True)}
    return {name: split(lists) for name, lists in parts_of.items()}
