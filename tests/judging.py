"""Judges on made-up results, which bear out every claim, and on changes of them.

A mutation is a claim's name, a change, the rows that it changes, and words of the one condition
that it must break: none where a claim has a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import pandas as pd
import pytest

from twotowers.claims.claims import CONTRADICTED, REPRODUCED, Claim, judge
from twotowers.claims.conditions import Condition
from twotowers.claims.statistics import select

Change = Callable[[pd.DataFrame], object]


def to(value: float) -> Change:
    return lambda rows: value


def by(amount: float) -> Change:
    return lambda rows: rows["value"] + amount


def times(factor: float) -> Change:
    return lambda rows: rows["value"] * factor


def altered(results: pd.DataFrame, change: Change, where: dict) -> pd.DataFrame:
    """The results with `change(selected rows)` in place of the selected values."""
    # One setting at a time: others have words where its lane has numbers.
    rows = select(results, setting=where["setting"]) if "setting" in where else results
    rows = select(rows, **where)
    assert len(rows), where
    results = results.copy()
    results.loc[rows.index, "value"] = change(rows)
    return results


def assert_borne_out(claim: Claim, results: pd.DataFrame) -> None:
    judgement = judge(claim, results)
    assert judgement.verdict == REPRODUCED, judgement
    assert judgement.measured


def assert_broken(claim: Claim, results: pd.DataFrame, words: str) -> None:
    judgement = judge(claim, results)
    assert judgement.verdict == CONTRADICTED, judgement
    assert named(claim, words).words in judgement.reason


def named(claim: Claim, words: str) -> Condition:
    """The one condition with these words."""
    (condition,) = [each for each in claim.judged if words in each.words]
    return condition


def mutation_tests(
    claims: dict[str, Claim],
    results: Callable[[], pd.DataFrame],
    mutations: list[tuple],
    but: Collection = (),
) -> tuple[Callable, Callable]:
    """The tests that every judge can fail, and that a mutation breaks every condition.

    Args:
        claims: by their names.
        results: made-up ones, which bear them out.
        mutations: see above.
        but: claim and words of the conditions that cannot be broken alone.
    """

    @pytest.mark.parametrize(("name", "change", "where", "words"), mutations)
    def test_every_judge_can_fail(name, change, where, words):
        assert_broken(claims[name], altered(results(), change, where), words)

    def test_every_condition_has_a_mutation():
        assert untested(claims, mutations) == {*but}

    return test_every_judge_can_fail, test_every_condition_has_a_mutation


def untested(claims: dict[str, Claim], mutations: Iterable[tuple]) -> set[tuple[str, str]]:
    """Claim and words of the conditions that no mutation breaks.

    A condition that only evidence needs is none that can fail.
    """
    broken = {(name, named(claims[name], words).words) for name, _, _, words in mutations}
    conditions = {
        (name, condition.words)
        for name, claim in claims.items()
        for condition in claim.judged
        if not condition.otherwise
    }
    return conditions - broken
