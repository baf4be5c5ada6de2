"""The paired tests of the thesis, against SciPy's and by their level."""

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel

from papers.hager2024.significance import UNITS, against_baseline


def runs(effect=0.05, queries=60, seeds=5) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    level, own = rng.normal(size=(queries, 1)), rng.normal(size=(queries, 3, 1))
    rows = []
    for number, method in enumerate(("naive", "ips", "dla")):
        noise = rng.normal(size=(queries, seeds))
        values = level + 0.3 * own[:, number] + 0.1 * noise + effect * number
        for query, seed in np.ndindex(queries, seeds):
            rows.append((method, query, seed, values[query, seed]))
    return pd.DataFrame(rows, columns=["setting", "query", "seed", "value"])


def test_published_tests():
    """`ttest_rel` over (query, run) rows, and alpha divided by all methods of the group."""
    values = runs()
    found = against_baseline(values, "naive", unit="run", level=0.01 / 3).set_index("setting")
    base = values[values["setting"] == "naive"]["value"].to_numpy()
    for method in ("ips", "dla"):
        other = values[values["setting"] == method]["value"].to_numpy()
        theirs = ttest_rel(base, other)
        np.testing.assert_allclose(found.loc[method, "p"], theirs.pvalue, rtol=1e-9)
        improved = theirs.pvalue <= 0.01 / 3 and theirs.statistic < 0
        assert (found.loc[method, "value"] == 1) == improved
        assert found.loc[method, "n"] == 300


def test_runs_of_a_query_are_no_new_queries():
    """Methods that differ by what they do to each query: five runs do not make five samples."""
    values = runs()
    p = {
        unit: against_baseline(values, "naive", unit=unit, level=0.01).set_index("setting")["p"]
        for unit in UNITS
    }
    assert (p["run"] < p["query"]).all()
    means = values.groupby(["query", "setting"])["value"].mean().unstack()
    for method in ("ips", "dla"):
        np.testing.assert_allclose(
            p["query"][method], ttest_rel(means["naive"], means[method]).pvalue, rtol=1e-9
        )


def test_levels_of_tests_over_queries_and_runs():
    """Without a difference in the population, tests over queries keep their level. Those over
    (query, run) rows do not."""
    wrong = dict.fromkeys(UNITS, 0)
    trials, level = 150, 0.05
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        own = rng.normal(size=(2, 30, 1)) + 0.2 * rng.normal(size=(2, 30, 5))
        method, query, seed = np.indices(own.shape).reshape(3, -1)
        values = pd.DataFrame({
            "setting": np.array(["naive", "other"])[method], "query": query, "seed": seed,
            "value": own.ravel(),
        })  # fmt: skip
        for unit in wrong:
            change = against_baseline(values, "naive", unit=unit, level=level)["value"]
            wrong[unit] += abs(change.item())
    # Within four standard errors of the level, and far above it.
    assert abs(wrong["query"] / trials - level) < 4 * np.sqrt(level * (1 - level) / trials)
    assert wrong["run"] / trials > 0.2
