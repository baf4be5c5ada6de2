"""Hausman's test of a two-tower model: closed forms, and simulated truth."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import ttest_1samp

from twotowers.analysis.tower_tests import hausman
from twotowers.errors import InputError
from twotowers.fitting.conditional import conditional_influences, fit_conditional
from twotowers.fitting.feature_towers import fit_tower
from twotowers.fitting.newton import fit_linear
from twotowers.fitting.pair_counts import FeatureCounts
from twotowers.identifiability.testing import single, together

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


def test_the_linear_tower_is_the_optimum_of_a_logistic_regression():
    given, _ = draw(0)
    log = FeatureCounts.of_arrays(*given)
    tower = fit_tower(log, "linear")
    shown, clicks = np.zeros((2, len(log.features), FACTORS))
    np.add.at(shown, (given[1], given[2]), given[3])
    np.add.at(clicks, (given[1], given[2]), given[4])
    optimum = fit_linear(log.features, shown, clicks)
    # The prior moves it a little.
    assert tower.bias == pytest.approx(optimum.bias, abs=1e-4)
    assert tower.relevance == pytest.approx(optimum.relevance, abs=1e-4)


def test_steps_are_those_of_fits_without_a_query():
    given, _ = draw(1, queries=25)
    log = FeatureCounts.of_arrays(*given)
    tower = fit_tower(log, "linear")
    steps = tower.steps(log, 0)
    for query in (0, 7):
        kept = given[0] != query
        without = FeatureCounts.of_arrays(*(each[kept] for each in given))
        bias = fit_tower(without, "linear").bias
        moved = (tower.bias - tower.bias[0]) - (bias - bias[0])
        assert steps[query] == pytest.approx(moved, abs=0.15 * np.abs(moved).max())


@pytest.mark.parametrize("form", ["additive", "product"])
def test_conditional_steps_have_the_covariance_of_the_curve(form):
    given, _ = draw(2, form=form)
    counts = FeatureCounts.of_arrays(*given).counts
    curve = fit_conditional(counts, form=form)
    query, steps = conditional_influences(counts, curve, form=form)
    assert steps.T @ steps == pytest.approx(curve.covariance, abs=1e-12)
    assert set(query) <= set(counts.query)


def test_a_deep_tower_finds_what_is_not_linear():
    given, relevance = draw(3, curved=1.5)
    log = FeatureCounts.of_arrays(*given)
    found = {}
    for kind in ("linear", "deep"):
        fitted = fit_tower(log, kind).relevance[given[1]]
        found[kind] = np.corrcoef(fitted, relevance)[0, 1]
    assert found["linear"] < 0.93
    assert found["deep"] > 0.985


def test_rows_of_a_pair_and_a_factor_are_added_up():
    given, _ = draw(4, queries=20)
    twice = tuple(np.concatenate([each, each]) for each in given)
    once, both = (fit_tower(FeatureCounts.of_arrays(*each), "linear") for each in (given, twice))
    assert both.bias == pytest.approx(once.bias, abs=1e-4)
    assert len(both.residual) == len(once.residual)


def test_a_log_without_clicks_has_no_towers():
    given, _ = draw(4, queries=5)
    log = FeatureCounts.of_arrays(*given[:4], np.zeros(len(given[0])), given[5])
    with pytest.raises(InputError, match="sometimes clicked"):
        fit_tower(log, "linear")


def outcome(given):
    log = FeatureCounts.of_arrays(*given)
    return hausman(log, fit_tower(log, "linear"))


def test_a_position_without_clicks_is_left_out():
    given, _ = draw(5)
    clicks = np.where(given[2] == 3, 0, given[4])
    found = outcome((*given[:4], clicks, given[5]))
    assert np.isnan(found.curve["tower"][3])
    assert np.isfinite(found.curve["difference"][1:3]).all()
    assert found.curve["reason"][3]
    assert not found.alarm


def test_the_test_has_its_level_and_sees_hidden_relevance():
    right = np.array([outcome(draw(seed, queries=60)[0]).test.p for seed in range(8)])
    assert np.mean(right < 0.05) <= 0.15
    assert 0.25 < right.mean() < 0.75
    wrong, _ = draw(0, hidden=0.7, policy="strong")
    assert outcome(wrong).test.p < 0.001


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
    p = np.array([together("few", steps, steps.sum(0)).p for steps in draws])
    assert np.mean(p < 0.05) < 0.075
    assert together("few", np.eye(6), np.ones(6)).reason


def test_one_sum_is_the_t_test_of_a_mean():
    values = np.random.default_rng(0).normal(0.3, 1, 40)
    found = single("mean", (values - values.mean()) / 40, values.mean(), "")
    expected = ttest_1samp(values, 0)
    assert found.statistic == pytest.approx(expected.statistic * np.sqrt(40 / 39))
    assert found.low < found.value < found.high
