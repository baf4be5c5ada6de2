"""Errors of a conditional curve by query and by user."""

import numpy as np
import pandas as pd

from benchmarks.validate.feedback import simulate
from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.curves import cluster_by_user
from twotowers.fitting.pair_counts import PairCounts


def rows_of(log) -> pd.DataFrame:
    rows = pd.DataFrame(log).assign(impressions=1, clicks=log["click"])
    by = ["pair", "factor", "query", "user"]
    return rows.groupby(by, as_index=False)[["impressions", "clicks"]].sum()


def conditional(log, kept=slice(None)):
    pair, factor, click, query = (log[each][kept] for each in ("pair", "factor", "click", "query"))
    counts = PairCounts.of_arrays(pair, factor, np.ones(len(pair)), click, query=query, factors=6)
    return fit_conditional(counts)


def test_errors_by_user_are_those_of_leaving_each_user_out():
    log, _ = simulate(
        np.random.default_rng(1), queries=100, rounds=30, users=60, spread=1.5, activity=0
    )
    curve = conditional(log)
    both = cluster_by_user(curve, rows_of(log))
    without = [np.log(conditional(log, log["user"] != user).estimate) for user in range(60)]
    jackknife = np.sqrt(59 / 60 * ((without - np.mean(without, 0)) ** 2).sum(0))
    # Users are nearly all there is to chance here.
    np.testing.assert_allclose(both.error[1:], jackknife[1:], rtol=0.15)
    assert (both.error[1:] > 1.5 * curve.error[1:]).all()


def test_users_of_one_page_each_change_no_error():
    log, _ = simulate(np.random.default_rng(2), queries=60, rounds=30)
    log["user"] = np.arange(len(log["pair"])) // 6
    curve = conditional(log)
    both = cluster_by_user(curve, rows_of(log))
    np.testing.assert_array_equal(both.estimate, curve.estimate)
    np.testing.assert_allclose(both.error, curve.error, rtol=0.01)


def test_few_users_make_the_curve_doubtful():
    log, _ = simulate(np.random.default_rng(3), rounds=30, users=3, spread=0.4)
    both = cluster_by_user(conditional(log), rows_of(log))
    assert all("effective users" in reason for reason in both.reason[1:])


def test_a_factor_without_estimate_keeps_its_reason():
    log, _ = simulate(np.random.default_rng(4), rounds=10, users=10)
    log["factor"] = np.where(log["factor"] == 5, 4, log["factor"])
    curve = conditional(log)
    assert cluster_by_user(curve, rows_of(log)).reason[5] == curve.reason[5] == "never shown"
