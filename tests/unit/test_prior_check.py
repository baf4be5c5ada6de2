"""Which positions of a fit differ from the conditional estimate, by more than both errors."""

import numpy as np
import pandas as pd
import pytest

from twotowers.fits.prior_check import LEVEL, differing
from twotowers.intervals import quantile


@pytest.mark.parametrize(("distance", "differs"), [(0.95, False), (1.05, True)])
def test_a_position_differs_beyond_students_quantile_of_both_errors(distance, differs):
    queries = np.array([np.nan, 40, 40, 40])
    errors = np.hypot(0.03, 0.04) * quantile(40, level=1 - LEVEL / 3)
    estimate = np.array([0.8, 0.4, 0.2, 0.1])
    moved = np.exp([0, distance * errors, 0, np.nan])
    conditional = estimate / 0.8 * moved
    table = pd.DataFrame(
        {
            "estimate": estimate,
            "error": 0.03 * estimate,
            "conditional": conditional,
            "conditional_error": [0, 0.04, 0.04, 0.04],
        }
    )
    assert differing(table, queries).tolist() == [False, differs, False, False]
