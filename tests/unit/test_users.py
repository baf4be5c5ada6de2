"""The additive two-tower user in closed form."""

import numpy as np

from twotowers.models.users import click_probability, position_bias


def test_position_bias_is_minus_log_rank():
    expected = [0, -np.log(2), -np.log(3), -2 * np.log(2)]
    np.testing.assert_allclose(position_bias(4), expected, atol=1e-15)


def test_click_probability_closed_form():
    # sigmoid(-ln k) = 1 / (1 + k) at the centred relevance of 2.
    positions = np.arange(1, 26)
    np.testing.assert_allclose(
        click_probability(np.array(2.0), position_bias(25)), 1 / (1 + positions), rtol=1e-12
    )
    # sigmoid(gamma - 2 - ln k) = 1 / (1 + k exp(2 - gamma)).
    np.testing.assert_allclose(
        click_probability(np.array([[0.0], [4.0]]), position_bias(25)),
        [1 / (1 + positions * np.exp(2)), 1 / (1 + positions * np.exp(-2))],
        rtol=1e-12,
    )
