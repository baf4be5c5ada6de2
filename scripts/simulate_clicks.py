"""What users see -> the clicks of every lane and split of a log."""

from scripts.runner import run
from twotowers.experiment.any_log import AnyLog
from twotowers.experiment.fields import read


def main(inputs, outputs, *, paper: str, log: dict, seed: int):
    settled = read(AnyLog, log, context={"paper": paper})
    settled.simulate(dict(inputs.items()), outputs[0], seed=seed)


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
