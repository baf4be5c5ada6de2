"""Logs of given lists, each of which is shown as often, with repairs as lanes.

Clicks are counts per place. Documents keep their number on every list. A repair merges bias factors
into one, or adds lists in which two documents have changed places (Chen et al. 2024, Section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import Field, Strict, model_validator

from twotowers.experiment.fields import Config, Listed, Positive, config_error
from twotowers.experiment.list_files import read_lists, write_lists
from twotowers.experiment.log import Columns, Log
from twotowers.experiment.parts import User, UserField
from twotowers.methods.task import Split
from twotowers.models.protocol import ClickModel
from twotowers.towers.lane import Lanes, values_of

NEAREST = "nearest"
"""What a repair merges, besides listed pairs."""

Pair = Annotated[tuple[Positive, Positive], Strict(False)]
"""Two positions, from 1."""


class Repair(Config):
    """What makes a log better identified; {} for nothing."""

    merge: Literal["nearest"] | Listed[Pair] | None = None
    """Positions that count as one bias factor: pairs, or `nearest`, the pairs that connect the
    graph at least cost."""
    empty: Literal[True] | None = None
    """Of lists that a ranker sorts, with `merge`: whether the places behind the end of short
    lists count as displays of one document."""
    swap: Literal["cheapest", "random"] | None = None
    """How lists are chosen that are shown again with two documents swapped, until the graph is
    connected."""
    split: Literal[True] | None = None
    """Of drawn lists: whether every place of every list has a bias factor of its own. This undoes
    what repairs do: only places that show the same document stay connected."""

    @model_validator(mode="after")
    def _one_repair(self) -> Repair:
        if self.empty and self.merge is None:
            raise config_error("'empty' alone is no repair", "'empty' with 'merge'")
        if sum(each is not None for each in (self.merge, self.swap, self.split)) > 1:
            raise config_error("two repairs at once", "one of 'merge', 'swap' and 'split'")
        return self


class GivenLists(Log):
    """Lists that users see again and again."""

    origin: Literal["lists"] = Field("lists", alias="from")
    """Where clicks come from: a simulation on given lists."""
    user: UserField
    """The user: a click model of twotowers/models/ or of the paper's models/, and its constants."""
    views: Lanes[Positive]
    """How often each list is shown."""
    repairs: dict[str, Repair] = Field(min_length=1)
    """Lanes by name (column `repair`), each with what makes its log better identified."""

    @model_validator(mode="after")
    def _one_user(self) -> GivenLists:
        user: User = self.user
        for name, values in user.lanes.items():
            raise config_error(f"{name!r} is {values!r}", "one value", "user")
        for model in user.models:
            if model.has("PAGES"):
                wrong = f"user {model.name!r} needs the clicks of whole pages"
                raise config_error(wrong, "a log with 'record: sessions'", "user")
        return self

    @property
    def lanes(self) -> dict[str, list]:
        return {
            "repair": list(self.repairs),
            "views": [float(views) for views in values_of(self.views)],
        }

    def has_factors(self, lanes: Mapping[str, Sequence]) -> bool:
        repairs = [self.repairs[name] for name in lanes["repair"]]
        return any(repair.merge is not None or repair.split for repair in repairs)

    def users(self, lanes: Sequence[Mapping]) -> list[ClickModel]:
        return [self.user.of(lane) for lane in lanes]

    def simulate(self, inputs: Mapping[str, str], output: str | Path, *, seed: int) -> None:
        write_lists(output, self.draw(inputs, seed=seed))

    def draw(self, inputs: Mapping[str, str], *, seed: int) -> Iterable[pa.Table]:
        """Yield the rows of each lane, a row per place. Repairs share the clicks on given lists."""
        raise NotImplementedError

    def splits(
        self, inputs: Mapping[str, str], lanes: Sequence[Mapping], *, seed: int, features: Columns
    ) -> dict[str, Split]:
        return read_lists(inputs["clicks"], lanes)
