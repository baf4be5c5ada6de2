"""What users see -> the clicks of every lane and split of a log."""

from scripts.runner import job
from twotowers.experiment.objects import loaded


@job
def main(inputs, outputs, *, paper: str, log: dict, seed: int):
    loaded(log).simulate(dict(inputs.items()), outputs[0], seed=seed)
