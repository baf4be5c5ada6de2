"""A study: cases, draws of each, what is counted over draws, and the tables of a page."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from twotowers.fitting.curves import Curve

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Study:
    """What a study draws and counts.

    Attributes:
        results: name of its csv file in `benchmarks/results`.
        key: the column of the file that names the case.
        cases: names of the cases.
        draw: case, seed -> rows.
        summary: all rows -> the table that is kept.
        draws: number of draws of a case, unless the command names another.
        first: the first seed.
    """

    results: str
    key: str
    cases: Iterable[str]
    draw: Callable[[str, int], list[dict]]
    summary: Callable[[pd.DataFrame], pd.DataFrame] = pd.DataFrame
    draws: int = 1
    first: int = 0

    @property
    def path(self) -> Path:
        return RESULTS / f"{self.results}.csv"

    def table(self) -> pd.DataFrame:
        return pd.read_csv(self.path)


def held(curve: Curve, truth: np.ndarray) -> dict[str, int]:
    """How many bias factors there are besides the reference, the intervals of these that are
    without doubt, and those of the latter that hold the truth."""
    other = np.arange(len(truth)) != curve.reference
    sure = other & (curve.reason == "")
    inside = ((curve.low <= truth) & (truth <= curve.high))[sure]
    return {"inside": inside.sum(), "sure": sure.sum(), "factors": other.sum()}
