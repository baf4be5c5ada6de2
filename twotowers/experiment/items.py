"""The studies of a paper, which fit no log, and its items: tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, WithJsonSchema, model_validator

from twotowers.errors import nearest
from twotowers.experiment.components import MADE_BY, Component, find
from twotowers.experiment.fields import (
    Config,
    Distinct,
    Listed,
    Scale,
    Seeds,
    below,
    config_error,
    read,
)
from twotowers.experiment.parts import find_in, with_kind
from twotowers.experiment.simulated import RankerName
from twotowers.root import ROOT

COLUMNS = ("setting", "model", "method", "components", "seed", "metric", "position", "epoch")
"""Columns of fits, besides lanes, by which a drawing may choose rows."""


class Study(Config):
    """An experiment that fits no log: a module of the paper's studies/, called once per seed."""

    model_config = ConfigDict(extra="allow")

    study: str = Field("", exclude=True)
    """Its name in the paper."""
    module: str | None = None
    """The module, if several studies share one; the study's name if absent."""
    dataset: str | None = None
    """The data set that it reads: rankings or a click log."""
    raw: bool = False
    """Whether it reads the data set before it is prepared; of a log, its pages and annotations."""
    ranker: RankerName | None = None
    """The ranker of the documents. It is trained once, on annotated labels."""
    seeds: Seeds | None = None
    """Its own seeds, if chance plays no part or the study repeats its draws itself."""

    @model_validator(mode="after")
    def _has_module(self, info: ValidationInfo) -> Study:
        context = info.context or {}
        if self.ranker is not None and not self.dataset:
            raise config_error("'dataset' is missing", "the data set that the ranker sorts")
        if "paper" in context:
            own = self.kind(context["paper"], context.get("root", ROOT))
            read(own.options, self.parameters)
        return self

    def kind(self, paper: str, root: Any = ROOT) -> Component:
        """The study's module and function."""
        return find("studies", self.module or self.study, paper, root)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of its module."""
        return dict(self.model_extra or {})


class Item(Config):
    """A table or figure as printed."""

    name: str = Field("", exclude=True)
    """Its name in the paper."""
    title: str
    """Heading."""
    kind: Literal["figure", "table"]
    """What it is."""
    draw: Annotated[
        dict[str, Any], Field(default={}), WithJsonSchema({"type": ["string", "object"]})
    ]
    """How it is drawn: a drawing of twotowers/report/drawings/ or of the paper's items/, and its
    parameters; the paper's own of the item's name if absent."""
    needs: Annotated[Listed[str], Field(min_length=1)]
    """Settings and studies that it is drawn from."""
    caption: str
    """What is shown."""
    compared: str | None = None
    """How it differs from print at scale laptop, and why; or that it does not."""
    expected: str
    """What the reader should see."""
    scales: Distinct[Scale] | None = None
    """Scales at which it is made, and what it alone needs; all if absent. A run makes
    it at any scale if its `only` or `also` names it."""
    highlight: dict[str, list] | None = None
    """Rows of its csv that the page compares with the published ones, as column and values."""

    @model_validator(mode="before")
    @classmethod
    def _drawing(cls, given: Any, info: ValidationInfo) -> Any:
        """An item that names no drawing has the drawing of its own name. A parameter `needs` gets
        what the item needs."""
        if not isinstance(given, Mapping) or "needs" not in given:
            return given
        with below("draw"):
            drawing = with_kind(given.get("draw", given.get("name")))
            kind = find_in("drawings", drawing["kind"], info)
        if "needs" in kind.options.model_fields and "needs" not in drawing:
            drawing = {"needs": list(given["needs"]), **drawing}
        return {**given, "draw": drawing}

    @model_validator(mode="after")
    def _possible(self, info: ValidationInfo) -> Item:
        kind, parameters = find_in("drawings", self.draw["kind"], info), self.parameters
        context = info.context or {}
        declared = [context[section] for section in ("settings", "studies") if section in context]
        if len(declared) == 2:  # Otherwise they have errors of their own, or are not known.
            known = [name for section in declared for name in section]
            for need in self.needs:
                if need not in known:
                    raise config_error(f"{need!r} is not declared", nearest(need, known), "needs")
        with below("draw"):
            read(kind.options, parameters)
        for setting in [*parameters.get("settings", []), *_grouped(parameters)]:
            if setting not in self.needs:
                raise config_error(
                    f"the item draws {setting!r} and does not need it",
                    nearest(str(setting), self.needs),
                    "draw",
                )
        if kind.holds is not getattr(kind.module, MADE_BY[self.kind], None):
            raise config_error(
                f"{kind.name!r} cannot draw a {self.kind}",
                f"a drawing with {MADE_BY[self.kind]!r}, or another kind of item",
                "draw",
            )
        self._check_columns(context.get("settings", {}))
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of its drawing."""
        return {name: value for name, value in self.draw.items() if name != "kind"}

    def drawing(self, paper: str, root: Any = ROOT) -> Component:
        """Its drawing."""
        return find("drawings", self.draw["kind"], paper, root)

    def without(self, absent: Iterable[str]) -> Item:
        """The item without some settings, also in its drawing."""
        absent = set(absent)
        if absent.isdisjoint(self.needs):
            return self
        draw = dict(self.draw)
        for key in draw.keys() & {"needs", "settings"}:
            kept = [name for name in draw[key] if name not in absent]
            titles = draw[key] if isinstance(draw[key], Mapping) else None
            draw[key] = {name: titles[name] for name in kept} if titles else kept
        needs = tuple(name for name in self.needs if name not in absent)
        return self.model_copy(update={"needs": needs, "draw": draw})

    def _check_columns(self, settings: Mapping[str, Any]) -> None:
        """Refuse a column that the results do not have. Those of a study are not known."""
        if not settings.keys() >= set(self.needs):
            return
        lanes = [part for need in self.needs for part in settings[need].lanes.values()]
        known = {*COLUMNS, *(column for part in lanes for column in part)}
        named = [(column, "where") for column in self.parameters.get("where") or {}]
        named += [(self.draw[key], key) for key in ("along", "curves") if key in self.draw]
        for column, key in named:
            if column not in known:
                raise config_error(
                    f"there is no column {column!r}", nearest(str(column), known), f"draw.{key}"
                )


def _grouped(parameters: Mapping) -> Iterator[str]:
    """The settings of a drawing's groups: panels with curves, or lines with dots."""
    for key in ("panels", "groups"):
        for group in parameters.get(key, {}).values():
            for place in group.values():
                yield place["setting"] if isinstance(place, Mapping) else place
