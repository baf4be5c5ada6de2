"""Metrics of queries and pages, and paired tests, against plain formulas and SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from twotowers.claims.annotated import joined_by_number, logged_ndcg, nll_of_pages, of_each_query
from twotowers.claims.paired import against_baseline
from twotowers.methods.chance import NO_CLICK

QUERIES, DOCUMENTS = 7, 14
RNG = np.random.default_rng(3)
SCORES = RNG.normal(size=(QUERIES, DOCUMENTS))
LABELS = RNG.integers(0, 5, (QUERIES, DOCUMENTS))
WHERE = np.arange(DOCUMENTS) < RNG.integers(2, DOCUMENTS + 1, QUERIES)[:, None]
LABELS[0] = 0


def plain_dcg(labels, topn):
    return sum((2.0**y - 1) / np.log2(1 + rank) for rank, y in enumerate(labels[:topn], start=1))


def test_metrics_of_each_query():
    found = of_each_query(SCORES, LABELS, where=WHERE)
    for query, shown in enumerate(WHERE):
        order = np.argsort(-SCORES[query][shown], kind="stable")
        ranked = LABELS[query][shown][order]
        for topn in (1, 3, 5, 10):
            expected = plain_dcg(ranked, topn)
            np.testing.assert_allclose(found[f"dcg@{topn}"][query], expected, rtol=1e-5)
        ideal = plain_dcg(sorted(ranked, reverse=True), 10)
        np.testing.assert_allclose(
            found["ndcg@10"][query], plain_dcg(ranked, 10) / ideal if ideal else 0, rtol=1e-5
        )
        relevant = np.flatnonzero(ranked[:10] >= 1)
        expected = 1 / (1 + relevant[0]) if len(relevant) else 0
        np.testing.assert_allclose(found["mrr@10"][query], expected, rtol=1e-6)


def test_logged_order():
    positions = 10
    where = np.ones((2000, positions), bool)
    inverse = 1 / np.arange(1, positions + 1)
    assert (logged_ndcg(np.tile(inverse, (2000, 1)), where=where) == 1).all()
    # A random order: the mean gain at every rank.
    gains, discounts = 2**inverse - 1, 1 / np.log2(2 + np.arange(positions))
    expected = gains.mean() * discounts.sum() / (gains @ discounts)
    found = logged_ndcg(RNG.random(where.shape), where=where).mean()
    assert found == pytest.approx(expected, abs=0.01)
    assert 0.65 < expected < 0.75


def test_a_gap_keeps_its_position():
    """The page shows positions 1 and 3. Labels are 1 and 1/3, and the best order has nDCG 1."""
    where = np.array([[True, False, True]])
    assert logged_ndcg(np.array([[1.0, 9.0, 0.0]]), where=where) == 1
    gains = [1, 2 ** (1 / 3) - 1]
    swapped = (gains[1] + gains[0] / np.log2(3)) / (gains[0] + gains[1] / np.log2(3))
    found = logged_ndcg(np.array([[0.0, 9.0, 1.0]]), where=where)
    np.testing.assert_allclose(found, swapped, rtol=1e-6)


def test_accidental_join():
    """The published tables have the mean of what matches; its tests fill the rest with 0."""
    nll = nll_of_pages(
        np.array([[0.2, 0.4], [1.0, 5.0], [3.0, 1.0]]), np.array([[1, 1], [1, 0], [0, 0]], bool)
    )
    np.testing.assert_array_equal(nll, [0.30000000000000004, 1.0, np.nan])
    rows = joined_by_number(nll[:2], np.array([5, 3]), np.array([3, 4, 5, 6]))
    np.testing.assert_array_equal(rows, [1.0, np.nan, nll[0], np.nan])
    # An id of two pages gives two rows.
    twice = joined_by_number(np.array([0.1, 0.2, 0.3]), np.array([5, 5, 8]), np.array([5, 8]))
    np.testing.assert_array_equal(twice, [0.1, 0.2, 0.3])


def runs(effect=0.05, queries=60, seeds=5) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    level, own = rng.normal(size=(queries, 1)), rng.normal(size=(queries, 3, 1))
    rows = []
    for number, method in enumerate(("naive", "ips", "dla")):
        noise = rng.normal(size=(queries, seeds))
        values = level + 0.3 * own[:, number] + 0.1 * noise + effect * number
        for query, seed in np.ndindex(queries, seeds):
            rows.append((method, query, seed, values[query, seed]))
    return pd.DataFrame(rows, columns=["method", "query", "seed", "value"])


def test_published_tests():
    """`ttest_rel` over (query, run) rows, and alpha divided by all methods of the group."""
    values = runs()
    found = against_baseline(values, "naive", unit="run", tests=3).set_index("method")
    base = values[values["method"] == "naive"]["value"].to_numpy()
    for method in ("ips", "dla"):
        other = values[values["method"] == method]["value"].to_numpy()
        theirs = ttest_rel(base, other)
        np.testing.assert_allclose(found.loc[method, "p"], theirs.pvalue, rtol=1e-9)
        improved = theirs.pvalue <= 0.01 / 3 and theirs.statistic < 0
        assert (found.loc[method, "change"] == 1) == improved
        assert found.loc[method, "n"] == 300


def test_runs_of_a_query_are_no_new_queries():
    """Methods that differ by what they do to each query: five runs do not make five samples."""
    values = runs()
    p = {
        unit: against_baseline(values, "naive", unit=unit).set_index("method")["p"]
        for unit in ("run", "query", "seed")
    }
    assert (p["run"] < p["query"]).all()
    means = values.groupby(["query", "method"])["value"].mean().unstack()
    for method in ("ips", "dla"):
        np.testing.assert_allclose(
            p["query"][method], ttest_rel(means["naive"], means[method]).pvalue, rtol=1e-9
        )


def test_levels_of_tests_over_queries_and_runs():
    """Without a difference in the population, tests over queries keep their level. Those over
    (query, run) rows do not."""
    wrong = dict.fromkeys(("run", "query"), 0)
    trials, level = 150, 0.05
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        own = rng.normal(size=(2, 30, 1)) + 0.2 * rng.normal(size=(2, 30, 5))
        method, query, seed = np.indices(own.shape).reshape(3, -1)
        values = pd.DataFrame({
            "method": np.array(["naive", "other"])[method], "query": query, "seed": seed,
            "value": own.ravel(),
        })  # fmt: skip
        for unit in wrong:
            change = against_baseline(values, "naive", unit=unit, alpha=level)["change"]
            wrong[unit] += abs(change.item())
    # Within four standard errors of the level, and far above it.
    assert abs(wrong["query"] / trials - level) < 4 * np.sqrt(level * (1 - level) / trials)
    assert wrong["run"] / trials > 0.2


def test_groups_of_tests():
    values = pd.concat([runs().assign(metric="dcg@10"), runs(effect=-1).assign(metric="nll")])
    found = against_baseline(values, "naive", by=["metric"])
    assert found[["metric", "method"]].values.tolist() == [
        [metric, method] for metric in ("dcg@10", "nll") for method in ("ips", "dla")
    ]
    assert (found[found["metric"] == "nll"]["change"] == -1).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseline": "none"}, "'none' is missing"),
        ({"unit": "day"}, "unit 'day'"),
        ({"values": runs().iloc[:-1], "unit": "run"}, "different values"),
    ],
)
def test_what_cannot_be_tested(change, message):
    with pytest.raises(ValueError, match=message):
        against_baseline(**{"values": runs(), "baseline": "naive"} | change)


def test_chance_is_the_mean_over_draws():
    rng = np.random.default_rng(0)
    scores = rng.random((40_000, 3))
    labels, where = np.broadcast_to([2, 0, 1], scores.shape), np.ones(scores.shape, bool)
    drawn = of_each_query(scores, labels, where=where)
    for name, value in of_each_query(0 * scores[:1], labels[:1], where=where[:1]).items():
        assert value.item() == pytest.approx(drawn[name].mean(), rel=0.02)
    assert pytest.approx(np.logaddexp(0, scores).mean(), abs=1e-3) == NO_CLICK
    assert pytest.approx(np.logaddexp(0, -scores).mean(), abs=1e-3) == NO_CLICK - 0.5
