"""One part of a data set, in the format it is published in -> parquet."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from scripts.runner import run
from twotowers.datasets.letor import read_letor
from twotowers.files.artefacts import atomic
from twotowers.files.rankings import write_rankings
from twotowers.logs.tiangong import read_tiangong
from twotowers.logs.yandex import read_yandex

LOGS = {"tiangong": read_tiangong, "yandex": read_yandex}


def main(inputs, outputs, *, split: str, format: str, label_max: float | None, width: int | None):
    manifest = json.loads(Path(inputs[0]).read_text(encoding="utf-8"))
    source = manifest[split]["path"]
    if format in LOGS:
        with atomic(outputs[0]) as path:
            pq.write_table(LOGS[format](source), path)
    else:
        write_rankings(read_letor(source, width=width, label_max=label_max), outputs[0])


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
