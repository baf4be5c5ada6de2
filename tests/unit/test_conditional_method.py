"""Method `conditional` in the pipeline: the curve of `fit_conditional`, of each lane's log."""

import numpy as np
import pytest

from tests.tasks import task_of
from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.pair_counts import PairCounts
from twotowers.jobs.measures import measure
from twotowers.logs.counts import Counts
from twotowers.methods import conditional
from twotowers.methods.task import Split, Task

SHOWN = np.array([[[30, 10], [10, 30]], [[20, 20], [20, 20]]])
CLICKS = np.array([[[12, 2], [3, 4]], [[9, 5], [6, 3]]])


def task(inputs: np.ndarray) -> Task:
    where = np.ones((2, 2), bool)
    counts = Counts(np.stack([SHOWN, SHOWN * 2]), np.stack([CLICKS, CLICKS]))
    split = Split(inputs, where, None, counts)
    return task_of(split, 2, lanes=[(0, {}), (1, {})])


@pytest.mark.parametrize("form", ["product", "additive"])
def test_each_lane_has_its_curve_and_error(form):
    given = task(np.arange(4).reshape(2, 2))
    one, other = conditional.fit(given, form=form)
    pair, factor = np.repeat(np.arange(4), 2), np.tile([0, 1], 4)
    counts = PairCounts.of_arrays(
        pair, factor, SHOWN.ravel(), CLICKS.ravel(), query=np.repeat([0, 1], 4)
    )
    curve = fit_conditional(counts, form=form)
    np.testing.assert_allclose(one.bias, np.log(curve.estimate))
    np.testing.assert_allclose(one.bias_error, curve.error)
    # Twice the impressions at both positions change no ratio, but odds.
    assert (other.bias[1] == pytest.approx(one.bias[1])) == (form == "product")
    found = measure(one, given.splits["test"], 0)
    rows = {(metric, rank): value for metric, rank, value in found}
    assert rows["position_bias", 2] == pytest.approx(np.log(curve.estimate[1]))
    assert rows["position_bias_error", 2] == pytest.approx(curve.error[1])
