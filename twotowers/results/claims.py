"""Claims of papers, and verdicts on them.

A claim is a sentence, its conditions, and a judge. The judge is a function of a long-form result
(see `twotowers.results.statistics`) without thresholds. It returns the measured numbers as a text,
and one value per condition, in their order. A condition holds its threshold once. The expectation,
the verdict and its reason are derived from it.

    >>> from twotowers.results.conditions import above, at_most, number
    >>> CLAIMS = Claims()
    >>> @CLAIMS.add(
    ...     "1", "fig2", "Sec. 8.1", "The truth is recovered",
    ...     at_most("every error", 0.1), above("the error at position 25", 0.05),
    ... )
    ... def recovered(results):
    ...     error = seed_means(results, {"position": (10, 25)}, metric="error")
    ...     return f"errors {number(error[10])} and {number(error[25])}", [error, error[25]]
    >>> CLAIMS[0].expected
    'every error is at most .1; the error at position 25 is above .05'
    >>> rows = [("error", 10, 1, 0.12), ("error", 25, 1, 0.06)]
    >>> results = pd.DataFrame(rows, columns=["metric", "position", "seed", "value"])
    >>> found = judge(CLAIMS[0], results)
    >>> found.verdict, found.measured, found.reason
    ('not reproduced', 'errors .120 and .060', 'fails: every error is at most .1')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from string import ascii_lowercase

import numpy as np
import pandas as pd

from twotowers.results.conditions import Condition, short
from twotowers.results.standing import REAL, weakest
from twotowers.results.statistics import over_seeds, select

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
NOT_TESTABLE = "not testable"

COLUMNS = [
    "claim", "item", "statement", "where", "measured", "authors", "expected", "verdict", "reason",
    "stands_on",
]  # fmt: skip

# What a judge returns: the measured numbers as a text, and one value per condition.
Measured = tuple[str, Iterable]


class NotTestable(Exception):
    """A judge raises it if the result lacks what the claim is about. The message says what."""


@dataclass(frozen=True)
class Judgement:
    """The outcome of a claim.

    Attributes:
        verdict: REPRODUCED, NOT_REPRODUCED or NOT_TESTABLE.
        measured: The numbers behind the verdict, as a short text.
        reason: Which conditions failed, or what was missing. Empty if the claim is reproduced.
    """

    verdict: str
    measured: str
    reason: str = ""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper.

    Attributes:
        id: Its name on the page: a number, followed by a letter if the claim has parts.
        item: The figure or table that it belongs to. The judge sees the results of this item.
        where: Where the paper says it.
        statement: What the paper says, in one sentence.
        conditions: The conditions, all of which must hold.
        judge: Function of a long-form result that returns the measured numbers as a text, and one
            value per condition. It raises NotTestable if the result lacks what the claim is about.
        also: Other items whose results the judge sees too.
    """

    id: str
    item: str
    where: str
    statement: str
    conditions: Sequence[Condition]
    judge: Callable[[pd.DataFrame], Measured]
    also: Sequence[str] = ()

    @property
    def expected(self) -> str:
        """All conditions as a text."""
        return "; ".join(condition.words for condition in self.conditions)


class Claims(list[Claim]):
    """The claims of a paper, or of a part of it. A decorator adds each claim to its judge."""

    def add(
        self,
        id: str,
        item: str,
        where: str,
        statement: str,
        *conditions: Condition,
        parts: Mapping[str, Mapping[str, object]] | None = None,
        letters: str = ascii_lowercase,
        also: Sequence[str] = (),
        **lane,
    ) -> Callable:
        """A decorator that adds the claims measured by a judge.

        Args:
            id, item, where, statement, conditions, also: As in `Claim`.
            parts: Label -> arguments of the judge, for a statement about several cases. Each makes
                a claim of its own, such as 4a and 4b, and the label ends its statement.
            letters: The letters of the parts.
            lane: Further arguments of the judge.
        """

        def of(judge: Callable) -> Callable:
            if parts is None:
                one = partial(judge, **lane)
                self.append(Claim(id, item, where, statement, conditions, one, also))
                return judge
            for letter, (label, part) in zip(letters[: len(parts)], parts.items(), strict=True):
                text, one = f"{statement} ({label})", partial(judge, **lane, **part)
                self.append(Claim(id + letter, item, where, text, conditions, one, also))
            return judge

        return of


def in_order(*lists: Iterable[Claim]) -> list[Claim]:
    """The claims of several lists, sorted by number and letter."""
    return sorted(
        chain(*lists), key=lambda claim: (int(claim.id.rstrip(ascii_lowercase)), claim.id)
    )


