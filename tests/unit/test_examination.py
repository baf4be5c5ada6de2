"""Estimators on click rates: closed forms, slow loops, gradients, lanes."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from twotowers.errors import InputError
from twotowers.fitting.alternating import (
    ClickRates,
    Estimate,
    _gradient,
    _lay_out,
    click_mse,
    correlation,
    fit_dla,
    fit_least_squares,
    fit_naive,
    fit_regression_em,
    fit_two_tower,
    simulate_rates,
)

ESTIMATORS = [fit_dla, fit_least_squares, fit_regression_em, fit_two_tower]

# Documents 0-3 are each seen under two neighbouring factors of a circle, document 4 under one.
FEATURE = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4])
FACTOR = np.array([0, 1, 1, 2, 2, 3, 3, 0, 0])
RELEVANCE = np.array([0.5, 0.3, 0.4, 0.2, 0.6])
EXAMINATION = np.array([0.7, 0.6, 0.4, 0.3])


def exact(feature=FEATURE, factor=FACTOR, lanes=1):
    """Click rates without sampling noise, the same in all lanes."""
    rate = np.tile(RELEVANCE[feature] * EXAMINATION[factor], (lanes, 1)).astype(np.float32)
    return ClickRates(
        feature, np.tile(factor, (lanes, 1)), rate, np.ones_like(rate), len(RELEVANCE), 4
    )


def noisy(lanes=3, rows=80, features=20, factors=5, seed=0):
    """Rows with duplicates and features under up to all factors; weights 0, 1 and 2.

    Lanes merge the last two factors, all in their own way.
    """
    rng = np.random.default_rng(seed)
    feature = rng.integers(features, size=rows)
    factor = rng.integers(factors, size=rows)
    merge = np.tile(np.arange(factors), (lanes, 1))
    merge[1::3, -1] = 0
    merge[2::3, -2] = factors - 1
    return ClickRates(
        feature=feature,
        factor=merge[:, factor],
        rate=rng.uniform(0.01, 0.4, (lanes, rows)).astype(np.float32),
        weight=rng.choice([0, 1, 1, 2], (lanes, rows)).astype(np.float32),
        features=features,
        factors=factors,
    )


def one_lane(rates, lane):
    cut = slice(lane, lane + 1)
    return replace(rates, factor=rates.factor[cut], rate=rates.rate[cut], weight=rates.weight[cut])


def start_of(fit, rates, seed=0):
    rng = np.random.default_rng(seed)
    size = len(rates.rate), rates.factors
    # From lower starts, clipping to 1 can stop the alternating estimators short of a fit.
    return rng.normal(size=size) if fit is fit_two_tower else rng.uniform(0.5, 1, size)


def slow_dla(rows, o, features):
    """One published step for one lane, row by row."""
    r, squares = np.zeros(features), np.full(features, 1e-8)
    for x, t, c, w in rows:
        r[x] += w * c * o[t]
        squares[x] += w * o[t] ** 2
    r /= squares
    new = o.copy()
    for t in range(len(o)):
        here = [(w, c * r[x] / (r[x] ** 2 + 1e-8)) for x, at, c, w in rows if at == t and w]
        if here:
            new[t] = np.average([value for _, value in here], weights=[w for w, _ in here])
    return np.clip(r, 0, 1), np.clip(new, 0, 1)


def slow_least_squares(rows, o, features):
    """One step of Appendix C.3's formulas, o from the relevance just clipped."""
    r, _ = slow_dla(rows, o, features)
    new = o.copy()
    for t in range(len(o)):
        here = [(w * c * r[x], w * r[x] ** 2) for x, at, c, w in rows if at == t and w]
        if here:
            clicks, squares = np.sum(here, axis=0)
            new[t] = clicks / squares
    return r, np.clip(new, 0, 1)


def slow_em(rows, o, features):
    """The same of the published regression EM, with its E-step as written there."""
    r, count = np.zeros(features), np.full(features, 1e-8)
    for x, t, c, w in rows:
        former = c / (o[t] + 1e-8)
        r[x] += w * (c + (1 - c) * (1 - o[t]) * former / (1 - o[t] * former))
        count[x] += w
    r /= count
    new = o.copy()
    for t in range(len(o)):
        here = [
            (w, c + (1 - c) * o[t] * (1 - r[x]) / (1 - o[t] * r[x]))
            for x, at, c, w in rows
            if at == t and w
        ]
        if here:
            new[t] = np.average([value for _, value in here], weights=[w for w, _ in here])
    return np.clip(r, 0, 1), np.clip(new, 0, 1)


