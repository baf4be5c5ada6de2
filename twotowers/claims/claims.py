"""Claims of papers, and verdicts on them.

A claim is a sentence, its conditions, and a judge. The judge is a function of a long-form result
(see `twotowers.claims.statistics`) without thresholds. It returns numbers: one measurement per
condition, in their order. A condition holds its threshold once. The expectation, the text of what
was measured, the verdict and its reason are derived from it.

    >>> from twotowers.claims.conditions import above, at_most
    >>> CLAIMS = Claims()
    >>> @CLAIMS.add(
    ...     "1", "fig2", "Sec. 8.1", "The truth is recovered",
    ...     at_most("every error", 0.1), above("the error at position 25", 0.05),
    ... )
    ... def recovered(results):
    ...     error = seed_means(results, {"position": (10, 25)}, metric="error")
    ...     return error, error[25]
    >>> CLAIMS[0].expected
    'every error is at most .1; the error at position 25 is above .05'
    >>> rows = [("error", 10, 1, 0.12), ("error", 25, 1, 0.06)]
    >>> results = pd.DataFrame(rows, columns=["metric", "position", "seed", "value"])
    >>> judgement = judge(CLAIMS[0], results)
    >>> judgement.verdict, judgement.reason
    ('contradicted', 'fails: every error is at most .1')
    >>> judgement.measured
    'every error = .120 (position 10), .060 (position 25); the error at position 25 = .060'
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd

from twotowers.claims.conditions import Condition, Names, lane_text, short
from twotowers.claims.data_provenance import STAND_IN
from twotowers.claims.statistics import select

REPRODUCED = "reproduced"
CONTRADICTED = "contradicted"
UNDECIDED = "undecided"
NOT_TESTABLE = "not testable"

PAPER, OURS, CHECK = "the paper's claim", "our claim", "a check of the paper's tables"
ORIGINS = (PAPER, OURS, CHECK)
"""Whose claim it is."""

ONE_SEED, SEEDS = "one seed", "seeds cannot tell"
RUNS, GATE = "the test lacks runs", "fits fail a gate"
"""What leaves a claim undecided."""
MOST_LISTED = 3
"""Cells that a text names before it says how many more there are."""

# What a judge returns: one measurement per condition, in a tuple or a list. A single one may stand
# alone, unless it is a pair.
Measured = object


class NotTestable(Exception):
    """A judge raises it if the result lacks what the claim is about. The message says what."""


class TooFewRuns(Exception):
    """A judge raises it if the paper's own test needs more runs than there are."""