def judge(claim: Claim, results: pd.DataFrame) -> Judgement:
    """Judge one claim.

    It is reproduced if every condition holds. Otherwise the reason names the conditions that fail.
    It is not testable if the result lacks what the judge needs, or if only conditions with an
    `otherwise` fail.
    """
    try:
        measured, values = claim.judge(results)
    except NotTestable as lacking:
        return Judgement(NOT_TESTABLE, measured="", reason=str(lacking))
    pairs = zip(claim.conditions, values, strict=True)
    failed = [condition for condition, value in pairs if not condition.met_by(value)]
    if not failed:
        return Judgement(REPRODUCED, measured)
    if all(condition.otherwise for condition in failed):
        return Judgement(NOT_TESTABLE, measured, failed[0].otherwise)
    words = [condition.words for condition in failed if not condition.otherwise]
    return Judgement(NOT_REPRODUCED, measured, "fails: " + "; ".join(words))


def judge_all(
    claims: Iterable[Claim],
    results: pd.DataFrame,
    authors: pd.DataFrame | None,
    *,
    items: Mapping[str, Sequence[str]],
    data: Mapping[str, str],
) -> pd.DataFrame:
    """Judge every claim on the results that its items are drawn from.

    A judge sees no other results, so `stands_on` covers all data behind a verdict. The results that
    a judge sees have a column `stands_on` too, with the kind of data behind each row.

    Args:
        claims: The claims of one paper.
        results: Our results, long form.
        authors: The authors' published results in the same form, with each mean as a single seed;
            None if nothing is published.
        items: Item -> the settings and studies that it is drawn from. A claim whose items are not
            among these is judged on all results.
        data: Setting or study -> what it reads, one of `twotowers.results.standing.KINDS`.

    Returns:
        One row per claim with the columns COLUMNS. `authors` is the judge's text on the published
        results, empty if they lack what it needs. `stands_on` is the weakest kind of data behind
        the results that the judge saw.
    """
    results = results.assign(stands_on=results["setting"].map(data))
    if authors is not None:
        authors = authors.assign(stands_on=REAL)
    rows = []
    for claim in claims:
        known = [items[name] for name in (claim.item, *claim.also) if name in items]
        needs = list(chain(*known)) or list(data)
        seen = results[results["setting"].isin(needs)]
        ours = judge(claim, seen)
        theirs = "" if authors is None else judge(claim, authors).measured
        rows.append(
            (claim.id, claim.item, claim.statement, claim.where, ours.measured, theirs,
             claim.expected, ours.verdict, ours.reason, weakest(data[need] for need in needs))
        )  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def seed_means(results: pd.DataFrame, over: Mapping[str, Sequence | None], **where) -> pd.Series:
    """Means over seeds, at every point of a grid.

    Args:
        results: Long form.
        over: The grid: column -> the values it must have, or None for all values in the results.
        where: The selection, as in `select`.

    Returns:
        One mean per grid point, indexed by the columns of `over` (values as given there).

    Raises:
        NotTestable: a grid point is missing, not finite, or lacks a seed that another one has.
    """
    about = ", ".join(f"{column} {value}" for column, value in where.items())
    # `select` would raise a KeyError if the results lack a column.
    rows = select(results, **where) if set(where) <= set(results) else results.iloc[:0]
    if rows.empty:
        raise NotTestable(f"no results for {about}")
    levels = [
        sorted(rows[column].unique()) if values is None else list(values)
        for column, values in over.items()
    ]
    for column, values in zip(over, levels, strict=True):
        rows = _snapped(select(rows, **{column: values}), column, values)
    summary = over_seeds(rows, list(over)).set_index(list(over))
    cells = pd.MultiIndex.from_product(levels, names=list(over))
    if len(over) == 1:
        cells = pd.Index(levels[0], name=cells.names[0])
    absent = cells.difference(summary.index, sort=False)
    if len(absent):
        raise NotTestable(f"{about}: no results at {_listed(absent)}")
    summary = summary.loc[cells]
    infinite = ~np.isfinite(summary["value"])
    if infinite.any():
        raise NotTestable(f"{about}: not a finite number at {_listed(cells[infinite])}")
    fewer = summary["n"] < summary["n"].max()
    if fewer.any():
        raise NotTestable(f"{about}: seeds missing at {_listed(cells[fewer])}")
    return summary["value"]


def _snapped(rows: pd.DataFrame, column: str, values: Sequence) -> pd.DataFrame:
    """Replace numbers by the nearest values asked for, so that both are equal as index keys."""
    if all(isinstance(value, str) for value in values):
        return rows
    found = rows[column].to_numpy(dtype=float)
    nearest = np.abs(found[:, None] - np.asarray(values, float)).argmin(axis=1)
    return rows.assign(**{column: np.asarray(values)[nearest]})


def _listed(cells: pd.Index, most: int = 3) -> str:
    names = cells.names
    texts = [
        " ".join(
            f"{name} {value if isinstance(value, str) else short(value)}"
            for name, value in zip(names, cell if len(names) > 1 else [cell], strict=True)
        )
        for cell in cells[:most]
    ]
    more = f" and {len(cells) - most} more" if len(cells) > most else ""
    return ", ".join(texts) + more
