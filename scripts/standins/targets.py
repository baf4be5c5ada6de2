"""Numbers of stand-ins beside their targets, and the search for a law that meets them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from scripts.filling import markdown
from twotowers.files.rankings import Rankings

SEED = 0  # as in twotowers.workflow.descriptions


@dataclass(frozen=True)
class Target:
    """A measured number, its bounds, and the number of the real set.

    Attributes:
        at: Where it was measured, if the page shows several numbers of one quantity in a row.
        accepted: The bounds in words; absent, the bounds.
    """

    quantity: str
    found: float
    low: float
    high: float
    published: str
    form: str = ".3f"
    at: str | int = ""
    accepted: str = ""

    @classmethod
    def within(
        cls, quantity: str, found: float, published: float, share: float, at: str | int = ""
    ) -> Target:
        """Bounds at this relative distance from the published number."""
        form = ".4f" if published < 0.1 else ".3f" if published < 3 else ".2f"
        low, high = (published * (1 + sign * share) for sign in (-1, 1))
        return cls(quantity, found, low, high, f"{published:{form}}", form, at, f"± {share:.0%}")

    @property
    def met(self) -> bool:
        return self.low <= self.found <= self.high

    @property
    def bounds(self) -> str:
        return self.accepted or f"{self.low:{self.form}} to {self.high:{self.form}}"

    @property
    def told(self) -> str:
        """The number, in bold if it is out of bounds."""
        return f"{self.found:{self.form}}" if self.met else f"**{self.found:{self.form}}**"

    def __str__(self) -> str:
        return " | ".join(row_of([self]))


def row_of(targets: Sequence[Target]) -> list[str]:
    """A row of a page, of targets that differ in `at` alone."""
    first, places = targets[0], [str(each.at) for each in targets if each.at != ""]
    if len(places) > 2 and all(map(str.isdigit, places)):
        places = [f"{places[0]} to {places[-1]}"]
    quantity = f"{first.quantity}: {', '.join(places)}" if places else first.quantity
    found, published = (
        ", ".join(each) for each in zip(*((t.told, t.published) for t in targets), strict=True)
    )
    return [quantity, found, first.bounds, published]


HEADS = ("quantity", "stand-in", "accepted", "published")
Tables = Mapping[str, "list[Target] | str"]
"""What goes into each place of a page: targets, or text."""


def written(found: Tables) -> dict[str, str]:
    return {name: each if isinstance(each, str) else _table(each) for name, each in found.items()}


def _table(targets: Sequence[Target]) -> str:
    rows = groupby(targets, lambda each: (each.quantity, each.bounds))
    return markdown(HEADS, (row_of(list(own)) for _, own in rows), "---:")


def missed(found: Tables) -> list[str]:
    """The rows whose numbers miss their targets."""
    rows = (row for each in found.values() if not isinstance(each, str) for row in each)
    return [str(row) for row in rows if not row.met]


def thousandths(values: Iterable[float]) -> str:
    """Several numbers in one cell."""
    return ", ".join(f"{value:.3f}" for value in values)


def told(rows: Sequence[tuple], *further: str) -> str:
    """A table of numbers that were not calibrated."""
    texts = ([f"{v:.3f}" if isinstance(v, float) else v for v in row] for row in rows)
    return markdown(["quantity, not calibrated", "stand-in", *further], texts, "---:")


def mean_of(metric: Callable, scores: np.ndarray, lists: Rankings, **options) -> float:
    """The mean of a metric of `twotowers.claims.metrics` over lists, of [rows] scores."""
    *columns, where = lists.padded(scores, lists.label)
    return float(metric(*columns, where=where, **options).mean())


# The search


def apart(found: float, wanted: float) -> float:
    return float(np.log(max(found, 1e-9) / wanted) ** 2)


def value_of(law, name: str) -> float:
    return getattr(law if hasattr(law, name) else law.users, name)


def moved(law, values: Mapping[str, float]):
    """The law with other values, of its own or of its users."""
    own = {name: value for name, value in values.items() if hasattr(law, name)}
    if users := {name: value for name, value in values.items() if name not in own}:
        own["users"] = replace(law.users, **users)
    return replace(law, **own)


def nearest_law(law_of: Callable, start, steps, distance: Callable, *, most: int):
    """The law whose distance is least, by Nelder and Mead's method on its values.

    Args:
        law_of: values -> law.
        start, steps: of the first simplex.
        distance: law -> its distance from the targets.
        most: evaluations.
    """
    simplex = np.array([start, *(start + np.eye(len(start)) * steps)])
    options = {"initial_simplex": simplex, "maxfev": most, "xatol": 2e-3, "fatol": 1e-8}
    found = minimize(
        lambda values: distance(law_of(values)), start, method="Nelder-Mead", options=options
    )
    best = law_of(found.x)
    print(f"{found.fun:.2e} after {found.nfev}: {best}", file=sys.stderr, flush=True)
    return best


BOUNDED = ("patience", "unsatisfied", "readers", "ranked")
TURNS = {"bounded": (logit, expit), "positive": (np.log, np.exp), "free": (float, float)}


def descend(law, names: Sequence[str], distance: Callable, *, positive=(), steps=0.4):
    """The law with the values of some parameters that come nearest to the targets.

    Those in (0, 1) move by their log-odds, and the `positive` ones by their logarithms.
    """
    turns = [
        TURNS["bounded" if name in BOUNDED else "positive" if name in positive else "free"]
        for name in names
    ]

    def law_of(values):
        pairs = zip(names, turns, values, strict=True)
        return moved(law, {name: round(float(back(value)), 4) for name, (_, back), value in pairs})

    pairs = zip(names, turns, strict=True)
    start = [there(value_of(law, name)) for name, (there, _) in pairs]
    return nearest_law(law_of, start, steps, distance, most=60 * len(names))