def rows_of(rates, lane):
    return list(
        zip(rates.feature, rates.factor[lane], rates.rate[lane], rates.weight[lane], strict=True)
    )


@pytest.mark.parametrize(
    ("fit", "slow"),
    [
        (fit_dla, slow_dla),
        (fit_least_squares, slow_least_squares),
        (fit_regression_em, slow_em),
    ],
)
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_updates_are_the_published_ones(fit, slow, steps):
    rates = noisy()
    start = start_of(fit, rates)
    found = fit(rates, start, steps=steps)
    for lane in range(3):
        o = start[lane]
        for _ in range(steps):
            r, o = slow(rows_of(rates, lane), o, rates.features)
        np.testing.assert_allclose(found.relevance[lane], r, atol=2e-6)
        np.testing.assert_allclose(found.examination[lane], o, atol=2e-6)


def cross_entropy(rates, lane, relevance, examination):
    r, o = (1 / (1 + np.exp(-logits)) for logits in (relevance, examination))
    p = r[rates.feature] * o[rates.factor[lane]]
    c, w = rates.rate[lane].astype(float), rates.weight[lane]
    return -(w * (c * np.log(p) + (1 - c) * np.log(1 - p))).sum() / w.sum()


def numerical_gradient(function, at, step=1e-5):
    found = np.zeros(len(at))
    for i in range(len(at)):
        moved = np.zeros(len(at))
        moved[i] = step
        found[i] = (function(at + moved) - function(at - moved)) / (2 * step)
    return found


def test_gradient_of_the_two_towers():
    rates = noisy()
    rng = np.random.default_rng(1)
    relevance, examination = rng.normal(size=(3, rates.features)), rng.normal(size=(3, 5))
    layout = _lay_out(rates)
    by_block, by_examination = _gradient(
        layout,
        [jnp.asarray(relevance[:, block.feature], jnp.float32) for block in layout.blocks],
        jnp.asarray(examination, jnp.float32),
    )
    by_relevance = np.zeros((3, rates.features))
    for block, values in zip(layout.blocks, by_block, strict=True):
        by_relevance[:, np.asarray(block.feature)] = values
    for lane in range(3):
        z, theta = relevance[lane], examination[lane]
        wanted = numerical_gradient(lambda z: cross_entropy(rates, lane, z, theta), z)  # noqa: B023
        np.testing.assert_allclose(by_relevance[lane], wanted, atol=1e-7)
        wanted = numerical_gradient(lambda t: cross_entropy(rates, lane, z, t), theta)  # noqa: B023
        np.testing.assert_allclose(by_examination[lane], wanted, atol=1e-7)


def test_first_step_of_the_two_towers_is_that_of_adam():
    """Adam's first step is the learning rate against the gradient's sign."""
    rates = noisy()
    start = start_of(fit_two_tower, rates)
    found = fit_two_tower(rates, start, steps=1)
    for lane in range(3):
        zeros = np.zeros(rates.features)
        g = numerical_gradient(lambda z: cross_entropy(rates, lane, z, start[lane]), zeros)  # noqa: B023
        step = -0.01 * g / (np.abs(g) + 1e-8)
        seen = np.isin(np.arange(rates.features), rates.feature)
        wanted = 1 / (1 + np.exp(-step[seen]))
        np.testing.assert_allclose(found.relevance[lane, seen], wanted, atol=1e-6)


def test_naive_is_the_mean_rate():
    rates = noisy()
    found = fit_naive(rates)
    assert (found.examination == 1).all()
    for lane in range(3):
        for feature in range(rates.features):
            here = rates.feature == feature
            weight = rates.weight[lane, here]
            mean = np.average(rates.rate[lane, here], weights=weight) if weight.any() else 0
            assert found.relevance[lane, feature] == pytest.approx(mean)


@pytest.mark.parametrize("fit", ESTIMATORS)
def test_connected_rates_are_recovered_up_to_one_scale(fit):
    rates = exact(lanes=4)
    found = fit(rates, start_of(fit, rates), steps=4000)
    assert (click_mse(rates, found) < 1e-8).all()
    for r, o in zip(found.relevance, found.examination, strict=True):
        np.testing.assert_allclose(r / r[0], RELEVANCE / RELEVANCE[0], rtol=2e-3)
        np.testing.assert_allclose(o / o[0], EXAMINATION / EXAMINATION[0], rtol=2e-3)
    np.testing.assert_allclose(correlation(RELEVANCE, found.relevance), 1, atol=1e-5)


