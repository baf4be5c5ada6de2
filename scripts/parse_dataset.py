"""One part of a data set in its own format -> parquet."""

import json
import logging
from pathlib import Path

import pyarrow.parquet as pq

from scripts.runner import job
from twotowers.datasets.letor import read_letor
from twotowers.files.artefacts import atomic
from twotowers.files.rankings import write_rankings
from twotowers.files.tables import write_batches
from twotowers.logs.click_log import log_of_format
from twotowers.logs.counted import CELL
from twotowers.logs.described import write_documents
from twotowers.logs.formats import baidu, vectors
from twotowers.logs.sessions import seen_in
from twotowers.logs.tiangong import read_tiangong
from twotowers.splits import ANNOTATIONS, DOCUMENTS, IDS, LOG, PAGES

LOGGER = logging.getLogger("twotowers.parse")
TIANGONG = "tiangong"
DESCRIBED = {"vectors": vectors, "baidu": baidu}
"""Readers of logs whose documents have features."""


@job
def main(
    inputs, outputs, *, split: str, format: str, label_max: float | None, width: int | None, reading
) -> None:
    """Write rankings, or the cells of a click log. Its metadata count what was left out.

    `split` may be a click log's cells, its pages, or the features of its documents.
    """
    manifest = json.loads(Path(inputs[0]).read_text(encoding="utf-8"))
    of = {PAGES: LOG, DOCUMENTS: LOG, IDS: ANNOTATIONS}
    source = manifest[of.get(split, split)]["path"]
    if format == "letor":
        write_rankings(read_letor(source, width=width, label_max=label_max), outputs[0])
        return
    if split == IDS:
        write_batches(outputs[0], DESCRIBED[format].ids_of(manifest[LOG]["path"], source))
        return
    if split == ANNOTATIONS:
        write_rankings(DESCRIBED[format].read_annotations(source), outputs[0])
        return
    if split == DOCUMENTS:
        documents = DESCRIBED[format].documents_of(source, columns=reading.get("columns"))
        write_documents(outputs[0], documents)
        return
    if split == PAGES:
        log_of_format(source, format, **reading).write(outputs[0])
    elif format == TIANGONG and not reading:
        with atomic(outputs[0]) as path:
            pq.write_table(read_tiangong(source), path)
    else:
        bias = reading.get("bias") or ()
        log_of_format(source, format, **reading).count([*CELL, *bias]).write(outputs[0])
    for what, number in seen_in(outputs[0]).items():
        LOGGER.info("%s: %d", what.replace("_", " "), number)
