"""What tasks of tests have in common."""

from collections.abc import Mapping

from twotowers.experiment.fields import read
from twotowers.experiment.paper import AnyLog
from twotowers.experiment.settings import Setting
from twotowers.methods.task import Split, Task
from twotowers.models.position_based import PositionBased
from twotowers.splits import SPLITS


def task_of(splits: Split | Mapping[str, Split], positions: int, /, **changes) -> Task:
    """One lane of a position-based model, without training. One split can be all three."""
    if isinstance(splits, Split):
        splits = dict.fromkeys(SPLITS, splits)
    given = {
        "model": PositionBased(),
        "tower": "embedding",
        "splits": splits,
        "lanes": [(0, {})],
        "training": {},
        "positions": positions,
        "seed": 0,
    }
    return Task(**given | changes)


def setting_of(given: Mapping, context: dict | None = None) -> Setting:
    """A setting whose log is its own, and not one of a paper by its name."""
    log = read(AnyLog, given["log"], context=context)
    return read(Setting, {**given, "log": log}, context=context)
