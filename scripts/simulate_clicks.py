"""What users see -> the clicks of every lane and split of a log."""

from scripts.runner import run
from twotowers.experiment.any_log import AnyLog
from twotowers.experiment.fields import read
from twotowers.workflow.plan import planned


def main(inputs, outputs, *, paper: str, name: str, seed: int):
    log = read(AnyLog, planned("logs", paper, name), context={"paper": paper})
    log.simulate(dict(inputs.items()), outputs[0], seed=seed)


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
