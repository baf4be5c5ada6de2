"""Hausman's test of a two-tower model: closed forms, and simulated truth."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import ttest_1samp

from twotowers.analysis.tower_tests import fit_tower, hausman
from twotowers.errors import InputError
from twotowers.fitting.conditional import conditional_influences, fit_conditional
from twotowers.fitting.newton import fit_linear
from twotowers.fitting.pair_counts import PairCounts
from twotowers.intervals import single, together

FACTORS = 4


def draw(seed, *, queries=120, hidden=0.0, curved=0.0, policy="random", form="additive"):
    """A log of 8 documents a query, most shown at two positions, and its known relevance."""
    rng = np.random.default_rng(seed)
    documents = 8 * queries
    x, other = rng.normal(size=(documents, 3)), rng.normal(size=documents)
    relevance = x @ [0.8, -0.5, 0] + hidden * other + curved * np.sin(2 * x[:, 0])
    pair = np.repeat(np.arange(documents), 3)
    factor = rng.integers(FACTORS, size=len(pair))
    if policy == "strong":
        usual = np.argsort(np.argsort(-relevance.reshape(-1, 8), 1), 1).ravel() // 2
        factor = np.where(rng.random(len(pair)) < 0.7, usual[pair], factor)
    shown = rng.integers(5, 20, len(pair))
    level = -0.5 * factor + relevance[pair] - 1
    chance = expit(level) if form == "additive" else np.minimum(np.exp(level - 1), 0.9)
    clicks = rng.binomial(shown, chance)
    return (pair // 8, pair, factor, shown, clicks, x[pair]), relevance[pair]


def featured(given):
    """Counts, and the features of their pairs."""
    query, pair, factor, shown, clicks, x = given
    counts = PairCounts.of_arrays(
        pair, factor, shown, clicks, query=query, factors=FACTORS, every=True
    )
    return counts, x[np.unique(pair, return_index=True)[1]]


def test_the_linear_tower_is_the_optimum_of_a_logistic_regression():
    given, _ = draw(0)
    counts, features = featured(given)
    bias, _ = fit_tower(counts, features)
    shown, clicks = np.zeros((2, len(features), FACTORS))
    np.add.at(shown, (given[1], given[2]), given[3])
    np.add.at(clicks, (given[1], given[2]), given[4])
    optimum = fit_linear(features, shown, clicks).bias
    # The prior moves it a little.
    assert bias - bias[0] == pytest.approx(optimum - optimum[0], abs=1e-4)


def test_steps_are_those_of_fits_without_a_query():
    given, _ = draw(1, queries=25)
    whole, steps = fit_tower(*featured(given))
    for query in (0, 7):
        kept = given[0] != query
        bias, _ = fit_tower(*featured([each[kept] for each in given]))
        moved = (whole - whole[0]) - (bias - bias[0])
        step = steps[query] - steps[query, 0]
        assert step == pytest.approx(moved, abs=0.15 * np.abs(moved).max())


@pytest.mark.parametrize("form", ["additive", "product"])
def test_conditional_steps_have_the_covariance_of_the_curve(form):
    given, _ = draw(2, form=form)
    counts, _ = featured(given)
    curve = fit_conditional(counts, form=form)
    query, steps = conditional_influences(counts, curve, form=form)
    assert steps.T @ steps == pytest.approx(curve.covariance, abs=1e-12)
    assert set(query) <= set(counts.query)


def test_a_log_without_clicks_has_no_towers():
    given, _ = draw(4, queries=5)
    counts, features = featured((*given[:4], np.zeros(len(given[0])), given[5]))
    with pytest.raises(InputError, match="sometimes clicked"):
        fit_tower(counts, features)


def test_features_that_separate_clicks_have_a_finite_fit():
    given, _ = draw(4, queries=20)
    clicks = np.where(given[5][:, 0] > 0, given[4], 0)
    feature = (given[5][:, :1] > 0) * np.array([1.0, 1.0])  # twice, and of no click where 0
    bias, steps = fit_tower(*featured((*given[:4], clicks, feature)))
    assert np.isfinite(bias).all()
    assert np.isfinite(steps).all()


def outcome(given):
    return hausman(*featured(given))


def test_a_position_without_clicks_is_left_out():
    given, _ = draw(5)
    clicks = np.where(given[2] == 3, 0, given[4])
    found = outcome((*given[:4], clicks, given[5]))
    assert np.isnan(found.curve["tower"][3])
    assert np.isfinite(found.curve["difference"][1:3]).all()
    assert found.curve["reason"][3]
    assert not found.alarm
    largest = found.curve.loc[found.curve["difference"].abs().idxmax()]
    own = found.test.value, found.test.error, found.test.low, found.test.high
    assert own == tuple(largest[["difference", "error", "low", "high"]])


def test_the_test_has_its_level_and_sees_what_the_tower_misses():
    right = np.array([outcome(draw(seed, queries=60)[0]).test.p for seed in range(8)])
    assert np.mean(right < 0.05) <= 0.15
    assert 0.25 < right.mean() < 0.75
    for wrong in ({"hidden": 0.7}, {"curved": 1.5}):
        assert outcome(draw(0, **wrong, policy="strong")[0]).test.p < 0.001


def test_it_needs_documents_that_move():
    given, _ = draw(6)
    found = outcome((*given[:2], given[1] % FACTORS, *given[3:]))
    assert "stay where they are" in found.test.reason
    assert np.isnan(found.test.p)
    assert not found.alarm


def test_a_joint_test_has_its_level():
    rng = np.random.default_rng(0)
    mix = np.linalg.cholesky(0.5 + 0.5 * np.eye(6))
    draws = (rng.normal(size=(40, 6)) @ mix.T * rng.exponential(size=(40, 1)) for _ in range(400))
    p = np.array([together(steps, steps.sum(0)).p for steps in draws])
    assert np.mean(p < 0.05) < 0.075
    assert together(np.eye(6), np.ones(6)).reason


def test_one_sum_is_the_t_test_of_a_mean():
    values = np.random.default_rng(0).normal(0.3, 1, 40)
    found = single((values - values.mean()) / 40, values.mean())
    expected = ttest_1samp(values, 0)
    assert found.value / found.error == pytest.approx(expected.statistic * np.sqrt(40 / 39))
    assert found.low < found.value < found.high
