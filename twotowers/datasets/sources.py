"""The table of data sources, and data sets that a user declares in a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from twotowers.errors import InputError, check_choice, check_range, nearest
from twotowers.files.yamls import read_yaml
from twotowers.logs.opening import FORMATS as LOGS
from twotowers.logs.opening import further_of
from twotowers.splits import ANNOTATIONS, LOG, SPLITS

TABLE = Path(__file__).with_name("sources.yaml")

WIDEST = 100_000
"""The most features. A corrupt index must not allocate terabytes."""
LETOR = "letor"
FORMATS = {LETOR: SPLITS, "tiangong": (LOG,), **dict.fromkeys(LOGS, (LOG,))}
"""For each format of files, the parts of a data set."""
FURTHER = {"vectors": (ANNOTATIONS,), "baidu": (ANNOTATIONS,)}
"""For some formats, parts that a data set may have besides."""
NEEDED = {LETOR: ("name", "width", "label_max", "splits"), LOG: ("name", "splits")}
"""The keys that a configuration must give for rankings, and for a click log."""
KEYS = (*NEEDED[LETOR], "format", "reading")
"""All keys that a declaration may have."""


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


def source_from_config(mapping: Mapping[str, Any]) -> Source:
    """A data set that the user declares: a local folder of LETOR files, or a click log.

    The keys are `name` and `splits` (files relative to the folder). LETOR files are the train,
    validation and test split, and need `width` (number of features) and `label_max` (the highest
    label). A click log is one file, `log`, and needs `format`; with format "vectors" or "baidu" it
    may have `annotations`, too. It may have `reading`, the settings of the format's reader.
    """
    where, rest = "data source", {"format": LETOR, "reading": {}}
    if not isinstance(mapping, Mapping):
        raise InputError(f"{mapping!r} is not a mapping", field=where, expected=", ".join(KEYS))
    for key in mapping:
        check_choice(key, KEYS, field=where)
    form, parts = mapping.get("format", LETOR), mapping.get("splits")
    check_choice(form, FORMATS, field=f"{where}: format")
    if "format" not in mapping and isinstance(parts, Mapping) and LOG in parts:
        logs = ", ".join(name for name in FORMATS if name != LETOR)
        raise InputError("'format' is missing", field=where, expected=f"for a click log: {logs}")
    if form == LETOR:
        del rest["reading"]
    _check_keys(mapping, NEEDED[LETOR if form == LETOR else LOG], where, rest)
    if not isinstance(mapping["name"], str):
        raise InputError(f"{mapping['name']!r} is not text", field=f"{where}: name")
    if form == LETOR:
        check_range(mapping["width"], field=f"{where}: width", low=1, high=WIDEST, whole=True)
        # float32 holds whole labels up to this exactly.
        check_range(mapping["label_max"], field=f"{where}: label_max", low=1, high=2**24)
    check_settings(form, mapping.get("reading", {}), f"{where}: reading")
    _check_keys(parts, FORMATS[form], f"{where}: splits", FURTHER.get(form, ()))
    for split, path in parts.items():
        names = PurePosixPath(path).parts if isinstance(path, str) else ()
        if not names or names[0] == "/" or ".." in names:
            raise InputError(
                f"{path!r} is not allowed",
                field=f"{where}: splits: {split}",
                expected="a file in the folder",
            )
    return Source(
        **mapping,
        title=mapping["name"],
        version="",
        url="",
        sha256=None,
        licence="the user's own responsibility",
        access="local",
        how="Declared in the configuration: put its files into the folder given there.",
        files_sha256=dict.fromkeys(parts),
    )


def check_settings(format: str, settings: Any, field: str) -> None:
    """InputError for a setting that the reader of a format does not have; it checks values itself.

    Formats that are not of logs have no settings. `field` is the place of the settings, for
    messages.
    """
    known = LOGS[format].settings if format in LOGS else {}
    if not isinstance(settings, Mapping):
        expected = ", ".join(known) or "none"
        raise InputError(f"{settings!r} is not a mapping", field=field, expected=expected)
    for name, value in settings.items():
        if name not in known:
            raise InputError(
                f"format {format!r} has no setting {name!r}",
                field=field,
                expected=nearest(str(name), known) if known else "none",
            )
        try:
            TypeAdapter(known[name] | None).validate_python(value, strict=True)
        except ValidationError as error:
            raise InputError(
                f"{value!r} is not allowed",
                field=f"{field}: {name}",
                expected=error.errors()[0]["msg"].removeprefix("Input should be "),
            ) from None
    if settings.get("seen") is not None:
        further_of(settings["seen"])


def resolve(declared: str | Mapping[str, Any]) -> Source:
    """The source that a configuration names, or declares as a mapping."""
    return source(declared) if isinstance(declared, str) else source_from_config(declared)


def _check_keys(mapping: Any, keys: Iterable[str], where: str, optional: Iterable[str]) -> None:
    """Raise InputError for a missing or unknown key, or if `mapping` is not a mapping."""
    wanted = ", ".join(keys)
    if not isinstance(mapping, Mapping):
        raise InputError(f"{mapping!r} is not a mapping", field=where, expected=wanted)
    for key in mapping:
        check_choice(key, [*keys, *optional], field=where)
    for key in keys:
        if key not in mapping:
            raise InputError(f"{key!r} is missing", field=where, expected=wanted)
