"""Settings: what is fitted to which log, and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    ValidationInfo,
    model_validator,
)

from twotowers.errors import InputError, check_range, nearest
from twotowers.experiment.any_log import AnyLog
from twotowers.experiment.fields import (
    Distinct,
    Positive,
    Seeds,
    Settled,
    as_tuple,
    named,
    refused,
    repeats,
    values_of,
)
from twotowers.experiment.kinds import Kind, find
from twotowers.experiment.log import Columns, need_pages
from twotowers.experiment.parts import (
    KIND_OR_OPTIONS,
    TABLE,
    Examination,
    ExaminationField,
    Part,
    Tower,
    read_part,
    with_kind,
)
from twotowers.experiment.training import Training
from twotowers.models.protocol import PER_POSITION, ClickModel
from twotowers.root import ROOT
from twotowers.towers.lane import Lane


def _tower(given: Any, info: ValidationInfo) -> Any:
    """A tower that the paper declares, for its name."""
    declared = (info.context or {}).get("towers", {})
    return declared.get(given, given) if isinstance(given, str) else given


class Model(Settled):
    """A click model, its constants, and the towers of its parts."""

    model_config = ConfigDict(extra="allow")

    kind: str = "additive"
    """A click model of twotowers/models/ or of the paper's models/."""
    tower: Annotated[Tower, BeforeValidator(_tower)]
    """The relevance tower: linear, deep (2 x 32 ELU), embedding, dense, or one of `towers`."""
    features: (
        Annotated[float, Field(gt=0, le=1)] | Annotated[tuple[int, int], BeforeValidator(as_tuple)]
    ) = 1.0
    """Share of the features that the tower sees, from the first; or the first and the last of them,
    from 1, where -1 is the last of all."""
    examination: ExaminationField = Field(Examination(), json_schema_extra={"default": TABLE})
    """The examination part: a `table` with a parameter per position, a tower of positions (and of
    the log's `bias`), or `known`, the simulated user's. Its `dropout` is of the part's logits."""
    click_model: Any = Field(None, exclude=True)
    """The click model itself."""

    @model_validator(mode="before")
    @classmethod
    def _with_constants(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, Mapping):
            return given
        known = cls.model_fields.keys() - {"click_model"}
        constants = {key: given[key] for key in given if key not in known}
        context = info.context or {}
        where = context.get("paper"), context.get("root", ROOT)
        kind = find("models", given.get("kind", "additive"), *where)
        for key, value in constants.items():
            if isinstance(value, list):
                raise refused(
                    f"{key!r} of a fitted model cannot differ between lanes",
                    "one value; a setting of its own for each other value",
                )
        kind.check(constants)
        for key, value in constants.items():
            check_range(value, field=key, low=-1e9, high=1e9)
        named = {"kind": kind.name} if "kind" in given else {}
        return {**given, **named, "click_model": (kind, kind.holds(**constants))}

    @property
    def of(self) -> ClickModel:
        """The click model."""
        return self.click_model[1]

    @property
    def kind_of(self) -> Kind:
        """The click model's kind."""
        return self.click_model[0]

    @property
    def by_pair(self) -> bool:
        """Whether the relevance tower reads numbers of query-document pairs."""
        return self.tower.kind.by_pair

    @property
    def read(self) -> Columns:
        """The features that the relevance tower reads."""
        return None if self.by_pair else self.features


class Method(Settled):
    """What is optimised, and how: a method with its options."""

    part: InstanceOf[Part]
    """The method."""
    heads: dict[str, InstanceOf[Part]] = Field(default={})
    """Auxiliary losses, added while training."""

    @property
    def kind(self) -> Kind:
        """The method's kind."""
        return self.part.kind

    @property
    def lanes(self) -> dict[str, list]:
        """The values of all parameters that may be lanes: a column each, also for one value."""
        kind, given = self.kind, self.part.options
        return {
            name: values_of(given.get(name, kind.parameters[name]))
            for name in kind.parameters
            if name in kind.lanes
        }

    def arguments(self) -> dict[str, Any]:
        """Its arguments. Those that may be lanes are."""
        lanes = {name: Lane(name, tuple(values)) for name, values in self.lanes.items()}
        heads = [head.builder(name) for name, head in self.heads.items()]
        return {**self.part.options, **lanes, **({"heads": heads} if heads else {})}

    def plain(self) -> str | dict[str, Any]:
        """The method as YAML has it."""
        heads = {name: _without_kind(head.plain()) for name, head in self.heads.items()}
        said = with_kind(self.part.plain())
        return said | {"heads": heads} if heads else said


def _without_kind(plain: str | Mapping) -> dict[str, Any]:
    return {name: value for name, value in with_kind(plain).items() if name != "kind"}