@dataclass(frozen=True)
class Judgement:
    """The outcome of a claim.

    Attributes:
        verdict: REPRODUCED, CONTRADICTED, UNDECIDED or NOT_TESTABLE.
        measured: The numbers behind the verdict, as a text.
        reason: Which conditions fail or are open, or what is missing. Empty if the claim is
            reproduced.
        held: In how many of the results without a seed all conditions held, as a text. Empty if the
            judge was not asked again.
        cause: Of an undecided claim: ONE_SEED, SEEDS, RUNS or GATE.
    """

    verdict: str
    measured: str = ""
    reason: str = ""
    held: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, or of ours on it.

    Attributes:
        id: Its name on the page: a number, followed by a letter if the claim has parts.
        item: The figure or table that it belongs to. The judge sees the results of this item.
        where: Where the paper says it, or what it is about.
        statement: What is claimed, in one sentence.
        conditions: The conditions, all of which must hold, and numbers that are only shown.
        judge: Function of a long-form result that returns one measurement per condition. It raises
            NotTestable if the result lacks what the claim is about.
        also: Other items whose results the judge sees too.
        origin: One of ORIGINS.
        names: What columns, and their values, are called in texts.
        chance: False for a claim that no chance enters, or whose conditions are a test.
        fixed: Settings and studies that are the same with any seed, so that one tells all of them.
        gated: False for a claim that fits fail: gates of fits leave it alone (docs/verdicts.md).
        against_printed: True for a claim that compares with printed numbers. It is not judged on
            its authors' results, which are these numbers.
        solved_for: True for a claim on what the law of a stand-in was solved for. It is not
            testable on one.
    """

    id: str
    item: str
    where: str
    statement: str
    conditions: Sequence[Condition]
    judge: Callable[[pd.DataFrame], Measured]
    also: Sequence[str] = ()
    origin: str = PAPER
    names: Names = field(default_factory=dict)
    chance: bool = True
    fixed: Sequence[str] = ()
    gated: bool = True
    against_printed: bool = False
    solved_for: bool = False

    @property
    def items(self) -> tuple[str, ...]:
        """All items whose results the judge sees, its own first."""
        return self.item, *self.also

    @property
    def judged(self) -> list[Condition]:
        """The conditions that a verdict depends on."""
        return [condition for condition in self.conditions if condition.judged]

    @property
    def expected(self) -> str:
        """All conditions as a text."""
        return "; ".join(condition.words for condition in self.judged)

    def measure(self, results: pd.DataFrame) -> list[tuple[Condition, object]]:
        """Each condition with what the judge measured for it."""
        measured = self.judge(results)
        if not isinstance(measured, (tuple, list)):
            measured = [measured]
        pairs = list(zip(self.conditions, measured, strict=True))
        for condition, measured in pairs:
            if condition.judged and not condition.slack(measured).size:
                raise ValueError(
                    f"claim {self.id}: the judge selected nothing for {condition.words!r}"
                )
        if self.solved_for and (results.get("stands_on", pd.Series()) == STAND_IN).any():
            raise NotTestable(f"the stand-in was solved for it: {self.measured(pairs)}")
        return pairs

    def measured(self, pairs: Iterable[tuple[Condition, object]]) -> str:
        """What was measured, as a text. What several conditions share stands once."""
        texts = [
            condition.text(measured, self.names)
            for condition, measured in pairs
            if not condition.otherwise
        ]
        return "; ".join(dict.fromkeys(texts))


OF_ONE = {"also", "origin", "chance", "gated", "against_printed", "solved_for"}
"""Fields of `Claim` that `Claims.add` takes."""


class Claims(list[Claim]):
    """The claims of a paper, or of a part of it. A decorator adds each claim to its judge.

    `common` are fields of `Claim` that all its claims have, unless they say something else.
    """

    def __init__(self, **common: Any):
        super().__init__()
        self._common = common

    def add(
        self,
        id: str,
        item: str,
        where: str,
        statement: str,
        *conditions: Condition,
        parts: Mapping[str, Mapping[str, object]] | None = None,
        letters: str = ascii_lowercase,
        **given: Any,
    ) -> Callable:
        """A decorator that adds the claims measured by a judge; arguments are fields of `Claim`.

        `parts`, label -> arguments of the judge, are for a statement about several cases. Each
        makes a claim of its own, such as 4a and 4b, and the label ends its statement. What of
        `given` is not in OF_ONE is an argument of the judge.
        """
        own = self._common | {name: given.pop(name) for name in OF_ONE & given.keys()}

        def of(judge: Callable) -> Callable:
            cases = {"": {}} if parts is None else parts
            for letter, (label, part) in zip(
                ("",) if parts is None else letters[: len(cases)], cases.items(), strict=True
            ):
                text = f"{statement} ({label})" if label else statement
                one = partial(judge, **given, **part)
                self.append(Claim(id + letter, item, where, text, conditions, one, **own))
            return judge

        return of

    def in_order(self, *others: Iterable[Claim]) -> list[Claim]:
        """These claims and those of other lists, sorted by number and letter."""
        return sorted(
            chain(self, *others),
            key=lambda claim: (int(claim.id.rstrip(ascii_lowercase)), claim.id),
        )


def judge(claim: Claim, results: pd.DataFrame) -> Judgement:
    """Judge one claim on results as they are. `twotowers.claims.verdicts` asks how sure this is.

    It is reproduced if every condition holds. Otherwise the reason names the conditions that fail.
    It is not testable if the result lacks what the judge needs, or if only conditions with an
    `otherwise` fail. It is undecided if the paper's own test needs more runs.
    """
    try:
        return outcome(claim, claim.measure(results))
    except NotTestable as lacking:
        return Judgement(NOT_TESTABLE, reason=str(lacking))
    except TooFewRuns as few:
        return Judgement(UNDECIDED, reason=str(few), cause=RUNS)


def outcome(claim: Claim, pairs: Sequence[tuple[Condition, object]]) -> Judgement:
    """The judgement on what a judge measured."""
    text = claim.measured(pairs)
    failed = [pair for pair in pairs if pair[0].judged and not pair[0].met_by(pair[1])]
    conditions = [condition for condition, _ in failed]
    if not failed:
        return Judgement(REPRODUCED, text)
    if all(each.otherwise for each in conditions):
        return Judgement(NOT_TESTABLE, text, conditions[0].otherwise)
    if all(each.finds_nothing(measured) for each, measured in failed):
        reasons = (f"{each.words} (it is not)" for each in conditions)
        return Judgement(UNDECIDED, text, f"open: {'; '.join(reasons)}")
    return Judgement(CONTRADICTED, text, failing(conditions))


def failing(conditions: Iterable[Condition]) -> str:
    """The reason of a claim whose conditions fail."""
    return "fails: " + "; ".join(each.words for each in conditions if not each.otherwise)


def seed_means(results: pd.DataFrame, over: Mapping[str, Sequence | None], **where) -> pd.Series:
    """Means over seeds of a selection (`select`), indexed by the points of a grid.

    `over`: column -> the values it must have, or None for all values in the results.
    """
    rows, selection = rows_of(results, **where), _selection(where)
    if lacking := set(over) - set(rows):
        raise NotTestable(f"{selection}: no results by {', '.join(sorted(lacking))}")
    levels = [
        sorted(rows[column].unique()) if values is None else list(values)
        for column, values in over.items()
    ]
    for column, values in zip(over, levels, strict=True):
        rows = _snapped(select(rows, **{column: values}), column, values)
    if rows.duplicated([*over, "seed"]).any():
        raise ValueError(f"{selection}: a seed occurs twice: a column is missing in {list(over)}")
    cells = pd.MultiIndex.from_product(levels, names=list(over))
    if len(over) == 1:
        cells = pd.Index(levels[0], name=cells.names[0])
    grouped = rows.groupby(list(over), dropna=False)["value"]
    summary = grouped.agg(value="mean", n="size").reindex(cells)
    wrong = {
        "no results": summary["n"].isna(),
        "not a finite number": ~np.isfinite(summary["value"]),
        "seeds missing": summary["n"] < summary["n"].max(),
    }
    for what, at in wrong.items():
        if at.any():
            raise NotTestable(f"{selection}: {what} at {_listed(cells[at])}")
    return summary["value"]


def means_of(
    results: pd.DataFrame, metrics: Iterable[str], over: Mapping[str, Sequence | None], **where
) -> list[pd.Series]:
    """`seed_means` of each of several metrics."""
    return [seed_means(results, over, **where, metric=metric) for metric in metrics]


def apart(values: pd.Series | pd.DataFrame) -> pd.DataFrame:
    """How far any two values are apart; of a table, any two rows in each column.

    A spread is the largest of them. To be sure of it, judges return them all.

    >>> apart(pd.Series({"a": 1.0, "b": 4.0, "c": 2.0})).squeeze().to_dict()
    {'a and b': 3.0, 'a and c': 1.0, 'b and c': 2.0}
    """
    table = values.to_frame("") if isinstance(values, pd.Series) else values
    rows = [row if isinstance(row, tuple) else (row,) for row in table.index]
    names = [", ".join(map(short, row)) for row in rows]
    one, other = np.triu_indices(len(table), 1)
    labels = [f"{names[a]} and {names[b]}" for a, b in zip(one, other, strict=True)]
    numbers = table.to_numpy(float)
    pairs = pd.Index(labels, name=table.index.name)
    return pd.DataFrame(np.abs(numbers[one] - numbers[other]), pairs, table.columns)


def rows_of(results: pd.DataFrame, **where) -> pd.DataFrame:
    """The rows of a selection, as in `select`."""
    # `select` would raise a KeyError if the results lack a column.
    rows = select(results, **where) if set(where) <= set(results) else results.iloc[:0]
    if rows.empty:
        raise NotTestable(f"no results for {_selection(where)}")
    return rows


def _selection(where: Mapping[str, object]) -> str:
    return ", ".join(f"{column} {value or repr(value)}" for column, value in where.items())


def _snapped(rows: pd.DataFrame, column: str, values: Sequence) -> pd.DataFrame:
    """Replace numbers by the nearest values asked for, so that both are equal as index keys."""
    if all(isinstance(value, str) for value in values):
        return rows
    measured = rows[column].to_numpy(dtype=float)
    nearest = np.abs(measured[:, None] - np.asarray(values, float)).argmin(axis=1)
    return rows.assign(**{column: np.asarray(values)[nearest]})


def _listed(cells: pd.Index) -> str:
    shown = cells[:MOST_LISTED].to_frame(index=False).to_dict("records")
    more = f" and {len(cells) - MOST_LISTED} more" if len(cells) > MOST_LISTED else ""
    return ", ".join(map(lane_text, shown)) + more