@pytest.mark.parametrize("fit", ESTIMATORS)
def test_disconnected_rates_are_fitted_but_not_recovered(fit):
    # Documents 0 and 1 tie factors 0 and 1, documents 2 and 3 factors 2 and 3.
    feature, factor = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([0, 1, 0, 1, 2, 3, 2, 3])
    rates = exact(feature, factor, lanes=4)
    found = fit(rates, start_of(fit, rates), steps=4000)
    assert (click_mse(rates, found) < 1e-8).all()
    scale = found.relevance[:, :4] / RELEVANCE[:4]
    np.testing.assert_allclose(scale[:, 0], scale[:, 1], rtol=2e-3)
    np.testing.assert_allclose(scale[:, 2], scale[:, 3], rtol=2e-3)
    assert np.ptp(scale[:, 0] / scale[:, 2]) > 0.1


@pytest.mark.parametrize("fit", ESTIMATORS)
def test_rows_without_weight_change_nothing(fit):
    rates = noisy()
    kept = rates.weight[0] > 0
    alone = one_lane(rates, 0)
    fewer = ClickRates(
        alone.feature[kept],
        *(getattr(alone, field)[:, kept] for field in ("factor", "rate", "weight")),
        rates.features,
        rates.factors,
    )
    start = start_of(fit, alone)
    for changed in (fewer, replace(alone, rate=np.where(kept, alone.rate, 1))):
        plain, other = (fit(data, start, steps=50) for data in (alone, changed))
        seen = np.isin(np.arange(rates.features), rates.feature[kept])
        np.testing.assert_allclose(other.relevance[:, seen], plain.relevance[:, seen], rtol=1e-5)
        np.testing.assert_allclose(other.examination, plain.examination, rtol=1e-5)


@pytest.mark.parametrize("fit", ESTIMATORS)
def test_lanes_do_not_depend_on_each_other(fit):
    rates = noisy()
    start = start_of(fit, rates)
    together = fit(rates, start, steps=50)
    for lane in range(3):
        alone = fit(one_lane(rates, lane), start[lane : lane + 1], steps=50)
        np.testing.assert_allclose(together.relevance[lane], alone.relevance[0], rtol=2e-5)
        np.testing.assert_allclose(together.examination[lane], alone.examination[0], rtol=2e-5)


@pytest.mark.parametrize("fit", ESTIMATORS)
def test_same_bytes_again(fit):
    rates = noisy()
    first, again = (fit(rates, start_of(fit, rates), steps=50) for _ in range(2))
    assert first.relevance.tobytes() == again.relevance.tobytes()
    assert first.examination.tobytes() == again.examination.tobytes()


@pytest.mark.parametrize("fit", ESTIMATORS)
def test_a_factor_never_seen_stays_as_it_started(fit):
    rates = replace(exact(), factors=5)
    start = start_of(fit, rates)
    found = fit(rates, start, steps=20)
    unseen = 1 / (1 + np.exp(-start[0, 4])) if fit is fit_two_tower else start[0, 4]
    assert found.examination[0, 4] == pytest.approx(unseen, rel=1e-6)


def test_least_squares_mends_a_start_below_the_click_rate():
    """One document under one factor: r is cut to 1, and only one rule then moves o."""
    rates = ClickRates(
        feature=np.array([0]),
        factor=np.array([[0]]),
        rate=np.array([[0.4]], np.float32),
        weight=np.ones((1, 1), np.float32),
        features=1,
        factors=1,
    )
    start = np.array([[0.1]])
    assert fit_least_squares(rates, start, steps=3).examination[0, 0] == pytest.approx(0.4)
    assert fit_dla(rates, start, steps=3).examination[0, 0] == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize("fit", [fit_dla, fit_least_squares, fit_regression_em])
def test_extreme_rates_stay_finite(fit):
    for rate in (0, 1):
        rates = replace(exact(), rate=np.full((1, len(FEATURE)), rate, np.float32))
        for start in (0.0, 1.0):
            found = fit(rates, np.full((1, 4), start), steps=5)
            assert np.isfinite(found.relevance).all()
            assert np.isfinite(found.examination).all()