def _read_method(given: Any, info: ValidationInfo) -> Method:
    if isinstance(given, Method):
        return given
    options = dict(given) if isinstance(given, Mapping) else given
    heads = options.pop("heads", None) or {} if isinstance(options, Mapping) else {}
    if not isinstance(heads, Mapping):
        raise refused(f"{heads!r} is not allowed", "heads with their options", "heads")
    method = read_part("methods")(options, info)
    if heads and "heads" not in method.kind.parameters:
        raise refused(f"{method.name!r} has no parameter 'heads'", "none")
    found = {}
    for name, said in heads.items():
        if not isinstance(said, Mapping | None):
            raise refused(f"{said!r} is not allowed", "options of the head", f"heads.{name}")
        try:
            head = read_part("heads")({"kind": name, **(said or {})}, info)
        except InputError as error:
            at = ".".join(filter(None, (f"heads.{name}", error.field)))
            raise refused(error.message, error.expected, at) from None
        found[head.name] = head
    return Method(part=method, heads=found)


MethodField = Annotated[
    Method, BeforeValidator(_read_method), PlainSerializer(Method.plain), KIND_OR_OPTIONS
]

MEASURES = {
    "validation": lambda log: True,
    "ties": lambda log: log.SIMULATED or "a simulated log",
    "queries": lambda log: log.SIMULATED or log.has_features or "annotated queries",
    # A document has one label on all lists, or one on each.
    "recovery": lambda log: (
        (log.SIMULATED and not log.RANKED) or "a simulated log, not lists that a ranker sorts"
    ),
    "places": lambda log: log.RANKED or "lists that a ranker sorts",
}
"""For each measurement of a log: True where it is possible, else what it needs."""


class Transfer(Settled):
    """Boosted trees that rank test queries, fitted to click rates over estimated examination."""

    trees: Positive
    """Number of trees."""
    leaves: Annotated[int, Field(ge=2)]
    """The most leaves of a tree."""


