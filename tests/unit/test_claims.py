"""Judging: verdicts, and what happens to a claim whose data is not there."""

import numpy as np
import pandas as pd
import pytest

from twotowers.results.claims import (
    COLUMNS,
    NOT_REPRODUCED,
    NOT_TESTABLE,
    REPRODUCED,
    Claim,
    NotTestable,
    decide,
    judge_all,
    number,
    seed_means,
    short,
)

TAUS = (0, 0.333, 1)


def results(setting: str = "s", value: float = 1.0, seeds: int = 2) -> pd.DataFrame:
    rows = [(setting, tau, seed, value + tau) for tau in TAUS for seed in range(seeds)]
    return pd.DataFrame(rows, columns=["setting", "temperature", "seed", "value"])


def above_one(frame: pd.DataFrame):
    means = seed_means(frame, {"temperature": TAUS}, setting="s")
    return decide(f"mean {number(means[0], 1)}", {"above 1": means[0] > 1, "finite": True})


CLAIM = Claim("7", "fig9", "Something holds", "Sec. 1", "> 1", above_one)


@pytest.mark.parametrize(
    ("ours", "verdict", "reason"),
    [
        (results(value=2), REPRODUCED, ""),
        (results(value=1), NOT_REPRODUCED, "fails: above 1"),
        (results(setting="other"), NOT_TESTABLE, "no results for setting s"),
        (results().query("temperature != .333"), NOT_TESTABLE, "no results at temperature .333"),
        (results().drop(index=0), NOT_TESTABLE, "seeds missing at temperature 0"),
        (results(value=np.nan), NOT_TESTABLE, "not a finite number at temperature 0"),
    ],
)
def test_every_verdict_and_its_reason(ours, verdict, reason):
    table = judge_all([CLAIM], ours, results(value=3))
    assert list(table.columns) == COLUMNS
    row = table.iloc[0]
    assert row["verdict"] == verdict
    assert reason in row["reason"]
    assert row["authors"] == "mean 3.0"
    assert bool(row["measured"]) == (verdict != NOT_TESTABLE)


def test_nothing_published_leaves_authors_empty():
    assert judge_all([CLAIM], results(value=2), results().iloc[:0])["authors"].item() == ""


def test_a_fault_in_a_judge_is_not_hidden():
    broken = Claim("1", "fig1", "", "", "", lambda frame: frame["no such column"])
    with pytest.raises(KeyError):
        judge_all([broken], results(), results())


def test_seed_means_over_a_grid_in_the_order_asked_for():
    frame = pd.concat([results("s", 1), results("t", 2)])
    frame["temperature"] = frame["temperature"].astype(np.float32)
    means = seed_means(frame, {"setting": ("t", "s"), "temperature": (1, 0.333)})
    assert means.index.tolist() == [("t", 1), ("t", 0.333), ("s", 1), ("s", 0.333)]
    np.testing.assert_allclose(means, [3, 2.333, 2, 1.333])


def test_seed_means_takes_all_values_where_none_are_named():
    assert seed_means(results(), {"temperature": None}).index.tolist() == list(TAUS)


def test_a_long_list_of_absent_cells_is_cut():
    with pytest.raises(
        NotTestable, match=r"temperature 2, temperature 3, temperature 4 and 2 more"
    ):
        seed_means(results(), {"temperature": (0, 2, 3, 4, 5, 6)}, setting="s")


def test_numbers_are_compact():
    assert [number(value) for value in (0.0432, -0.5, -1.2261, 10)] == [
        ".043", "-.500", "-1.226", "10.000",
    ]  # fmt: skip
    assert [short(value) for value in (0, 0.333, -0.5, 1)] == ["0", ".333", "-.5", "1"]
