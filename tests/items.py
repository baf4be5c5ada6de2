"""Items of the papers, drawn as in a job from experiment.yaml."""

from functools import cache

from twotowers.experiment.components import find
from twotowers.experiment.config import read_config
from twotowers.experiment.paper import Paper, load_paper
from twotowers.files.yamls import read_yaml
from twotowers.identifiability.linked_lists import Lists, linked_lists
from twotowers.report.drawing import Drawing
from twotowers.root import ROOT


@cache
def experiment(paper: str, scale: str | None = None, only: str | None = None) -> Paper:
    """A paper's experiment with what is ours alone, at the scale of config.yaml or another."""
    changed = {"also": read_yaml(ROOT / "config" / "our_own.yaml")["also"]}
    changed |= {"scale": scale} if scale else {}
    changed |= {"only": [f"{paper}/{only}"]} if only else {}
    return load_paper(paper, read_config(read_yaml(ROOT / "config.yaml") | changed))


def drawing(paper: str, item: str, scale: str | None = None) -> Drawing:
    """What draws an item."""
    made = experiment(paper, scale).items
    found = made[item] if item in made else experiment(paper, scale, only=item).items[item]
    return Drawing(found.drawing(paper).module.__name__, found.parameters)


def built(name: str, paper: str, **parameters) -> Drawing:
    """A drawing with the given parameters."""
    return Drawing(find("drawings", name, paper).module.__name__, parameters)


def given_lists(components: int, seed: int = 0) -> Lists:
    """The lists of a number of components, drawn by a seed."""
    lists = experiment("chen2024").logs[f"k{components}"].lists.model_dump()
    return linked_lists(positions=10, **lists | {"seed": seed})