class Setting(Settled):
    """A fit of a model to a log by a method: one job per seed, with all its lanes."""

    name: str = Field("", exclude=True)
    """Its name in the paper."""
    log: Annotated[AnyLog, named("logs")]
    """The click log to fit: its name."""
    model: Model
    """What explains the clicks."""
    method: MethodField = Field(default="likelihood", validate_default=True)
    """What is optimised, and how: a method of twotowers/methods/ or of the paper's methods/, and
    its options; `heads` are auxiliary losses, such as `reversal`,
    or of the paper's heads/."""
    training: Annotated[Training, named("training")] | None = None
    """Name of its training settings; the name of the tower if absent."""
    transfer: Transfer | None = None
    """Of lists that a ranker sorts: boosted trees that rank test queries."""
    seeds: Seeds | None = None
    """Its own seeds, where those of the scale are too few."""
    measure: Distinct[
        Literal["validation", "recovery", "places", "ties", "queries", "epochs", "uncertainty"]
    ] = Field(default=(), validate_default=False)
    """What is measured besides. `validation`: losses of the validation split, by which lanes may be
    chosen, and of a simulated log nDCG@5. `queries`: nDCG@5 of every test query; of a real log with
    annotations, all metrics of every annotated query, NLL of the test page with its number (as
    published by Hager 2026, chapter 3), and nDCG of the logged order. `recovery`: MCC with the
    user's relevance over documents, nDCG@1 and @3. `places`: that MCC over the places of lists that
    a ranker sorts. `ties`: nDCG if the later of equal documents ranks first. The last three need a
    simulated log. `epochs`: the watched loss after each epoch of training. `uncertainty`: standard
    errors of the probabilities of pairs and positions, and of a simulated log the share of
    intervals that hold the truth."""
    chosen: dict[str, list] = Field(default={}, alias="lanes")
    """Values of the log's lanes to fit, by column; all if absent."""

    @model_validator(mode="before")
    @classmethod
    def _training_of_tower(cls, given: Any, info: ValidationInfo) -> Any:
        """The training is named after the tower, unless it is told or the method does not train."""
        if not isinstance(given, Mapping) or "training" in given:
            return given
        known = (info.context or {}).get("training", {})
        model = given.get("model")
        tower = model.get("tower") if isinstance(model, Mapping) else None
        declared = (info.context or {}).get("towers", {})
        if isinstance(tower, str) and tower in declared:
            tower = declared[tower].name
        name = with_kind(tower).get("kind") if isinstance(tower, str | Mapping) else None
        return {**given, "training": known[name]} if name in known else given

    @model_validator(mode="after")
    def _fits_together(self, info: ValidationInfo) -> Setting:
        log, model, method = self.log, self.model, self.method
        if model.kind_of.pages:
            need_pages(log, f"model {model.kind!r}", "model")
        if log.has_gaps and not model.of.gaps:
            raise refused(
                f"model {model.kind!r} says nothing of pages with gaps",
                "a log without 'places', whose documents stand at 1, 2, and so on",
                "model",
            )
        self._check_tower()
        if log.bias_features:
            self._check_bias()
        self._check_measures()
        if log.has_factors(self._log_lanes()) and not method.kind.factors:
            raise refused(
                f"method {method.kind.name!r} takes positions for bias factors",
                "'alternation', or lanes of a log without merging and contexts",
                "method",
            )
        if method.kind.trains and self.training is None:
            known = (info.context or {}).get("training", {})
            raise refused(
                f"{model.tower.name!r} is not declared",
                nearest(model.tower.name, known),
                "model.tower",
            )
        if not method.kind.trains:
            self._refuse_parts()
        columns = [column for own in self.lanes.values() for column in own]
        if twice := {column for column in columns if columns.count(column) > 1}:
            raise refused(
                f"columns {sorted(twice)} are lanes more than once",
                "each column in one of log, model, method and training",
            )
        return self

    def _check_tower(self) -> None:
        log, tower = self.log, self.model.tower
        if not tower.kind.by_pair and not log.has_features:
            raise refused(
                f"tower {tower.name!r} reads features, and this log has none",
                "'embedding': a parameter per query-document pair; or a log with 'features: true'",
                "model.tower",
            )
        if tower.kind.by_pair and not (log.same_queries or self.method.kind.bias_alone):
            raise refused(
                "an embedding per pair can be measured only on the pairs that it was trained on",
                "a log with 'queries: train', whose sessions all ask the training queries",
                "model.tower",
            )

    def _check_bias(self) -> None:
        """Refuse bias features of the log that nothing reads."""
        if not self.method.kind.bias_features:
            raise refused(
                f"method {self.method.kind.name!r} reads no bias features",
                "'likelihood', or a log without 'bias'",
                "method",
            )
        examination = self.model.examination
        if not isinstance(examination.kind, Part) or examination.dropout:
            raise refused(
                f"{examination.plain()!r} reads no bias features, and the log has some",
                "a tower without dropout, such as 'linear'; or a log without 'bias'",
                "model.examination",
            )
        if PER_POSITION not in self.model.of.parts.values():
            raise refused(
                f"{self.model.kind!r} has no part per position that could read bias features",
                "a model that has one, such as 'position_based'; or a log without 'bias'",
                "model",
            )

    def _check_measures(self) -> None:
        log, method = self.log, self.method.kind
        if self.transfer is not None and not log.RANKED:
            raise refused(
                "there are no test queries to rank",
                "a log with 'from: lists' that a ranker sorts",
                "transfer",
            )
        own = {
            "epochs": method.trains or "a method that trains by epochs",
            "uncertainty": self.model.by_pair or "a tower with a parameter per pair",
        }
        for measure in self.measure:
            needed = own[measure] if measure in own else MEASURES[measure](log)
            if needed is not True:
                raise refused(f"{measure!r} cannot be measured", needed, "measure")

    def _refuse_parts(self) -> None:
        """Refuse what needs a method that trains towers."""
        name = self.method.kind.name
        if varied := [*self._part_lanes(), *self._training_lanes()]:
            raise refused(
                f"{varied[0]!r} cannot differ between lanes of method {name!r}",
                "one value per setting",
            )
        if self.model.examination != Examination():
            raise refused(
                f"method {name!r} has a parameter per position", repr(TABLE), "model.examination"
            )

    def _log_lanes(self) -> dict[str, list]:
        """The lanes of the log that the setting takes: all, unless it chooses values."""
        lanes = self.log.lanes
        for column, values in self.chosen.items():
            if column not in lanes:
                raise refused(
                    f"log {self.log.name!r} has no lanes {column!r}",
                    nearest(column, lanes) if lanes else "a log with lanes",
                    "lanes",
                )
            for value in values:
                if value not in lanes[column]:
                    raise refused(
                        f"{column} {value} is not one of log {self.log.name!r}",
                        f"some of {lanes[column]}",
                        f"lanes.{column}",
                    )
            if not values or repeats(values):
                raise refused(f"{column!r} is {values!r}", "different values", f"lanes.{column}")
        return {
            column: [type(values[0])(value) for value in self.chosen.get(column, values)]
            for column, values in lanes.items()
        }

    def _part_lanes(self) -> dict[str, list]:
        lanes = self.model.tower.lanes("tower") | self.model.examination.lanes()
        for name, head in self.method.heads.items():
            lanes |= head.lanes(name)
        return lanes

    def _training_lanes(self) -> dict[str, list]:
        return self.training.lanes if self.training is not None else {}

    @property
    def lanes(self) -> dict[str, dict[str, list]]:
        """The values of each lane column, by what they belong to: log, method, parts, training."""
        found = {"method": self.method.lanes, "log": self._log_lanes()}
        parts, training = self._part_lanes(), self._training_lanes()
        return (
            found
            | ({"parts": parts} if parts else {})
            | ({"training": training} if training and self.method.kind.trains else {})
        )

    @property
    def kinds(self) -> list[Kind]:
        """All kinds that the fit uses, but for its log's users."""
        examination = self.model.examination.kind
        return [
            self.model.kind_of,
            self.method.kind,
            self.model.tower.kind,
            *([examination.kind] if isinstance(examination, Part) else []),
            *(head.kind for head in self.method.heads.values()),
        ]
