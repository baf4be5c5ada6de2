"""Tests of a two-tower model: closed forms, what they must agree with, and simulated truth."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import mannwhitneyu, ttest_1samp

from twotowers.errors import InputError
from twotowers.fitting.conditional import conditional_influences, fit_conditional
from twotowers.fitting.feature_towers import fit_tower
from twotowers.fitting.newton import fit_linear
from twotowers.fitting.pair_counts import FeatureCounts
from twotowers.identifiability.misfit import hausman, linear_against_deep, misfit
from twotowers.identifiability.overlap import clustered_auc, overlap
from twotowers.identifiability.residuals import PARTS, calibration, residual_and_score
from twotowers.identifiability.testing import many, single, together

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
    assert tower.expected.sum() == pytest.approx(log.counts.clicks.sum())


@pytest.mark.parametrize("form", ["additive", "product"])
def test_steps_are_those_of_fits_without_a_query(form):
    given, _ = draw(1, queries=25, form=form)
    log = FeatureCounts.of_arrays(*given)
    tower = fit_tower(log, "linear", form=form)
    steps = tower.steps(log, 0)
    for query in (0, 7):
        kept = given[0] != query
        without = FeatureCounts.of_arrays(*(each[kept] for each in given))
        bias = fit_tower(without, "linear", form=form, errors=False).bias
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
        fitted = fit_tower(log, kind, errors=False).relevance[given[1]]
        found[kind] = np.corrcoef(fitted, relevance)[0, 1]
    assert found["linear"] < 0.93
    assert found["deep"] > 0.985


def test_a_deep_tower_predicts_other_documents_as_it_fits_its_own():
    given, _ = draw(3, curved=1.5, queries=30)
    log = FeatureCounts.of_arrays(*given)
    tower = fit_tower(log, "deep", errors=False)
    assert tower.predict(log.features) == pytest.approx(tower.relevance)
    # The tangent is the derivative: a small step along it is a small step of the weights.
    assert tower.tangent.shape == (240, 3 + 3 * 8 + 8 + 8)


def test_rows_of_a_pair_and_a_factor_are_added_up():
    given, _ = draw(4, queries=20)
    twice = tuple(np.concatenate([each, each]) for each in given)
    once, both = (fit_tower(FeatureCounts.of_arrays(*each), "linear") for each in (given, twice))
    assert both.bias == pytest.approx(once.bias, abs=1e-4)
    assert len(both.expected) == len(once.expected)


def test_a_log_without_clicks_has_no_towers():
    given, _ = draw(4, queries=5)
    with pytest.raises(InputError, match="sometimes clicked"):
        misfit(*given[:4], np.zeros(len(given[0])), given[5])


def test_a_position_without_clicks_is_left_out():
    given, _ = draw(5)
    clicks = np.where(given[2] == 3, 0, given[4])
    found = misfit(*given[:4], clicks, given[5], tower="linear", with_overlap=False)
    assert np.isnan(found.tower.bias[3])
    assert np.isfinite(found.curve["difference"][1:3]).all()
    assert found.curve["reason"][3]
    assert not found.alarm


@pytest.mark.parametrize(("form", "draws"), [("additive", 8), ("product", 30)])
def test_hausman_has_its_level_and_sees_hidden_relevance(form, draws):
    right = np.array([hausman_p(seed, form=form, queries=60) for seed in range(draws)])
    assert np.mean(right < 0.05) <= 0.15
    assert 0.25 < right.mean() < 0.75
    assert hausman_p(0, form=form, hidden=0.7, policy="strong") < 0.001


def hausman_p(seed, **setting):
    given, _ = draw(seed, **setting)
    log = FeatureCounts.of_arrays(*given)
    form = setting["form"]
    return hausman(log, fit_tower(log, "linear", form=form)).test.p


def test_hausman_needs_documents_that_move():
    given, _ = draw(6)
    still = given[1] % FACTORS
    found = misfit(given[0], given[1], still, *given[3:], tower="linear", with_overlap=False)
    tests = found.tests.set_index("test")
    assert "stay where they are" in tests["reason"]["hausman"]
    assert np.isnan(tests["p"]["hausman"])
    # Corrected for those that there are.
    least = tests["p"].min()
    assert tests["adjusted"].min() == pytest.approx(min(least * tests["p"].count(), 1))


def test_residual_and_score_is_the_weight_that_the_score_would_get():
    given, relevance = draw(7, hidden=0.3)
    log = FeatureCounts.of_arrays(*given, score=relevance)
    found = residual_and_score(log, fit_tower(log, "linear"))
    wider = FeatureCounts.of_arrays(*given[:5], np.column_stack([given[5], relevance]))
    tower, more = fit_tower(log, "linear"), fit_tower(wider, "linear")
    gained = more.relevance - tower.relevance
    design = np.column_stack([log.features, np.ones(len(gained)), relevance[::3]])
    weight = np.linalg.lstsq(design, more.relevance, rcond=None)[0][-1] * relevance.std()
    assert found.value == pytest.approx(weight, rel=0.1)
    assert found.p < 1e-4


def test_a_score_that_the_tower_can_express_has_no_test():
    given, _ = draw(8)
    log = FeatureCounts.of_arrays(*given, score=given[5] @ [1, 2, 3])
    tower = fit_tower(log, "linear")
    assert "can express" in residual_and_score(log, tower).reason
    constant = FeatureCounts.of_arrays(*given, score=np.ones(len(given[0])))
    assert "the same for all" in residual_and_score(constant, tower).reason
    assert "the same for all" in calibration(constant, tower)[0].reason


def test_calibration_adds_up_and_has_tenths():
    given, _ = draw(9)
    score = np.random.default_rng(0).normal(size=len(given[0]))
    log = FeatureCounts.of_arrays(*given, score=score)
    tower = fit_tower(log, "linear")
    found, cells = calibration(log, tower)
    assert len(cells) == FACTORS * PARTS
    by_factor = cells.groupby("factor")
    sums = by_factor[["observed", "expected"]].sum().to_numpy()
    assert sums[:, 0] == pytest.approx(sums[:, 1], rel=1e-6)
    share = cells["impressions"] / by_factor["impressions"].transform("sum")
    assert share.between(0.08, 0.12).all()
    assert found.p > 0.01


def test_parts_keep_ties_together():
    given, _ = draw(9)
    log = FeatureCounts.of_arrays(*given, score=np.where(given[1] % 2, 1.0, 0.0))
    _, cells = calibration(log, fit_tower(log, "linear"))
    assert set(cells["part"]) <= {0, 4, 5}


def test_deep_is_better_only_where_relevance_is_not_linear():
    for curved, better in ((0.0, False), (1.5, True)):
        given, _ = draw(10, curved=curved, queries=60)
        found = linear_against_deep(FeatureCounts.of_arrays(*given), folds=2)
        assert (found.p < 0.01) == better
        assert (found.value > 0) == better


def test_auc_is_that_of_mann_and_whitney():
    rng = np.random.default_rng(0)
    guess, second = rng.integers(9, size=300) / 1.0, rng.random(300) < 0.4
    auc, error, freedom = clustered_auc(guess, second, np.ones(300), np.arange(300))
    count = mannwhitneyu(guess[second], guess[~second]).statistic
    assert auc == pytest.approx(count / (second.sum() * (~second).sum()))
    # Independent rows: the variance of DeLong et al. (1988), but for n / (n - 1).
    assert 0.02 < error < 0.05
    twice = (np.tile(each, 2) for each in (guess, second, np.ones(300), np.arange(300)))
    doubled = clustered_auc(*twice)
    assert doubled == pytest.approx((auc, error, freedom))
    assert 100 < freedom < 300


def test_overlap_of_known_distributions():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 1))
    factor = np.tile([0, 1, 2], 1000)
    x[factor == 2] += 20
    query, pair = np.repeat(np.arange(1000), 3), np.arange(3000)
    log = FeatureCounts.of_arrays(query, pair, factor, np.ones(3000), np.zeros(3000), x)
    found = overlap(log, slope=2.0)
    assert found["low"][0] < 0.5 < found["high"][0]
    assert found["auc"][1] == pytest.approx(1)
    assert found["bound"].tolist() == pytest.approx((4 * found["distance"]).tolist())
    assert found["distance"][0] < 0.01 < 1 < found["distance"][1]
    # One document at both positions makes the bound 0.
    moved = pair.copy()
    moved[2] = moved[1]
    same = x.copy()
    same[2] = same[1]
    log = FeatureCounts.of_arrays(query, moved, factor, np.ones(3000), np.zeros(3000), same)
    assert overlap(log)["distance"][1] == 0


def test_the_interval_of_overlap_holds_a_half_where_features_tell_nothing():
    held = []
    for seed in range(100):
        x, factor = np.random.default_rng(seed).normal(size=(400, 5)), np.tile([0, 1], 200)
        log = FeatureCounts.of_arrays(
            np.arange(400) // 2, np.arange(400), factor, np.ones(400), np.zeros(400), x
        )
        [found] = overlap(log).to_dict("records")
        held.append(found["low"] <= 0.5 <= found["high"])
    assert np.mean(held) > 0.9


def test_one_sum_is_the_t_test_of_a_mean():
    values = np.random.default_rng(0).normal(0.3, 1, 40)
    found = single("mean", (values - values.mean()) / 40, values.mean(), "")
    expected = ttest_1samp(values, 0)
    assert found.statistic == pytest.approx(expected.statistic * np.sqrt(40 / 39))
    assert found.low < found.value < found.high


def test_joint_tests_have_their_level():
    rng = np.random.default_rng(0)
    mix = np.linalg.cholesky(0.5 + 0.5 * np.eye(6))
    few, cells = [], []
    for _ in range(400):
        steps = rng.normal(size=(40, 6)) @ mix.T * rng.exponential(size=(40, 1))
        few.append(together("few", steps, steps.sum(0)).p)
        cells.append(many("cells", steps).p)
    for p in (few, cells):
        assert np.mean(np.array(p) < 0.05) < 0.075
    assert together("few", np.eye(6), np.ones(6)).reason
