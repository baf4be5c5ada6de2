"""One part of a data set, in the format it is published in -> parquet."""

import json
import logging
from pathlib import Path

import pyarrow.parquet as pq

from scripts.runner import run
from twotowers.datasets.letor import read_letor
from twotowers.files.artefacts import atomic
from twotowers.files.rankings import write_rankings
from twotowers.logs.sessions import seen_in
from twotowers.logs.tiangong import read_tiangong
from twotowers.logs.yandex import read_yandex

LOGGER = logging.getLogger("twotowers.parse")
IN_MEMORY = {"tiangong": read_tiangong, "yandex": read_yandex}
"""Small logs that have a reader of their own, where nothing is set."""


def main(
    inputs,
    outputs,
    *,
    split: str,
    format: str,
    label_max: float | None,
    width: int | None,
    reading: dict,
) -> None:
    """Write rankings, or the cells of a click log with what was left out in the metadata.

    Args:
        inputs: the manifest.
        outputs: one path.
        split: the part.
        format, label_max, width, reading: see `twotowers.datasets.sources.Source`.
    """
    manifest = json.loads(Path(inputs[0]).read_text(encoding="utf-8"))
    source = manifest[split]["path"]
    if format == "letor":
        write_rankings(read_letor(source, width=width, label_max=label_max), outputs[0])
        return
    if format in IN_MEMORY and not reading:
        with atomic(outputs[0]) as path:
            pq.write_table(IN_MEMORY[format](source), path)
    else:
        # Not with the imports above: DuckDB, of all that jobs import, complains at the end of one
        # if it is set apart from Python's search for garbage. LETOR files need none of it.
        from twotowers.logs.formats import to_log

        to_log(source, outputs[0], format=format, threads=1, **reading)
    for what, number in seen_in(outputs[0]).items():
        LOGGER.info("%s: %d", what.replace("_", " "), number)


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
