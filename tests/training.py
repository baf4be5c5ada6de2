"""Settings of short fits, and models of pages with one kind of tower."""

from flax import nnx

from twotowers.models.protocol import PER_DOCUMENT
from twotowers.towers.page_towers import PageTowers, Reading


def short(learning_rate: float, *, batch: int, epochs: int, **others) -> dict:
    """Training that goes on to its last epoch, unless `others` have a patience."""
    rest = {"patience": epochs, "min_delta": 0.0} | others
    return {"learning_rate": learning_rate, "batch": batch, "epochs": epochs, **rest}


def page_towers(model, build, widths: dict[str, int], positions: int, *, seed: int) -> PageTowers:
    """A tower of documents for each part per document, and tables, from the names and sizes of what
    towers read."""
    tower = Reading(build, tuple(widths))
    parts = {part: tower if kind == PER_DOCUMENT else None for part, kind in model.parts.items()}
    return PageTowers(model, parts, widths, positions, rngs=nnx.Rngs(seed))
