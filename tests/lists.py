"""The fully synthetic lists of Chen et al. (2024), as experiment.yaml has them."""

from __future__ import annotations

from tests.items import experiment
from twotowers.identifiability.linked_lists import Lists, linked_lists


def given_lists(components: int, seed: int = 0) -> Lists:
    """The lists of a number of components, drawn by a seed."""
    lists = experiment("chen2024").logs[f"k{components}"].lists.model_dump()
    return linked_lists(positions=10, **lists | {"seed": seed})
