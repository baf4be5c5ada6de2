"""Items of the papers, drawn as in a job from experiment.yaml."""

from __future__ import annotations

from functools import cache

from twotowers.experiment.experiments import Experiment, load_experiment

from twotowers import ROOT
from twotowers.experiment.kinds import Drawing, build_drawing
from twotowers.files.yamls import read_yaml


@cache
def experiment(paper: str) -> Experiment:
    """A paper's experiment, as config.yaml has it."""
    return load_experiment(paper, read_yaml(ROOT / "config.yaml"))


def drawing(paper: str, item: str) -> Drawing:
    """What draws an item."""
    parameters = dict(experiment(paper).items[item]["draw"])
    return build_drawing(parameters.pop("kind"), paper, **parameters)
