"""Exact EM on counts of cells, for click models with independent binary causes of a click.

A cell is a document d at a position k, with its impressions and clicks. The parts of a model are
binary variables such as "d attracts" and "k is examined". Each part has one probability per
document or per position. Impressions are independent, so a cell's counts are sufficient statistics
(`logs.cells`). EM (Dempster et al., 1977; for click models Chuklin et al., 2015, Chapter 4) repeats

    E-step  for each cell and part: P(part | click) and P(part | no click), by `expectations`
    M-step  p = sum(clicks P(part | click) + (impressions - clicks) P(part | no click))
                / sum(impressions), over the cells of each document or position

This never lowers the likelihood. EM can fit any model of `twotowers.models` that has
`expectations`, such as the position-based one. A new model gives its parts, the click probability
and the two posteriors:

    >>> class TrustBias:
    ...     # After examination, P(click) is 0.9 for an attractive document, and 0.1 for others.
    ...     parts = {"attraction": "document", "examination": "position"}
    ...
    ...     def probability(self, attraction, examination):
    ...         return examination * (0.1 + 0.8 * attraction)
    ...
    ...     def expectations(self, attraction, examination):
    ...         examined = 0.1 + 0.8 * attraction  # P(click | examined)
    ...         none = 1 - examination * examined  # P(no click)
    ...         return {
    ...             "attraction": (0.9 * attraction / examined,
    ...                            attraction * (1 - 0.9 * examination) / none),
    ...             "examination": (1, examination * (1 - examined) / none),
    ...         }
    >>> import numpy as np
    >>> cells = CellCounts(document=np.array([0, 0, 1, 1]), position=np.array([0, 1, 0, 1]),
    ...                    impressions=np.full(4, 1000), clicks=np.array([740, 370, 260, 130]))
    >>> fitted = fit_em(cells, TrustBias(), start={"examination": [1, 0.5]})
    >>> fitted.parameters["attraction"].round(3).tolist()
    [0.8, 0.2]
    >>> fitted.parameters["examination"].round(3).tolist()
    [1.0, 0.5]

`fitting.alternating` has the same update for many lanes of the position-based model, on a GPU if
there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.special import xlog1py, xlogy

from twotowers.errors import InputError, check_range
from twotowers.fitting.ascent import climb
from twotowers.models.position_based import PositionBased


@dataclass(frozen=True)
class CellCounts:
    """Impressions and clicks of the cells that were shown.

    Attributes:
        document: [cells] integers >= 0, which document (of which query).
        position: [cells] integers >= 0, which position, or any other bias factor.
        impressions: [cells] >= 0. Fractions are allowed, for expected counts.
        clicks: [cells] in [0, impressions].
        documents: number of documents, one more than the largest in `document`.
        positions: number of positions, one more than the largest in `position`.

    Raises:
        InputError: shapes disagree, or a value is out of range.
    """

    document: np.ndarray
    position: np.ndarray
    impressions: np.ndarray
    clicks: np.ndarray
    documents: int = field(init=False)
    positions: int = field(init=False)

    def __post_init__(self):
        shape = np.shape(self.document)
        for name in ("document", "position", "impressions", "clicks"):
            values = np.asarray(getattr(self, name))
            if values.ndim != 1 or values.shape != shape:
                raise InputError(f"has shape {values.shape}", field=name, expected="[cells]")
            if name in ("document", "position") and values.dtype.kind not in "iu":
                raise InputError(f"has type {values.dtype}", field=name, expected="integers")
            high = self.impressions if name == "clicks" else np.inf
            bad = values[~((values >= 0) & (values <= high) & np.isfinite(values))]
            if bad.size:
                limit = ", at most impressions" if name == "clicks" else ""
                raise InputError(f"{bad[0]} is out of range", field=name, expected=f">= 0{limit}")
        object.__setattr__(self, "documents", int(np.max(self.document, initial=-1)) + 1)
        object.__setattr__(self, "positions", int(np.max(self.position, initial=-1)) + 1)


class ClickModel(Protocol):
    """What `fit_em` needs from a model. The module's docstring has an example.

    Attributes:
        parts: name of each binary variable -> "document" or "position": it has one probability
            per document, or per position. The variables of a cell must be independent if its
            clicks are not known.
    """

    parts: Mapping[str, str]

    def probability(self, **parts: np.ndarray) -> np.ndarray:
        """P(click) of each cell, in [0, 1], from the probability of each part there: [cells]."""

    def expectations(self, **parts: np.ndarray) -> Mapping[str, tuple]:
        """For each part (P(part | click), P(part | no click)), as numbers or [cells] arrays.

        A posterior given an impossible event may be NaN. Cells without such events do not use it.
        """


@dataclass(frozen=True)
class EMEstimate:
    """The result of EM.

    Attributes:
        parameters: part -> probabilities in [0, 1], [documents] or [positions].
        history: [iterations + 1] log-likelihood in nats (plus the log density of the priors, up to
            a constant) at the start and after each iteration. It never falls.
        iterations: number of iterations done.
        converged: whether the last iteration gained less than the tolerance.
    """

    parameters: dict[str, np.ndarray]
    history: np.ndarray
    iterations: int
    converged: bool


def fit_em(
    cells: CellCounts,
    model: ClickModel | None = None,
    *,
    start: Mapping[str, np.ndarray | float] | None = None,
    prior: Mapping[str, tuple[float, float]] | None = None,
    iterations: int = 10_000,
    tolerance: float = 1e-10,
    accelerate: bool = True,
) -> EMEstimate:
    """Maximise the likelihood of the clicks by EM.

    The module's docstring has the formulas and an example.

    Args:
        cells: impressions and clicks.
        model: `PositionBased()` if None.
        start: part -> one probability, or one per document or position. The default is 0.5.
            Without a prior, EM keeps 0 and 1. So a start of 1 fixes a position as surely examined.
            Documents and positions that were never shown keep their start too.
        prior: part -> (alpha, beta), both >= 1, of a Beta prior on each of its probabilities. The
            result is then the mode of the posterior. The default is uniform, (1, 1).
        iterations: largest number of iterations, 1 or more.
        tolerance: in [0, 1]. EM stops when an iteration gains no more than this, relative to the
            absolute log-likelihood or to 1, whichever is larger.
        accelerate: True makes an iteration one cycle of SQUAREM (Varadhan and Roland, 2008, their
            third step length). A cycle takes the time of about three EM steps and gets as far as
            many. False makes it one EM step.

    Returns:
        The parameters, and the log-likelihood after each iteration.

    Raises:
        InputError: an argument is out of range, the start makes the clicks impossible, or the
            likelihood fell, which means that the model's `expectations` do not fit its
            `probability`.
    """
    problem = _Problem(cells, model or PositionBased(), prior or {})
    found, history, converged = climb(
        problem,
        problem.start(start or {}),
        iterations=iterations,
        tolerance=tolerance,
        accelerate=accelerate,
        name=type(problem.model).__name__,
    )
    return EMEstimate(problem.split(found), history, len(history) - 1, converged)


class _Problem:
    """EM on one vector: the probabilities of all parts, one after the other."""

    often = 1.0

    def __init__(self, cells: CellCounts, model: ClickModel, prior: Mapping):
        self.model = model
        self.clicks = np.asarray(cells.clicks, float)
        self.none = np.asarray(cells.impressions, float) - self.clicks
        sizes = {"document": cells.documents, "position": cells.positions}
        self.slices, self.index, successes, failures = {}, {}, [], []
        _check_parts("prior", prior, model.parts)
        for part, by in model.parts.items():
            if by not in sizes:
                raise InputError(f"{part} is one per {by}", field="parts", expected=f"{[*sizes]}")
            first = sum(map(len, successes))
            self.slices[part] = slice(first, first + sizes[by])
            self.index[part] = first + np.asarray(getattr(cells, by))
            alpha, beta = (
                check_range(value, field=f"prior of {part}", low=1, high=1e9)
                for value in prior.get(part, (1, 1))
            )
            successes.append(np.full(sizes[by], alpha - 1.0))
            failures.append(np.full(sizes[by], beta - 1.0))
        self.successes, self.failures = np.concatenate(successes), np.concatenate(failures)
        self.trials = self.successes + self.failures
        for index in self.index.values():
            self.trials += np.bincount(index, self.clicks + self.none, len(self.trials))

    def start(self, given: Mapping) -> np.ndarray:
        """The first vector."""
        _check_parts("start", given, self.slices)
        vector = np.full(len(self.trials), 0.5)
        for part, values in given.items():
            here = vector[self.slices[part]]
            if np.shape(values) not in ((), here.shape):
                raise InputError(
                    f"{part} has shape {np.shape(values)}", field="start", expected=f"{here.shape}"
                )
            here[:] = values
            if not ((here >= 0) & (here <= 1)).all():
                raise InputError(f"{part} is out of range", field="start", expected="[0, 1]")
        return vector

    def split(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """The probabilities by part."""
        return {part: vector[place].copy() for part, place in self.slices.items()}

    def objective(self, vector: np.ndarray) -> float:
        """Log-likelihood plus log prior."""
        chance = self.model.probability(**self._of_cells(vector))
        likelihood = xlogy(self.clicks, chance) + xlog1py(self.none, -chance)
        prior = xlogy(self.successes, vector) + xlog1py(self.failures, -vector)
        return float(likelihood.sum() + prior.sum())

    def step(self, vector: np.ndarray) -> np.ndarray:
        """An E-step and an M-step."""
        with np.errstate(divide="ignore", invalid="ignore"):
            posteriors = self.model.expectations(**self._of_cells(vector))
            _check_parts("expectations", posteriors, self.slices, complete=True)
            expected = {
                part: np.where(self.clicks > 0, self.clicks * given_click, 0)
                + np.where(self.none > 0, self.none * given_none, 0)
                for part, (given_click, given_none) in posteriors.items()
            }
        successes = self.successes.copy()
        for part, values in expected.items():
            successes += np.bincount(self.index[part], values, len(successes))
        shown = self.trials > 0
        return np.where(shown, np.minimum(successes / np.where(shown, self.trials, 1), 1), vector)

    def _of_cells(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        return {part: vector[index] for part, index in self.index.items()}


def _check_parts(name: str, given, parts, *, complete: bool = False) -> None:
    """Raise InputError if `given` has an unknown part, or, if `complete`, lacks one."""
    if set(given) - set(parts) or (complete and set(parts) - set(given)):
        raise InputError(
            f"has the parts {sorted(given)}", field=name, expected=f"the parts {sorted(parts)}"
        )
