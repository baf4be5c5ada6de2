"""The formats of click logs, each a file of `twotowers/logs/formats/`, and logs opened by them.

A format's file has a function `read(path, *, ...)`, whose parameters are its settings. Its constant
`LAYOUT` says in words what a row of such a log is, `COUNTED = True` that it is a cell, and `TEXTS =
True` that text may stand for whole numbers. No list is kept: a new file is a new format. Settings
of the same name mean the same:

    columns          our name -> the file's. Other columns have our names, or usual ones
                     (`twotowers.logs.layouts.USUAL`)
    bias             further columns to keep, a value per document; none has the name of one of ours
    strays           clicks on documents that are not on the page: 'drop', or 'error'
    repeats          further clicks on a document of one page, and pages that list a document twice
                     and do not say which was clicked: 'drop', or 'error'
    keys             whether to keep what tells pages apart, as columns `page:` and their names

Pages are read in the types of `twotowers.logs.sessions`. What was dropped is counted.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError, check_choice
from twotowers.files.artefacts import Source
from twotowers.logs.sessions import EQUAL, Stream, bias_features

FOLDER = Path(__file__).with_name("formats")
RULE = re.compile(r"clicked\+([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True)
class Format:
    """A format: how to read a `Stream` of pages or, if `counted`, of cells, and a row in words.

    `texts`: whether text may stand for whole numbers, as in a csv file.
    """

    read: Callable[..., Stream]
    layout: str
    counted: bool = False
    texts: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """The type of each setting of the reader. Formats of pages also have `seen`."""
        hints = get_type_hints(self.read)
        own = {name: hints.get(name, Any) for name in inspect.signature(self.read).parameters}
        own |= {} if self.counted else {"seen": str}
        return {name: kind for name, kind in own.items() if name != "path"}


def _found(name: str) -> Format:
    module = import_module(f"twotowers.logs.formats.{name}")
    said = (getattr(module, name, False) for name in ("COUNTED", "TEXTS"))
    return Format(module.read, module.LAYOUT, *said)


FORMATS = {path.stem: _found(path.stem) for path in sorted(FOLDER.glob("[!_]*.py"))}


def open_log(path: Source, format: str, **settings: Any) -> Stream:
    """A log in any of `FORMATS`, as a stream of batches.

    `settings` are the reader's, and for pages `seen`, the rule of `only_seen`. None is the default.
    """
    check_choice(format, FORMATS, field="format")
    known = FORMATS[format].settings
    settings = {name: value for name, value in settings.items() if value is not None}
    for name in settings:
        if name not in known:
            raise InputError(
                f"format {format!r} has no such setting",
                field=name,
                expected=", ".join(known) or "none",
            )
    if "seen" not in settings:
        return FORMATS[format].read(path, **settings)
    further = further_of(settings.pop("seen"))
    return only_seen(FORMATS[format].read(path, **settings), further)


def further_of(rule: object) -> int:
    """'clicked+2' -> 2."""
    match = RULE.fullmatch(rule) if isinstance(rule, str) else None
    if match is None:
        raise InputError(f"{rule!r}", field="seen", expected="clicked+0, clicked+1, ...")
    return int(match[1])


def only_seen(log: Stream, further: int) -> Stream:
    """The pages of a log, without the documents that were not seen.

    A log often lists what a page held, and not how far its user scrolled. The rule takes a click
    for proof that the documents above it were seen, and leaves out those from `further` documents
    below the lowest click on. Of a page without clicks it keeps the first `further` documents.
    Pages of which nothing was seen are left out, and counted (`pages_not_seen`), as are the
    documents that are left out of all pages (`documents_not_seen`).
    """
    return Stream(_cut(log, further), log.seen)


def _cut(log: Stream, further: int) -> Iterator[pa.RecordBatch]:
    left_out = dict.fromkeys(("documents_not_seen", "pages_not_seen"), 0)
    for batch in log.batches:
        lengths = batch["documents"].value_lengths().to_numpy()
        starts = np.cumsum(lengths) - lengths
        clicked = np.flatnonzero(batch["clicks"].flatten().to_numpy(zero_copy_only=False))
        page = np.searchsorted(starts, clicked, side="right") - 1
        lowest = np.zeros(len(batch), np.int64)
        np.maximum.at(lowest, page, clicked - starts[page] + 1)
        kept = np.minimum(lowest + further, lengths)
        place = np.arange(lengths.sum()) - np.repeat(starts, lengths)
        seen = pa.array(place < np.repeat(kept, lengths))
        offsets = pa.array(np.append(0, np.cumsum(kept)), pa.int32())
        for name in ("documents", "clicks", *bias_features(batch.schema)):
            lists = pa.ListArray.from_arrays(offsets, batch[name].flatten().filter(seen))
            batch = batch.set_column(batch.schema.get_field_index(name), name, lists)
        times = batch[EQUAL].to_numpy() if EQUAL in batch.schema.names else 1
        left_out["documents_not_seen"] += int(((lengths - kept) * times).sum())
        left_out["pages_not_seen"] += int(((kept == 0) * times).sum())
        log.seen.update(left_out)
        yield batch.filter(pa.array(kept > 0))
