"""Means and intervals over seeds, against scipy, and the selection of rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from twotowers.claims.statistics import (
    BAND,
    compare,
    frequency_interval,
    from_moments,
    mean_interval,
    over_seeds,
    paired_p,
    select,
    without_levels,
)
from twotowers.intervals import holm


def long_form(values: dict[str, list[float]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"lane": lane, "position": pd.NA, "seed": seed, "value": value}
            for lane, series in values.items()
            for seed, value in enumerate(series)
        ]
    ).astype({"position": "Int64"})


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_interval_is_scipys(n, level):
    sample = np.random.default_rng(n).normal(size=n)
    expected = stats.ttest_1samp(sample, 0).confidence_interval(level)
    low, high = mean_interval(sample.mean(), sample.std(ddof=1), n, level=level)
    np.testing.assert_allclose([low, high], [expected.low, expected.high])


@pytest.mark.parametrize(("successes", "n"), [(0, 20), (1, 3), (13, 20), (20, 20)])
def test_frequency_interval_is_wilsons(successes, n):
    expected = stats.binomtest(successes, n).proportion_ci(method="wilson")
    found = frequency_interval(successes, n)
    np.testing.assert_allclose(found, (expected.low, expected.high), atol=1e-12)


def test_one_observation_has_no_interval():
    low, high = mean_interval([1.0, 1.0], [np.nan, 0.5], [1, 3])
    assert np.isnan([low[0], high[0]]).all()
    assert np.isfinite([low[1], high[1]]).all()


def test_over_seeds_agrees_with_from_moments():
    results = long_form({"a": [1.0, 2.0, 4.0], "b": [3.0]})
    summary = over_seeds(results, ["lane", "position"])
    assert list(summary.columns) == ["lane", "position", *BAND]
    moments = pd.DataFrame(
        {"lane": ["a"], "value": [7 / 3], "sd": [np.std([1, 2, 4], ddof=1)], "n": 3}
    )
    pd.testing.assert_frame_equal(
        summary.loc[summary["lane"] == "a", BAND], from_moments(moments, ["lane"])[BAND]
    )
    assert summary.loc[summary["lane"] == "b", "n"].item() == 1


def test_a_seed_without_a_number_counts_nowhere():
    results = long_form({"a": [1.0, 2.0, np.nan, np.nan], "b": [np.nan, np.nan]})
    found = over_seeds(results, ["lane"])
    assert found["n"].tolist() == [2, 0]
    wanted = over_seeds(results.dropna(subset="value"), ["lane"])
    pd.testing.assert_frame_equal(found[found["n"] > 0], wanted)


def test_over_seeds_refuses_an_ambiguous_group():
    results = pd.concat([long_form({"a": [1.0]}), long_form({"a": [2.0]})])
    with pytest.raises(ValueError, match="a seed occurs twice"):
        over_seeds(results, ["lane"])


def test_compare_names_the_source_and_takes_nothing_published():
    results = long_form({"a": [1.0, 3.0], "b": [5.0, 6.0]})
    published = pd.DataFrame({"lane": ["a"], "value": [2.5], "sd": [0.1], "n": [3]})
    both = compare(results, published, ["lane"], lane="a")
    assert both["source"].tolist() == ["reproduced", "published"]
    assert both["value"].tolist() == [2.0, 2.5]
    alone = compare(results, published, ["lane"], lane="b")
    assert alone["source"].tolist() == ["reproduced"]
    assert compare(results, published, ["lane"], lane="c").columns.tolist() == both.columns.tolist()


def test_select_by_text_number_and_list():
    frame = pd.DataFrame(
        {
            "name": ["x", "y", "z"],
            "tau": np.array([0, 0.333, 1], dtype=np.float32),
            "position": pd.array([1, None, 2], dtype="Int64"),
        }
    )
    assert select(frame, name="y")["name"].tolist() == ["y"]
    assert select(frame, tau=(0.333, 1))["name"].tolist() == ["y", "z"]
    assert select(frame, position=2, name=["x", "z"])["name"].tolist() == ["z"]
    assert select(frame, tau=0.5).empty


def test_without_levels_keeps_means_and_differences_only():
    effects, levels = {"a": 0.0, "b": 1.0, "c": 5.0}, np.array([10.0, 20.0, 60.0])
    results = long_form({lane: levels + effect for lane, effect in effects.items()}).assign(group=1)
    summary = over_seeds(without_levels(results, ["group"]), ["lane"])
    np.testing.assert_allclose(summary["value"], over_seeds(results, ["lane"])["value"])
    without = without_levels(results.assign(group=np.nan), ["group"])
    assert without["value"].tolist() == without_levels(results, ["group"])["value"].tolist()
    # All seeds agree on the differences, so nothing varies.
    np.testing.assert_allclose(summary["high"] - summary["low"], 0, atol=1e-12)


def test_paired_p_is_scipys():
    rng = np.random.default_rng(0)
    one = rng.random(30)
    other = one + 0.05 * rng.normal(size=30) + 0.02
    assert paired_p(one, other) == pytest.approx(stats.ttest_rel(one, other).pvalue)
    assert paired_p(one, one) == 1


def test_holm_steps_down_and_keeps_the_order():
    found = holm([0.04, 0.005, 0.02, 0.9])
    np.testing.assert_allclose(found, [0.08, 0.02, 0.06, 0.9])
    np.testing.assert_allclose(holm([0.5, 0.6]), [1, 1])
