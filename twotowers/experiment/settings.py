"""Settings: what is fitted to which log, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, Strict, ValidationInfo, model_validator

from twotowers.errors import nearest
from twotowers.experiment.fields import (
    Config,
    Distinct,
    Listed,
    Positive,
    Seeds,
    below,
    config_error,
    named,
    read,
)
from twotowers.experiment.log import Columns, Log, need_pages
from twotowers.experiment.parts import (
    READS,
    TABLE,
    Examination,
    ExaminationField,
    Method,
    Part,
    Tower,
    find_in,
    read_part,
    read_parts,
)
from twotowers.experiment.training import Training
from twotowers.logs.counts import LONGEST_DENSE
from twotowers.models.additive import Additive
from twotowers.models.position_based import PositionBased
from twotowers.models.protocol import CellModel, ClickModel, is_examination, of_documents
from twotowers.towers.lane import KNOWN, repeats


def _tower(given: Any, info: ValidationInfo) -> Part:
    """The relevance tower, perhaps one that the paper declares."""
    declared = (info.context or {}).get("towers", {})
    if isinstance(given, str) and given in declared:
        given = declared[given]
    return read_part("towers", given, info).named("tower")


class Model(Config):
    """A click model, its constants, and the towers of its parts."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    kind: str = "additive"
    """A click model of twotowers/models/ or of the paper's models/."""
    tower: Annotated[Tower, BeforeValidator(_tower)]
    """The relevance tower: linear, deep (2 x 32 ELU), embedding, dense, or one of `towers`."""
    features: Annotated[float, Field(gt=0, le=1)] | Annotated[tuple[int, int], Strict(False)] = 1.0
    """Share of the features that the tower sees, from the first; or the first and the last of them,
    from 1, where -1 is the last of all."""
    examination: ExaminationField = Field(Examination(), json_schema_extra={"default": TABLE})
    """The examination part: a `table` with a parameter per position, a tower of positions,
    or `known`, the simulated user's. Its `dropout` is of the part's logits."""
    parts: dict[str, Any] = Field(default={})
    """Parts of the click model with a tower of their own, by name: satisfaction, continuation, ...
    Each is a tower, perhaps with `reads: positions`, `documents` or `both`; a `table`; or the name
    of the part whose parameters it shares. Without one, parts per document have the tower `tower`
    each, and the others a table."""
    click_model: Any = Field(None, exclude=True)
    """The click model itself."""

    @model_validator(mode="before")
    @classmethod
    def _with_constants(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, Mapping):
            return given
        known = cls.model_fields.keys() - {"click_model"}
        constants = {key: given[key] for key in given if key not in known}
        own = find_in("models", given.get("kind", "additive"), info)
        model = own.holds(**dict(read(own.options, constants)))
        own_keys = {key: given[key] for key in given if key in known}
        examined = own_keys.get("examination")
        if isinstance(examined, Mapping) and "reads" in examined:
            own_keys["parts"] = {
                "examination": own_keys.pop("examination"),
                **own_keys.get("parts", {}),
            }
        with below("parts"):
            parts = read_parts(own_keys.get("parts") or {}, model, info)
        if isinstance(model, CellModel) and "attraction" in model.parts:
            # Counts are enough where relevance is of documents and examination of positions.
            for name, key, reads in zip(model.parts, ("tower", "examination"), READS, strict=False):
                own_tower = parts.get(name)
                if own_tower == TABLE:
                    own_keys[key] = parts.pop(name)
                elif isinstance(own_tower, Part) and own_tower.reads == reads:
                    own_keys[key] = replace(parts.pop(name), reads="")
        return own_keys | {"kind": own.name, "click_model": model, "parts": parts}

    @property
    def of(self) -> ClickModel:
        """The click model."""
        return self.click_model

    @property
    def by_pair(self) -> bool:
        """Whether the relevance tower reads numbers of query-document pairs."""
        return self.tower.has("BY_PAIR")

    @property
    def needs(self) -> set[str]:
        """What its towers read of documents: `pair`, `features`, or both."""
        own = {name: self.parts.get(name, self.tower) for name in of_documents(self.of.parts)}
        towers = [each for each in (own | self.parts).values() if isinstance(each, Part)]
        return {
            "pair" if each.has("BY_PAIR") else "features"
            for each in towers
            if each.reads != "positions"
        }

    @property
    def read(self) -> Columns:
        """The features that the relevance tower reads."""
        return self.features if "features" in self.needs else None


