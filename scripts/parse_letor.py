"""One split of a data set in LETOR text -> raw rankings."""

import json
from pathlib import Path

from twotowers.datasets.letor import read_letor
from twotowers.rankings import write_rankings


def main(inputs, outputs, *, split: str, label_max: float, width: int):
    manifest = json.loads(Path(inputs[0]).read_text(encoding="utf-8"))
    rankings = read_letor(manifest[split]["path"], width=width, label_max=label_max)
    write_rankings(rankings, outputs[0])


if "snakemake" in globals():
    from runner import run

    run(main, snakemake)  # noqa: F821
