"""The table of data sources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from twotowers.errors import check_choice
from twotowers.files.yamls import read_yaml
from twotowers.logs.opening import FORMATS as LOGS
from twotowers.splits import ANNOTATIONS, LOG, SPLITS

TABLE = Path(__file__).with_name("sources.yaml")

LETOR = "letor"
FORMATS = {LETOR: SPLITS, "tiangong": (LOG,), **dict.fromkeys(LOGS, (LOG,))}
"""For each format of files, the parts of a data set."""
FURTHER = {"vectors": (ANNOTATIONS,), "baidu": (ANNOTATIONS,)}
"""For some formats, parts that a data set may have besides."""


@dataclass(frozen=True)
class Source:
    """Where a data set comes from, and how to recognise it.

    Attributes:
        name: Key in the table, or the name in the configuration.
        title: Its name on a page.
        version: Of the release; "" for a local folder.
        url: The archive (access "public"), or a page or link for a person.
        sha256: Of the archive, in lower-case hexadecimal; None if not known.
        licence: Its terms in one line.
        access: "public" (can be fetched), "manual" (a person downloads it), "gated" (its
            owner must be asked), or "local" (declared in the configuration).
        how: How to get it, in prose.
        splits: Path of the file of each part below the user's folder: the train, validation
            and test split, or the log, perhaps with annotations. A log of format "vectors" or
            "baidu" may be many files: a pattern.
        files_sha256: Of these files; None if not known.
        format: "letor", or that of a click log: one of `twotowers.logs.opening.FORMATS`, or
            "tiangong".
        reading: Settings of a click log's reader, such as the names of columns.
        width: Number of features, 1 or more; None for a click log.
        label_max: The highest label, above 0; labels start at 0. None for a click log.
    """

    name: str
    title: str
    version: str
    url: str
    sha256: str | None
    licence: str
    access: str
    how: str
    splits: Mapping[str, str]
    files_sha256: Mapping[str, str | None]
    format: str = LETOR
    reading: Mapping[str, Any] = field(default_factory=dict)
    width: int | None = None
    label_max: float | None = None


@cache
def load_sources() -> dict[str, Source]:
    """The table of sources, by name."""
    return {name: Source(name, **entry) for name, entry in read_yaml(TABLE).items()}


def source(name: str) -> Source:
    """The source of that name."""
    sources = load_sources()
    check_choice(name, sources, field="data source")
    return sources[name]
