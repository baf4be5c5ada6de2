"""Logs of rankers that learn from clicks: what propensities, weights and diagnose make of them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import twotowers as tt
from benchmarks.validate.feedback import simulate
from twotowers.analysis.feedback import seconds_of

TRUTH = 1 / np.arange(1, 7)


def shop_log(seed: int, feedback: float, *, rounds: int = 40, **settings) -> pd.DataFrame:
    """A row per shown document, in the order of time."""
    log, _ = simulate(np.random.default_rng(seed), rounds=rounds, feedback=feedback, **settings)
    page = np.arange(len(log["pair"])) // 6
    rows = pd.DataFrame(
        {
            "session": page,
            "query": log["query"],
            "document": log["pair"],
            "position": np.arange(len(page)) % 6 + 1,
            "click": log["click"],
            "ts": pd.to_datetime(1_700_000_000 + 7 * page, unit="s", utc=True).astype(str),
            "user": log["user"],
        }
    )
    return rows if settings.get("users") else rows.drop(columns="user")


def in_order(rows: pd.DataFrame, pages: np.ndarray) -> pd.DataFrame:
    return pd.concat([rows.iloc[6 * page : 6 * page + 6] for page in pages])


@pytest.fixture(scope="module")
def learning() -> pd.DataFrame:
    return shop_log(7, 1.0)


@pytest.fixture(scope="module")
def shuffled(learning) -> pd.DataFrame:
    return in_order(learning, np.random.default_rng(1).permutation(len(learning) // 6))


def holds(curve) -> np.ndarray:
    return (curve.low <= TRUTH) & (curve.high >= TRUTH)


def test_the_sequential_curve_is_chosen_and_holds_the_truth(learning):
    answer = tt.propensities(learning)
    assert answer.estimator == "sequential"
    assert holds(answer.curve).all()
    assert not holds(tt.propensities(learning, estimator="conditional").curve).all()
    assert "ranks follow clicks" in str(answer)
    assert "conditional" in answer.frame().columns


def test_little_memory_gives_the_same_answer():
    rows = shop_log(7, 1.0, queries=40, rounds=20, users=30)
    large, small = (tt.propensities(tt.read_log(rows, memory=each)) for each in ("4GB", "100KB"))
    assert len([*small.feedback.displays]) > 5
    assert small.estimator == large.estimator == "sequential"
    for name in ("estimate", "low", "high"):
        found, expected = (getattr(each.curve, name) for each in (small, large))
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    one, other = (each.feedback.test for each in (large, small))
    np.testing.assert_allclose([other.value, other.p], [one.value, one.p], rtol=1e-8)


def test_without_feedback_the_conditional_curve_stays():
    rows = shop_log(8, 0.0)
    answer = tt.propensities(rows)
    assert answer.estimator == "conditional"
    given = tt.propensities(rows, estimator="conditional").curve
    np.testing.assert_array_equal(answer.curve.estimate, given.estimate)
    assert holds(answer.curve).all()


def test_the_time_column_gives_the_order(learning, shuffled):
    known, mixed = tt.propensities(learning), tt.propensities(shuffled)
    assert mixed.estimator == "sequential"
    np.testing.assert_allclose(mixed.curve.estimate, known.curve.estimate, rtol=1e-9)
    nameless = tt.propensities(shuffled.rename(columns={"ts": "when"}))
    assert nameless.estimator == "conditional"
    assert "order of time" in str(nameless)
    log = tt.read_log(shuffled.rename(columns={"ts": "when"}), columns={"time": "when"})
    assert tt.propensities(log).estimator == "sequential"


def test_an_ordered_file_needs_no_time(learning):
    log = tt.read_log(learning.drop(columns="ts"), ordered=True)
    answer = tt.propensities(log)
    assert answer.estimator == "sequential"
    assert answer.feedback.order == "stated"
    assert "order of time" not in str(answer)


def test_no_light_is_green_where_the_curve_is_biased(learning):
    sound, able, advice = tt.diagnose(learning).recommendations
    assert (sound.colour, able.colour, advice.colour) == ("green", "amber", "amber")
    assert "anks follow clicks" in able.answer


def test_a_wrong_time_is_named(learning):
    wrong = learning.assign(ts=learning["ts"].where(learning.index > 0, "yesterday"))
    with pytest.raises(tt.InputError, match=r"(?s)ts.*yesterday"):
        tt.propensities(wrong)


def test_a_counted_log_has_no_order(learning):
    rows = learning.assign(impressions=1, clicks=learning["click"])
    by = ["query", "document", "position"]
    cells = rows.groupby(by, as_index=False)[["impressions", "clicks"]].sum()
    answer = tt.propensities(cells)
    assert answer.estimator == "conditional"
    assert "whether ranks follow clicks" in str(answer)
    with pytest.raises(tt.InputError, match="order of its pages"):
        tt.propensities(cells, estimator="sequential")


def test_users_who_differ_widen_intervals():
    rows = shop_log(9, 0.0, users=60, spread=1.0)
    by_both = tt.propensities(rows)
    by_query = tt.propensities(rows.drop(columns="user"))
    np.testing.assert_array_equal(by_both.curve.estimate, by_query.curve.estimate)
    assert (by_both.curve.error[1:] > 1.2 * by_query.curve.error[1:]).all()
    assert "no column of users" in str(by_query)
    assert "no column of users" not in str(by_both)


@pytest.mark.parametrize(
    "times",
    [
        ["2026-01-31T11:00:00+01:00", "2026-01-31T10:30:00Z", "2026-01-31 12:00:00"],
        [1_700_000_000, 1_700_000_001, 1_700_000_060],
        ["5", "17", "101"],
        ["05.01.2026 10:00", "17.01.2026 10:00", "01.02.2026"],
        ["1/5/2026", "1/17/2026", "2/1/2026"],
        [pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-02"), pd.Timestamp("2027-01-01")],
    ],
)
def test_times_grow(times):
    values = seconds_of(pa.array(times), tt.read_log(shop_log(1, 0.0, rounds=1, queries=2)))
    assert (np.diff(values) > 0).all()


def test_a_day_that_may_be_a_month_is_refused():
    log = tt.read_log(shop_log(1, 0.0, rounds=1, queries=2))
    with pytest.raises(tt.InputError, match="'03/04/2026': is the day or the month first"):
        seconds_of(pa.array(["03/04/2026", "05/06/2026"]), log)


def test_few_users_are_no_reason_to_swap():
    found = tt.diagnose(shop_log(9, 0.0, users=20, spread=0.4, activity=1.3))
    assert [each.colour for each in found.recommendations[1:]] == ["red", "red"]
    assert "A few users in effect have most of the pages" in found.recommendations[1].answer
    for light in found.recommendations[1:]:
        assert light.action.startswith("Collect pages of more users")
