"""Logs of real users: a data set of clicks, divided into splits by chance."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, Strict

from twotowers.experiment.fields import Config, Distinct, config_error
from twotowers.experiment.log import Files, Log, chosen, splits_of
from twotowers.files.artefacts import files_of
from twotowers.logs.described import Gathered, read_documents
from twotowers.logs.observed_pages import observed_pages
from twotowers.methods.task import Split
from twotowers.splits import ANNOTATIONS, DOCUMENTS, LOG, PAGES, SPLITS, TEXTS, part_of

Fraction = Annotated[float, Field(gt=0, le=1)]
Number = Annotated[int, Field(ge=0)]


class Portion(Config):
    """The pages of a split, by the parts that the log was published in."""

    parts: Annotated[Distinct[str], Field(min_length=1)]
    """The parts that they are from, such as part-0."""
    first: Fraction = 1.0
    """Share of these pages, from the first."""
    share: Fraction = 1.0
    """Share of what is left, by chance. Splits of the same parts share no page."""
    clicks: Annotated[tuple[Number, Number], Strict(False)] | None = None
    """The fewest and the most clicks of a page; any number if absent."""


def _divided(split: dict[str, float | Portion]) -> dict[str, float | Portion]:
    """A share or a portion for each split, in their order."""
    for name in SPLITS:
        if name not in split:
            raise config_error(f"{name!r} is missing")
    shares = [each for each in split.values() if not isinstance(each, Portion)]
    if shares and not (len(shares) == len(SPLITS) and abs(sum(shares) - 1) <= 1e-9):
        raise config_error(f"the shares {shares} do not add up to 1", "a sum of 1")
    return {name: split[name] for name in SPLITS}


class ObservedLog(Log):
    """A data set of clicks. Each page goes to one split by chance, or by the part that it is in."""

    SIMULATED = False
    has_pages = True

    origin: Literal["dataset"] = Field("dataset", alias="from")
    """The data set itself."""
    dataset: str
    """The click log."""
    split: Annotated[
        dict[Literal["train", "validation", "test"], Fraction | Portion], AfterValidator(_divided)
    ]
    """Shares of the log for train (to fit on), validation (for early stopping) and test, or parts
    of it."""
    places: str | None = None
    """The bias feature with the positions of documents, if pages have gaps: `positions` of format
    baidu. Absent, the documents of a page stand at 1, 2, and so on."""
    cut: bool = False
    """Whether documents below the last position are left out. Otherwise they are an error."""
    features: bool = False
    """Whether towers may read features of the documents. The data set then has them, and queries
    with annotated documents, on which rankings are measured."""
    texts: str | None = None
    """A log with text whose files cross-encoders read in training, page after page: all but parts
    of validation and test. While it has no folder, they read this log's pages."""

    @property
    def datasets(self) -> list[str]:
        return [self.dataset]

    @property
    def has_gaps(self) -> bool:
        return self.places is not None

    @property
    def has_features(self) -> bool:
        return self.features

    def fit_inputs(self, files: Files, seed: int, setting: Any) -> dict[str, str]:
        parts = {LOG: PAGES}
        if self.features and not setting.model.by_pair:
            judged = {ANNOTATIONS} & {*files.datasets[self.dataset].of.splits}
            parts |= {name: name for name in (DOCUMENTS, *judged)}
        inputs = {
            name: files.path("raw", dataset=self.dataset, split=part)
            for name, part in parts.items()
        }
        if self.texts and not files.datasets[self.texts].is_standin:
            inputs[TEXTS] = files.path("manifest", dataset=self.texts)
        return inputs

    def splits(
        self, inputs: Mapping[str, str], lanes: Sequence[Mapping], *, seed: int, setting: Any
    ) -> dict[str, Split]:
        features = setting.model.read
        given = {"positions": self.positions, "places": self.places, "cut": self.cut}
        pages = observed_pages(inputs[LOG], self.split, seed=seed, **given)
        read: np.ndarray | Gathered = pages.pair
        if features is not None:
            described = read_documents(inputs[DOCUMENTS])
            rows = described.rows(pages.ids["document"].to_numpy())
            width = described.features.shape[1]
            read = Gathered(described.features[:, chosen(features, width)], rows[pages.pair])
        splits = splits_of(pages, read)
        if TEXTS in inputs:
            splits["train"] = replace(splits["train"], texts=self._files(inputs[TEXTS]))
        return splits

    def _files(self, manifest: str) -> list[Path]:
        """The files of `texts`, but for those of validation and test."""
        pattern = json.loads(Path(manifest).read_text(encoding="utf-8"))[LOG]["path"]
        portions = (part for name, part in self.split.items() if name != "train")
        held_out = {each for part in portions if isinstance(part, Portion) for each in part.parts}
        return [file for file in files_of(pattern) if part_of(file) not in held_out]
