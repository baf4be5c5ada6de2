"""How towers and rankers are trained."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from twotowers.experiment.fields import Above0, Config, NotNegative, Positive
from twotowers.fitting.optimizers import check_decay, checked_optimizer, checked_schedule
from twotowers.towers.lane import Lanes, lanes_of, values_of


class _Descent(Config):
    batch: Positive
    """Queries per step."""
    steps: Positive | None = None
    """Steps per epoch; if absent, an epoch is one pass over the queries that the lane's own log
    has."""
    epochs: Positive
    """Most epochs."""
    patience: Positive
    """Epochs without improvement before stopping."""
    min_delta: NotNegative
    """Smallest decrease that is an improvement."""


class Training(_Descent):
    """How to train; see `twotowers.fitting.gradient.FitSettings`."""

    optimizer: Annotated[
        Any, AfterValidator(checked_optimizer), WithJsonSchema({"type": "string"})
    ] = "adamw"
    """An optimiser of Optax; in Python also a function of a learning rate that returns one."""
    learning_rate: Lanes[Above0]
    """Of the optimiser. A list is lanes."""
    weight_decay: Lanes[NotNegative] | None = None
    """Of the optimiser, if it has one; Optax's own if absent. A list is lanes."""
    schedule: Annotated[dict[str, str | int | float], AfterValidator(checked_schedule)] | None = (
        None
    )
    """A schedule of Optax that the learning rate is multiplied by, such as `{kind:
    cosine_decay_schedule, decay_steps: 2000}`. It starts at 1. A constant if absent."""
    averaged: bool = False
    """Whether parameters are averaged over about an epoch's steps."""

    @model_validator(mode="after")
    def _possible(self) -> Training:
        for decay in values_of(self.weight_decay):
            check_decay(self.optimizer, decay)
        return self

    @property
    def lanes(self) -> dict[str, list]:
        """The values of each number that is lanes."""
        return lanes_of({"learning_rate": self.learning_rate, "weight_decay": self.weight_decay})

    def arguments(self) -> dict[str, Any]:
        """The arguments of `FitSettings`. Of lanes, the first is a placeholder."""
        given = {name: values_of(value)[0] for name, value in self if value is not None}
        if self.schedule:
            given["schedule"] = tuple(self.schedule.items())
        return given


class TowerRanker(_Descent):
    """A tower of the features of a document, trained on labels by AdamW."""

    kind: Literal["linear", "deep"]
    """The tower of `twotowers.towers` with this name."""
    learning_rate: Above0
    """Of the optimiser."""


class LambdaMART(Config):
    """Boosted trees that optimise nDCG; see `twotowers.rankers.trees`."""

    kind: Literal["lambdamart"]
    """The trees."""
    queries: Positive
    """How many of the training queries have labels, drawn anew for each seed."""
    trees: Positive = 100
    """Number of trees."""
    leaves: Annotated[int, Field(ge=2)] = 31
    """Leaves of a tree at most."""
    learning_rate: Above0 = 0.1
    """Of each tree."""


class SVM(Config):
    """A linear pairwise SVM; see `twotowers.rankers.training`."""

    kind: Literal["svm"]
    """The machine."""
    share: Annotated[float, Field(gt=0, le=1)]
    """Share of the training queries."""
    cost: Above0
    """Cost of a wrong pair, for all queries together."""


Ranker = Annotated[TowerRanker | LambdaMART | SVM, Field(discriminator="kind")]
"""Training of a logging policy's ranker."""
