"""Studies: what is no fit of a log."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field, ValidationInfo, model_validator

from twotowers.experiment.components import Component, find
from twotowers.experiment.fields import Config, Seeds, config_error, read
from twotowers.experiment.simulated import check_ranker
from twotowers.root import ROOT


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
    ranker: str | None = None
    """The ranker of the documents. It is trained once, on annotated labels."""
    seeds: Seeds | None = None
    """Its own seeds, if chance plays no part or the study repeats its draws itself."""

    @model_validator(mode="after")
    def _has_module(self, info: ValidationInfo) -> Study:
        context = info.context or {}
        if self.ranker is not None:
            if not self.dataset:
                raise config_error("'dataset' is missing", "the data set that the ranker sorts")
            check_ranker(self.ranker, info)
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
