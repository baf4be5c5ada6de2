"""config.yaml: what a run makes, at which scale, and from which data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model, model_validator

from twotowers.datasets.sources import FORMATS, FURTHER, LETOR, Source, source
from twotowers.errors import check_choice
from twotowers.experiment.fields import (
    Config,
    Listed,
    Options,
    Positive,
    Scale,
    Share,
    below,
    config_error,
    read,
)
from twotowers.logs.opening import FORMATS as LOGS
from twotowers.logs.opening import further_of
from twotowers.splits import SPLITS

TEXTS = "baidu"
"""The format of logs with text."""
WIDEST = 100_000
"""The most features. A corrupt index must not allocate terabytes."""


def _whole(parts: dict[str, int]) -> dict[str, int]:
    """Sizes of all splits, or of a log."""
    given = [name for name in SPLITS if name in parts]
    if not parts:
        raise config_error("there are no sizes", "queries per split, or 'log'")
    if given and len(given) < len(SPLITS):
        (missing, *_) = [name for name in SPLITS if name not in given]
        raise config_error(f"{missing!r} is missing", "a size of each split")
    return parts


Sizes = Annotated[
    dict[Literal["train", "validation", "test", "log", "annotations"], Positive],
    AfterValidator(_whole),
]
"""Queries per split, or result pages of a log."""


class Encoder(Config):
    """A small cross-encoder whose vectors are features of a generated log with text."""

    steps: Annotated[int, Field(ge=0)]
    """Steps of training, on pages of part 1. Without any, what follows lexical features are the
    tokens that an encoder would read, also of real files."""
    layers: Positive = 2
    """Layers of the transformer."""
    width: Positive = 32
    """Numbers per vector."""
    inner: Positive = 128
    """Width of each layer's network."""
    length: Positive = 32
    """Tokens that it reads."""
    documents: Annotated[int, Field(ge=32)] = 128
    """Documents of a step."""
    learning_rate: Annotated[float, Field(gt=0)] = 0.001
    """Of AdamW."""
    mask: Share = 0.3
    """The chance that a token is masked."""
    clicks: bool = True
    """Whether it is trained on clicks, and not on masked tokens alone."""
    placeholders: bool = False
    """Whether it is trained on pages with their placeholders."""
    dropout: bool = False
    """Whether dropout stays on while vectors are made."""


def _in_folder(path: str) -> str:
    """The path of a file below a folder."""
    names = PurePosixPath(path).parts
    if not names or names[0] == "/" or ".." in names:
        raise config_error(f"{path!r} is not allowed", "a file in the folder")
    return path


class Declared(Config):
    """Your own files: rankings in LETOR format, or a click log."""

    name: str
    """Its name."""
    format: Literal[tuple(FORMATS)] = LETOR  # pyrefly: ignore
    """Of the files."""
    splits: dict[str, Annotated[str, AfterValidator(_in_folder)]]
    """The file of each part: train, validation and test, or log, perhaps with annotations."""
    width: Annotated[int, Field(ge=1, le=WIDEST)] | None = None
    """Of LETOR: features."""
    # float32 holds whole labels up to the highest exactly.
    label_max: Annotated[float, Field(ge=1, le=2**24)] | None = None
    """Of LETOR: the highest label."""
    reading: dict[str, Any] = Field(default={})
    """Settings of a log's reader, such as names of columns."""

    @model_validator(mode="after")
    def _complete(self) -> Declared:
        needed, form = FORMATS[self.format], f"format {self.format!r}"
        for part in self.splits:
            known = [*needed, *FURTHER.get(self.format, ())]
            check_choice(part, known, field="splits", what=f"no part of {form}")
        for part in needed:
            if part not in self.splits:
                raise config_error(f"{part!r} is missing", at="splits")
        for key in ("width", "label_max"):
            if (getattr(self, key) is None) == (self.format == LETOR):
                raise config_error(f"{form} {'needs' if self.format == LETOR else 'has no'} {key}")
        known = LOGS[self.format].settings if self.format in LOGS else {}
        settings: dict[str, Any] = {name: (kind | None, None) for name, kind in known.items()}
        with below("reading"):
            read(create_model("reading", __base__=Options, **settings), self.reading)
            if self.reading.get("seen") is not None:
                further_of(self.reading["seen"])
        return self


