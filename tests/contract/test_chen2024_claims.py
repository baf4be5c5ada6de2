"""Chen et al. (2024): rules of judges, against arithmetic and simulation."""

import numpy as np
import pandas as pd
import pytest

from papers.chen2024.claims import CLAIMS
from papers.chen2024.judges.cells import CLICKS, LISTS
from papers.chen2024.judges.synthetic import AGREES, as_another_draw
from tests.claimed import altered, claimed
from twotowers.claims.claims import CONTRADICTED, NOT_TESTABLE, REPRODUCED, judge
from twotowers.claims.data_provenance import REAL, STAND_IN

BY_ID = {claim.id: claim for claim in CLAIMS}
RESULTS = claimed("chen2024").assign(stands_on=REAL)


@pytest.mark.parametrize("name", ["9a", "10a", "11a", "16a"])
def test_numbers_of_queries_are_not_compared_between_sizes(name):
    nodes = {"setting": "connectivity-yahoo", "metric": "nodes"}
    smaller = altered(RESULTS, lambda rows: 0.8 * rows["value"], **nodes)
    judgement = judge(BY_ID[name], smaller)
    assert judgement.verdict == NOT_TESTABLE
    assert "another size" in judgement.reason


@pytest.mark.parametrize("name", ["10b", "15", "19"])
def test_a_study_on_real_and_other_files_is_no_evidence(name):
    mixed = RESULTS.copy()
    mixed.loc[mixed.groupby("setting").head(1).index, "stands_on"] = STAND_IN
    assert judge(BY_ID[name], mixed).verdict == NOT_TESTABLE


def test_three_means_may_each_be_farther_off_than_one():
    """2d allows for three comparisons: the plain bound is .8 times the corrected one."""
    (off, allowed), _ = (measured for _, measured in BY_ID["2d"].measure(RESULTS))
    assert off.max() < 1e-6
    lane = {"setting": LISTS, "views": CLICKS, "components": 2, "metric": "mcc"}
    for share, verdict in ((0.95, REPRODUCED), (1.05, CONTRADICTED)):
        shift = share * allowed["two_tower"]
        results = altered(
            RESULTS, lambda rows: rows["value"] + shift, **lane, method="two_tower", repair="plain"  # noqa: B023
        )  # fmt: skip
        assert judge(BY_ID["2d"], results).verdict == verdict


def test_another_draw_of_the_data_set_has_the_stated_chance():
    """A printed number from the same normal law as ten draws lies within 95 times in 100."""
    rng = np.random.default_rng(0)
    lane = {"setting": "redrawn-naive", "method": "naive", "repair": "plain", "components": 2}
    trials, held = 150, 0
    for _ in range(trials):
        values = rng.normal(0.5, 0.01, 11)
        results = pd.DataFrame({"value": values[1:], "seed": range(10), "metric": "mcc", **lane})
        found = as_another_draw(results.assign(views=CLICKS), "naive", "plain", {"mcc": values[0]})
        pairs = zip(AGREES, found, strict=True)
        held += all(condition.met_by(value) for condition, value in pairs if condition.judged)
    # Half a printed digit adds a little; three standard errors to either side.
    assert held / trials == pytest.approx(0.955, abs=3 * np.sqrt(0.05 * 0.95 / trials))