MEASURES: Mapping[str, tuple[Callable[[Setting], bool], str]] = {
    "validation": (lambda own: True, ""),
    # A document has one label on all lists, or one on each.
    "recovery": (
        lambda own: own.log.SIMULATED and not own.log.RANKED,
        "a simulated log, not lists that a ranker sorts",
    ),
    "places": (lambda own: own.log.RANKED, "lists that a ranker sorts"),
    "ties": (lambda own: own.log.SIMULATED, "a simulated log"),
    "queries": (lambda own: own.log.SIMULATED or own.log.has_features, "annotated queries"),
    "epochs": (lambda own: own.method.has("TRAINS"), "a method that trains by epochs"),
    "uncertainty": (lambda own: own.model.by_pair, "a tower with a parameter per pair"),
}
"""What may be measured besides: whether a setting can, and what it needs."""

PAGES = "a log with 'record: sessions'"
BY_PAIR = "'embedding': a parameter per query-document pair"
NEEDS: Mapping[str, tuple[Callable[[Setting], bool], str, str]] = {
    "sessions": (lambda own: own.log.has_pages, "log", PAGES),
    "features": (lambda own: not own.model.by_pair, "model.tower", "a tower that reads features"),
    "dense": (
        lambda own: own.log.has_pages or own.log.positions <= LONGEST_DENSE,
        "log",
        f"at most {LONGEST_DENSE} positions, or {PAGES}",
    ),
    "pairs": (lambda own: own.model.by_pair, "model.tower", BY_PAIR),
    "embedding": (lambda own: own.model.tower.name == "embedding", "model.tower", BY_PAIR),
    "embedding or linear": (
        lambda own: own.model.tower.name in ("embedding", "linear"),
        "model.tower",
        "'embedding' or 'linear'",
    ),
    "additive": (lambda own: isinstance(own.model.of, Additive), "model.kind", "'additive'"),
    "position_based": (
        lambda own: isinstance(own.model.of, PositionBased),
        "model.kind",
        "'position_based'",
    ),
    "examination": (
        lambda own: "examination" in own.model.of.parts,
        "model.kind",
        "a model with examination, such as 'additive'",
    ),
    "counts": (
        lambda own: own.model.of.counts is not None,
        "method",
        "a model that can be counted; or method 'em' or 'likelihood'",
    ),
    "expectations": (
        lambda own: own.model.of.expectations is not None and own.model.of.counts is None,
        "method",
        "a model with expectations; or method 'counting' or 'likelihood'",
    ),
}
"""What a method may say that it needs (`NEEDS` of its module): whether a setting has it, where, and
what is expected there."""


class Transfer(Config):
    """Boosted trees that rank test queries, fitted to click rates over estimated examination."""

    trees: Positive
    """Number of trees."""
    leaves: Annotated[int, Field(ge=2)]
    """The most leaves of a tree."""


