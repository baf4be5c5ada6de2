"""Chen et al. (2024): theorems on small logs, where DLA's steps end, and connected graphs."""

import numpy as np
import pytest

from papers.chen2024.judges.synthetic import POOR
from papers.chen2024.methods.rate_dla import MeanRatio, converge
from papers.chen2024.studies.example2 import estimate, exponent, gilbert, pair_apart, simulated
from papers.chen2024.studies.theorems import contradiction, free_constants, second_solution, swaps
from tests.items import given_lists
from twotowers.errors import InputError
from twotowers.fitting.tiles import ClickRates
from twotowers.methods.alternation import alternate


def test_a_log_has_a_free_constant_per_component():
    feature, factor = np.array([0, 0, 7, 7, 9]), np.array([0, 1, 1, 2, 3])
    assert free_constants(feature, factor) == 2
    assert free_constants(feature[:4], factor[:4]) == 1
    # A ring is one component, however many ways lead around it.
    assert free_constants(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 2, 2, 0])) == 1


def test_pairs_contradict_each_other_only_in_a_cycle():
    component = np.array([0, 0, 1, 1, 2])
    examination = np.log([0.9, 0.5, 0.4, 0.3, 0.2])
    tree = [(0, 2), (3, 4)]
    assert contradiction(tree, component, examination) < 1e-12
    assert contradiction([*tree, (1, 2)], component, examination) > 0.01
    # Equal ratios in both components are no contradiction.
    alike = np.log([0.9, 0.6, 0.6, 0.4, 0.2])
    assert contradiction([(0, 2), (1, 3)], component, alike) < 1e-12


def test_the_second_solution_fits_and_ranks_otherwise():
    connected, apart = map(given_lists, (1, 2))
    found = second_solution(apart, 0.25)
    assert found["difference"] < 1e-15
    assert found["mcc"] < POOR["mcc"]
    # Where the graph is connected there is only the first.
    assert second_solution(connected, 0.25)["mcc"] == pytest.approx(1)


def test_swaps_of_a_connected_log_are_none():
    rng = np.random.default_rng(0)
    feature, factor = np.array([0, 0]), np.array([0, 1])
    apart = np.array([0, 1]), np.array([0, 1])
    counted = {metric: value for _, _, metric, value in swaps([(1, feature, factor, rng),
                                                               (2, *apart, rng)])}  # fmt: skip
    assert counted == {"other": 0, "apart": 0, "checked": 2}


def rates() -> tuple[ClickRates, np.ndarray]:
    """Three factors in a chain, with noise; and examination to start from."""
    rng = np.random.default_rng(1)
    feature = np.repeat(np.arange(12), 2)
    factor = np.tile([0, 1, 1, 2], 6)
    chance = rng.uniform(0.2, 0.9, 12)[feature] * np.array([0.8, 0.5, 0.3])[factor]
    rate = chance * rng.uniform(0.9, 1.1, len(chance))
    return ClickRates(feature, factor[None], rate[None], np.ones((1, 24)), 12, 3), np.ones((1, 3))


def test_where_dla_ends_its_steps_stay():
    log, start = rates()
    end = converge(log, start)
    after = alternate(log, end.examination / 2, MeanRatio(), steps=50).examination
    np.testing.assert_allclose(after / after[:, :1], end.examination, rtol=1e-4)
    # Many steps come to the same place; few do not.
    many, few = (alternate(log, start, MeanRatio(), steps=steps).examination for steps in (5000, 3))
    np.testing.assert_allclose(many / many[:, :1], end.examination, rtol=1e-3)
    assert np.abs(few / few[:, :1] - end.examination).max() > 0.01


def test_a_lane_may_not_have_every_factor():
    log, start = rates()
    without = log.factor[0] < 2
    lane = ClickRates(
        log.feature[without],
        log.factor[:, without],
        log.rate[:, without],
        log.weight[:, without],
        12,
        3,
    )
    found = converge(lane, start).examination
    assert np.isfinite(found[0, :2]).all()
    assert np.isnan(found[0, 2])


def test_a_disconnected_log_has_no_limit():
    log, start = rates()
    apart = ClickRates(np.arange(24), log.factor, log.rate, log.weight, 24, 3)
    with pytest.raises(InputError, match=r"method\.until: .*disconnected.*expected 'steps'"):
        converge(apart, start)


def test_lemmas_of_example_2_on_a_size_where_they_hold():
    rng = np.random.default_rng(0)
    sizes = 40, 60, 400
    drawn = np.mean([simulated(*sizes, rng)[2] for _ in range(200)])
    assert drawn == pytest.approx(pair_apart(*sizes), abs=0.005)
    edge = 0.15
    connected = np.mean([gilbert(60, edge, rng) for _ in range(300)])
    assert connected == pytest.approx(1 - 60 * (1 - edge) ** 59, abs=0.03)
    # In plain arithmetic the exponent has lost its digits by a million factors.
    assert exponent(50, 10**6, 1000) == pytest.approx(1000, rel=1e-4)
    assert exponent(50, 20, 80) == pytest.approx(1000 * np.log(2 - np.exp(-0.08)))
    assert estimate(50, 10**6, 1000) < 0
