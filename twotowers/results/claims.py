"""What a paper says, and whether a result bears it out.

A claim carries a judge: a function of a long-form result (see `twotowers.results.statistics`) that
measures what the claim speaks of and compares it with a threshold. A verdict is always computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from twotowers.results.statistics import over_seeds, select

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
NOT_TESTABLE = "not testable"

_leading_zero = re.compile(r"^(-?)0\.")

COLUMNS = [
    "claim", "item", "statement", "where", "measured", "authors", "expected", "verdict", "reason",
]  # fmt: skip


class NotTestable(Exception):
    """Raised by a judge whose result lacks what the claim speaks of; the message says what."""


@dataclass(frozen=True)
class Judgement:
    """What a judge found.

    Attributes:
        verdict: REPRODUCED, NOT_REPRODUCED or NOT_TESTABLE.
        measured: The numbers behind it, compactly.
        reason: Which conditions failed, or what was lacking.
    """

    verdict: str
    measured: str
    reason: str = ""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper.

    Attributes:
        id: Its name on the page: a number, with a letter where it has parts.
        item: The figure or table that it belongs to.
        statement: What the paper says, in a sentence.
        where: Where the paper says it.
        expected: The threshold in words and numbers.
        judge: From a long-form result to a judgement.
    """

    id: str
    item: str
    statement: str
    where: str
    expected: str
    judge: Callable[[pd.DataFrame], Judgement]


def judge(claim: Claim, results: pd.DataFrame) -> Judgement:
    """Judge one claim; a result that lacks what the judge needs is not testable."""
    try:
        return claim.judge(results)
    except NotTestable as lacking:
        return Judgement(NOT_TESTABLE, measured="", reason=str(lacking))


def judge_all(
    claims: Iterable[Claim], results: pd.DataFrame, authors: pd.DataFrame
) -> pd.DataFrame:
    """Judge every claim.

    Args:
        claims: The claims of one paper.
        results: Our results, long form.
        authors: The authors' published results in the same form, a mean as a single seed.

    Returns:
        One row per claim with the columns COLUMNS; `authors` is what the same judge measures on
        the published results, and is empty where they do not hold what it needs.
    """
    rows = []
    for claim in claims:
        ours, theirs = judge(claim, results), judge(claim, authors)
        rows.append(
            (claim.id, claim.item, claim.statement, claim.where, ours.measured, theirs.measured,
             claim.expected, ours.verdict, ours.reason)
        )  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def decide(measured: str, conditions: Mapping[str, bool]) -> Judgement:
    """Reproduced if every condition holds; else the reason names those that do not.

    Args:
        measured: The numbers behind the decision.
        conditions: From the words of each condition to whether it holds.
    """
    failed = [words for words, holds in conditions.items() if not holds]
    if failed:
        return Judgement(NOT_REPRODUCED, measured, "fails: " + "; ".join(failed))
    return Judgement(REPRODUCED, measured)


def seed_means(results: pd.DataFrame, over: Mapping[str, Sequence | None], **where) -> pd.Series:
    """Means over seeds, on a full grid of cells.

    Args:
        results: Long form.
        over: The grid: from column to the values it must have, or None for all that it has.
        where: The selection, as in `select`.

    Returns:
        One mean per cell, indexed by the columns of `over` (values as given there).

    Raises:
        NotTestable: a cell is absent, not finite, or lacks a seed that another cell has.
    """
    about = ", ".join(f"{column} {value}" for column, value in where.items())
    rows = select(results, **where)
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


def number(value: float, digits: int = 3) -> str:
    """A number as compactly as papers print it: .043, -1.226."""
    return _leading_zero.sub(r"\1.", f"{value:.{digits}f}")


def short(value: float) -> str:
    """A number with as few digits as it has: 0, .333, -1."""
    return _leading_zero.sub(r"\1.", f"{value:g}")


def _snapped(rows: pd.DataFrame, column: str, values: Sequence) -> pd.DataFrame:
    """Replace the selected numbers by the equal ones asked for, so that they index exactly."""
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