class Setting(Config):
    """A fit of a model to a log by a method: one job per seed, with all its lanes."""

    name: str = Field("", exclude=True)
    """Its name in the paper."""
    log: Annotated[Log, named("logs")]
    """The click log to fit: its name."""
    model: Model
    """What explains the clicks."""
    method: Method = Field(default="likelihood", validate_default=True)
    """What is optimised, and how: a method of twotowers/methods/ or of the paper's methods/, and
    its options; `heads` are auxiliary losses, such as `reversal`, or of the paper's heads/."""
    training: Annotated[Training, named("training")] | None = None
    """Name of its training settings; the name of the tower if absent."""
    transfer: Transfer | None = None
    """Of lists that a ranker sorts: boosted trees that rank test queries."""
    seeds: Seeds | None = None
    """Its own seeds, where those of the scale are too few."""
    measure: Distinct[Literal[tuple(MEASURES)]] = Field(  # pyrefly: ignore
        default=(), validate_default=False
    )
    """What is measured besides. `validation`: losses of the validation split, by which lanes may be
    chosen, and of a simulated log nDCG@5. `queries`: nDCG@5 of every test query; of a real log with
    annotations, all metrics of every annotated query, NLL of the test page with its number (as
    published by Hager 2026, chapter 3), and nDCG of the logged order. `recovery`: MCC with the
    user's relevance over documents, nDCG@1 and @3. `places`: that MCC over the places of lists that
    a ranker sorts. `ties`: nDCG if the later of equal documents ranks first. The last three need a
    simulated log. `epochs`: the watched loss after each epoch of training. `uncertainty`: standard
    errors of the probabilities of pairs and positions, and of a simulated log the share of
    intervals that hold the truth."""
    chosen: dict[str, Listed[Any]] = Field(default={}, alias="lanes")
    """Values of the log's lanes to fit, by column; all if absent."""

    @model_validator(mode="after")
    def _settled(self, info: ValidationInfo) -> Setting:
        """The training is named after the tower, unless it is given."""
        known = (info.context or {}).get("training", {})
        training = self.training or known.get(self.model.tower.name)
        own = self.log.settled(self.model_copy(update={"training": training}))
        for message, expected, at in own._conflicts(known):
            raise config_error(message, expected, at)
        return own

    def _conflicts(self, trainings: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """What does not fit together: what is wrong, what is expected, and where."""
        log, model, method, tower = self.log, self.model, self.method, self.model.tower
        if not isinstance(model.of, CellModel):
            need_pages(log, f"model {model.kind!r}", "model")
        yield from self._wrong_lanes()
        if log.has_gaps and not model.of.gaps:
            wrong = f"model {model.kind!r} says nothing of pages with gaps"
            yield wrong, "a log without 'places', whose documents stand at 1, 2, and so on", "model"
        if "features" in model.needs and not log.has_features:
            yield (
                f"tower {tower.name!r} reads features, and this log has none",
                "'embedding': a parameter per query-document pair; or a log with 'features: true'",
                "model.tower",
            )
        if "pair" in model.needs and not (log.same_queries or method.has("BIAS_ALONE")):
            yield (
                "an embedding per pair can be measured only on the pairs that it was trained on",
                "a log with 'queries: train', whose sessions all ask the training queries",
                "model.tower",
            )
        if self.transfer is not None and not log.RANKED:
            wrong = "there are no test queries to rank"
            yield wrong, "a log with 'from: lists' that a ranker sorts", "transfer"
        for measure in self.measure:
            possible, needed = MEASURES[measure]
            if not possible(self):
                yield f"{measure!r} cannot be measured", needed, "measure"
        if log.has_factors(self._log_lanes()) and not method.has("FACTORS"):
            yield (
                f"method {method.name!r} takes positions for bias factors",
                "'alternation', or lanes of a log without merging and contexts",
                "method",
            )
        for need in filter(NEEDS.__contains__, method.traits):
            has, at, expected = NEEDS[need]
            if not has(self):
                yield f"method {method.name!r} cannot fit this: it needs {need}", expected, at
        if method.has("TRAINS") and self.training is None:
            yield f"{tower.name!r} is not declared", nearest(tower.name, trainings), "model.tower"
        if method.has("TRAINS") and log.has_pages:
            if len(self._log_lanes().get("sessions", ())) > 1:
                wrong = "lanes of different numbers of sessions cannot share batches of sessions"
                yield wrong, "a setting for each, or a log with 'record: cells'", "log"
            if method.lanes.get("weighting", ["none"]) != ["none"]:
                wrong = "a log of sessions has no weights"
                yield wrong, "'none', or a log with 'record: cells'", "method.weighting"
        yield from self._unread_parts()
        if not method.has("TRAINS"):
            for varied in [*self._part_lanes(), *(self.training.lanes if self.training else ())]:
                wrong = f"{varied!r} cannot differ between lanes of method {method.name!r}"
                yield wrong, "one value per setting", ""
            if model.examination != Examination():
                wrong = f"method {method.name!r} has a parameter per position"
                yield wrong, repr(TABLE), "model.examination"
        columns = [column for own in self.lanes.values() for column in own]
        if twice := {column for column in columns if columns.count(column) > 1}:
            wrong = f"columns {sorted(twice)} are lanes more than once"
            yield wrong, "each column in one of log, model, method and training", ""

    def _unread_parts(self) -> Iterator[tuple[str, str, str]]:
        """What the method's towers do not read of the examination and the heads."""
        model, method = self.model, self.method
        heads = method.options.get("heads", ())
        cells = isinstance(model.of, CellModel) and "attraction" in model.of.parts
        cells &= not model.parts
        if model.parts and method.name != "likelihood":
            wrong = f"method {method.name!r} knows no towers of single parts"
            yield wrong, "'likelihood', or a model without `parts`", "model.parts"
        if method.has("TRAINS") and not cells:
            examined = model.examination
            if examined.kind == KNOWN or examined.dropout != 0:
                wrong = f"the towers of model {model.kind!r} have no such examination"
                yield wrong, f"{TABLE!r}, or a tower", "model.examination"
            if examined.kind != TABLE and not any(map(is_examination, model.of.parts)):
                wrong = f"model {model.kind!r} has no part 'examination'"
                yield wrong, f"`parts`: {', '.join(model.of.parts)}", "model.examination"
            if heads:
                yield f"the towers of model {model.kind!r} have no heads", "none", "method.heads"
            need_pages(self.log, f"model {model.kind!r}", "model")
        for head in heads:
            if missing := sorted({*head.holds.needs} - {*model.of.parts}):
                wrong = f"the model {model.kind!r} has no {', '.join(missing)}"
                yield wrong, "a model with these parts", f"method.heads.{head.name}"

    def _wrong_lanes(self) -> Iterator[tuple[str, str, str]]:
        """The columns and values of `lanes` that the log does not have."""
        lanes = self.log.lanes
        for column, values in self.chosen.items():
            at = f"lanes.{column}"
            if column not in lanes:
                wrong = f"log {self.log.name!r} has no lanes {column!r}"
                yield wrong, nearest(column, lanes) if lanes else "a log with lanes", "lanes"
            elif unknown := [value for value in values if value not in lanes[column]]:
                wrong = f"{column} {unknown[0]} is not one of log {self.log.name!r}"
                yield wrong, f"some of {lanes[column]}", at
            elif not values or repeats(values):
                yield f"{column!r} is {values!r}", "different values", at

    def _log_lanes(self) -> dict[str, list]:
        """The lanes of the log that the setting takes: all, unless it chooses values."""
        return {
            column: [type(values[0])(value) for value in self.chosen.get(column, values)]
            for column, values in self.log.lanes.items()
        }

    def _part_lanes(self) -> dict[str, list]:
        lanes = self.model.tower.lanes | self.model.examination.lanes
        for part in self.model.parts.values():
            lanes |= part.lanes if isinstance(part, Part) else {}
        for head in self.method.options.get("heads", ()):
            lanes |= head.lanes
        return lanes

    @property
    def lanes(self) -> dict[str, dict[str, list]]:
        """The values of each lane column, by what they belong to: log, method, parts, training."""
        parts, training = self._part_lanes(), self.training.lanes if self.training else {}
        return (
            {"method": self.method.lanes, "log": self._log_lanes()}
            | ({"parts": parts} if parts else {})
            | ({"training": training} if training and self.method.has("TRAINS") else {})
        )