class DataSet(Config):
    """A data set: its source, and where its files are or how large its stand-in is."""

    source: str | Declared
    """An entry of twotowers/datasets/sources.yaml, or your own files."""
    folder: str | None = None
    """The folder of the data set's files. null generates the stand-in."""
    standin: dict[Scale, Sizes] = Field(default={})
    """Size of the generated stand-in, per scale: queries of train, validation and test, or pages of
    log, perhaps with queries of annotations."""
    law: dict[str, float | str] = Field(default={})
    """Of a generated log with text: values instead of those of the calibrated law
    (`twotowers.standins.baidu.Law`), such as {agreement: 1}; and its `users` and `annotators`."""
    encoder: dict[Scale, Encoder] = Field(default={})
    """The encoder of a log with text, per scale. Its vectors follow the lexical features. Without
    it, a generated log has lexical features only. Real files have vectors of their own, so an
    encoder with steps does not apply to them."""

    @model_validator(mode="after")
    def _law_of_texts(self) -> DataSet:
        for name in ("law", "encoder"):
            if getattr(self, name) and not self.has_texts:
                raise config_error(f"{self.source!r} has no {name}", "a log of format baidu", name)
        return self

    @property
    def has_texts(self) -> bool:
        """Whether it is a log with text."""
        return self.of.format == TEXTS

    def encoder_at(self, scale: str) -> Encoder | None:
        """The encoder of a scale, if there is one."""
        encoder = self.encoder.get(scale)
        return encoder if encoder and (self.is_standin or not encoder.steps) else None

    @property
    def is_standin(self) -> bool:
        """Whether it is generated."""
        return self.folder is None

    @property
    def of(self) -> Source:
        """The data source."""
        if isinstance(self.source, str):
            return source(self.source)
        return Source(
            **dict(self.source),
            title=self.source.name,
            version="",
            url="",
            sha256=None,
            licence="the user's own responsibility",
            access="local",
            how="Declared in the configuration: put its files into the folder given there.",
            files_sha256=dict.fromkeys(self.source.splits),
        )


ItemName = Annotated[str, Field(pattern="^[^/]+/[^/]+$")]


class RunConfig(Config):
    """Settings of a run."""

    scale: Scale
    """How much is computed: smoke is a first look, laptop the default, paper closest to the papers'
    own sizes. Where it has less, the paper's README says so under Deviations."""
    papers: Annotated[Listed[str], Field(min_length=1)]
    """The papers to regenerate, each a folder of papers/, in their order."""
    only: Listed[ItemName]
    """Items to make, each as paper/item. If empty, all items, the claims and the page."""
    also: Listed[ItemName] = ()
    """Items to make besides those of the scale, such as a long search."""
    seeds: Positive | None = None
    """Seeds that every setting and study of more than one seed has at least, counted on from its
    last. What a scale gives fewer seeds than the rest, to save time, has them too. If absent, those
    of the experiment."""
    device: Literal["cpu", "cuda"]
    """The device of rankers and fits under `--sdm conda` (envs/jax-cpu.yaml or envs/jax-cuda.yaml).
    Otherwise the installed JAX decides."""
    results: str
    """Folder of intermediate files."""
    figures: str
    """Folder of the figures, tables, claims and pages, one folder per scale."""
    datasets: dict[str, DataSet]
    """Data sets by name."""
    replace: dict[str, str]
    """Runs every paper that uses the first data set on the second."""

    @model_validator(mode="after")
    def _known_replacements(self) -> RunConfig:
        for name in [*self.replace, *self.replace.values()]:
            check_choice(name, self.datasets, field="replace")
        return self


def read_config(given: Mapping, paths: Sequence[str | Path] = ("config.yaml",)) -> RunConfig:
    """The settings of a run, as merged from files, of which later ones override earlier ones."""
    return read(RunConfig, dict(given), path=paths)