def test_regression_em_does_not_leave_an_examination_of_one():
    """Nor does it fit the clicks then, although the log is connected."""
    rates = exact()
    found = fit_regression_em(rates, np.array([[0.5, 0.5, 0.5, 1.0]]), steps=4000)
    assert found.examination[0, 3] == 1
    assert click_mse(rates, found)[0] > 1e-4


def test_a_fixed_point_ends_the_iteration_early():
    # With one row per feature and o = 1 relevance is the rate, and nothing ever changes.
    rates = exact(np.arange(4), np.arange(4))
    found = fit_regression_em(rates, np.ones((1, 4)), steps=2**31 - 1)
    np.testing.assert_allclose(found.relevance[0, :4], rates.rate[0], rtol=1e-6)
    assert (found.examination == 1).all()


def test_click_mse_is_the_mean_over_weighted_rows():
    rates = noisy()
    rng = np.random.default_rng(1)
    found = Estimate(rng.random((3, rates.features)), rng.random((3, rates.factors)))
    for lane in range(3):
        errors = [
            (w, (found.relevance[lane, x] * found.examination[lane, t] - c) ** 2)
            for x, t, c, w in rows_of(rates, lane)
        ]
        wanted = sum(w * e for w, e in errors) / sum(w for w, _ in errors)
        assert click_mse(rates, found)[lane] == pytest.approx(wanted)


def test_correlation_is_pearsons_and_nan_without_variance():
    rng = np.random.default_rng(0)
    truth, found = rng.random(30), rng.random((4, 30))
    wanted = [np.corrcoef(truth, row)[0, 1] for row in found]
    np.testing.assert_allclose(correlation(truth, found), wanted)
    np.testing.assert_allclose(correlation(truth, 0.1 + 2 * truth[None]), 1)
    assert np.isnan(correlation(truth, np.ones((1, 30)))).all()


def test_simulated_rates_are_binomial():
    chance = np.tile([0.0, 0.1, 0.5, 1.0], (4000, 1))
    clicks = 50
    rate = simulate_rates(chance, clicks, np.random.default_rng(0))
    assert rate.dtype == np.float32
    np.testing.assert_allclose(rate * clicks, np.round(rate * clicks), atol=1e-4)
    variance = chance[0] * (1 - chance[0]) / clicks
    np.testing.assert_array_less(
        np.abs(rate.mean(0) - chance[0]), 4 * np.sqrt(variance / 4000) + 1e-6
    )
    np.testing.assert_allclose(rate.var(0), variance, rtol=0.1)


def test_simulated_rates_per_lane():
    few, many = simulate_rates(
        np.full((2, 2000), 0.5), np.array([[1], [10_000]]), np.random.default_rng(0)
    )
    assert set(few) == {0, 1}
    assert many.std() < 0.01


@pytest.mark.parametrize(
    ("chance", "clicks", "field"), [(1.5, 10, "chance"), (np.nan, 10, "chance"), (0.5, 0, "clicks")]
)
def test_simulation_out_of_range(chance, clicks, field):
    with pytest.raises(InputError, match=field):
        simulate_rates(np.array([chance]), clicks, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature": FEATURE + 1}, r"feature: 5 is out of range \(expected in \[0, 5\)\)"),
        ({"factor": FACTOR[None] - 1}, r"factor: -1 is out of range"),
        ({"rate": np.full((1, 9), np.nan)}, r"rate: nan is out of range \(expected in \[0, 1\]\)"),
        ({"weight": np.full((1, 9), -1.0)}, r"weight: -1.0 is out of range"),
        ({"weight": np.ones((2, 9))}, r"weight: has shape \(2, 9\) \(expected \(1, 9\)\)"),
        ({"feature": FEATURE[1:]}, r"feature: has shape \(8,\) where rates have \(1, 9\)"),
    ],
)
def test_bad_rates(change, message):
    with pytest.raises(InputError, match=message):
        replace(exact(), **change)


@pytest.mark.parametrize("fit", ESTIMATORS)
def test_bad_starts(fit):
    rates = exact()
    with pytest.raises(InputError, match=r"examination: .*\(1, 3\) \(expected \(1, 4\)\)"):
        fit(rates, np.ones((1, 3)), steps=1)
    with pytest.raises(InputError, match=r"examination: .*range"):
        fit(rates, np.full((1, 4), np.nan), steps=1)
    with pytest.raises(InputError, match="steps: 0 is out of range"):
        fit(rates, np.ones((1, 4)), steps=0)
