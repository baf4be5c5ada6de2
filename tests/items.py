"""Items of the papers, drawn as in a job from experiment.yaml."""

from __future__ import annotations

from functools import cache

from twotowers import ROOT
from twotowers.experiment.config import read_config
from twotowers.experiment.kinds import Drawing
from twotowers.experiment.paper import Paper, load_paper
from twotowers.files.yamls import read_yaml


@cache
def experiment(paper: str, scale: str | None = None) -> Paper:
    """A paper's experiment, as config.yaml has it, at its scale or another."""
    config = read_yaml(ROOT / "config.yaml")
    return load_paper(paper, read_config(config | ({"scale": scale} if scale else {})))


def drawing(paper: str, item: str, scale: str | None = None) -> Drawing:
    """What draws an item."""
    found = experiment(paper, scale).items[item]
    return Drawing(found.drawing(paper), found.parameters)
