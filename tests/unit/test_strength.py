"""The weighted identifiability graph: rank, resistances, bridges, swaps, sessions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twotowers.analysis.propensities import Propensities
from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.pair_counts import PairCounts, factor_components
from twotowers.identifiability.graph import intervention_cost
from twotowers.identifiability.strength import (
    best_swaps,
    growth_of,
    strength,
    strength_of_log,
    times_needed,
)

ROWS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), min_size=1, max_size=25)


@settings(max_examples=40)
@given(ROWS)
def test_its_rank_is_theorem_1(rows):
    document, factor = np.array(rows).T
    counts = PairCounts.of_arrays(
        document, factor, np.full(len(rows), 9), np.full(len(rows), 3), factors=6
    )
    curve = fit_conditional(counts)
    component = factor_components(document, factor, factors=6)
    known = np.isfinite(curve.estimate)
    assert known.tolist() == (component == component[0]).tolist()
    found = strength_of_log(counts)
    assert found.components == component.max() + 1
    same = component[:, None] == component
    assert (found.component[:, None] == found.component).tolist() == same.tolist()
    assert np.isfinite(found.resistance).tolist() == same.tolist()


def test_resistances_are_those_of_a_chain_and_of_parallel_links():
    weights = np.zeros((3, 3))
    weights[0, 1] = weights[1, 0] = 10
    weights[1, 2] = weights[2, 1] = 5
    found = strength(np.diag(weights.sum(0)) - weights)
    assert found.resistance[0, 2] == pytest.approx(1 / 10 + 1 / 5)
    weights[0, 2] = weights[2, 0] = 2
    found = strength(np.diag(weights.sum(0)) - weights)
    assert found.resistance[0, 2] == pytest.approx(1 / (2 + 1 / (1 / 10 + 1 / 5)))
    # Shares of all links add up to the number of links of a spanning tree.
    assert found.links["share"].sum() == pytest.approx(2)


def test_the_inverse_of_what_a_swap_adds_is_the_cost_of_chen_et_al():
    # Two documents of one attraction, on one page each way: twice the information of one.
    swaps = best_swaps(np.zeros((2, 2)), [0.8, 0.5], 0.4, pages=1, steps=1)
    cost = intervention_cost(0.4, 0.8, 0.5)
    assert 2 / swaps["clicks"][0] == pytest.approx(cost + 2)
    assert swaps["worst"][0] == pytest.approx(np.sqrt((cost + 2) / 2))


def test_each_step_is_the_best_of_all():
    rng = np.random.default_rng(2)
    weights = np.triu(rng.uniform(0, 5, (5, 5)), 1)
    weights += weights.T
    laplacian = np.diag(weights.sum(0)) - weights
    examination = np.geomspace(1, 0.2, 5)
    chosen = best_swaps(laplacian, examination, 0.1, pages=100, steps=1).iloc[0]
    others = []
    for k in range(5):
        for other in range(k):
            swap = np.eye(5)[k] - np.eye(5)[other]
            both = examination[k] * examination[other] / (examination[k] + examination[other])
            more = laplacian + 100 * 2 * 0.1 * both * np.outer(swap, swap)
            resistance = strength(more).resistance[0, 1:]
            others.append((resistance.sum(), np.sqrt(resistance).mean()))
    assert chosen["mean"] == pytest.approx(min(others)[1])


def test_times_for_an_error():
    counts = PairCounts.of_arrays([0, 0, 1], [0, 1, 2], [100, 100, 5], [50, 50, 1])
    curve = fit_conditional(counts)
    error = np.sqrt(4 / curve.swaps)
    error[0] = 0
    needed = times_needed(replace(curve, error=error), 0.02, growth=1)
    assert needed[1] == pytest.approx((2 / 50) / 0.02**2)
    assert needed[0] == 0
    assert needed[2] == np.inf


def test_growth_is_that_of_logs_that_are_drawn_longer():
    """Documents that are shown a few times: the error of 4 times the log, within 15 %."""
    places, queries, pages = np.array([1, 0.5, 0.25]), 1500, 3000

    def log(rng, pages):
        query = np.random.default_rng(0).beta(2, 2, (queries, 3))  # one world, many logs
        asked = rng.integers(queries, size=pages)
        order = np.argsort(rng.random((pages, 3)), 1)
        clicks = rng.random((pages, 3)) < query[asked[:, None], order] * places
        pair, place = (asked[:, None] * 3 + order).ravel(), np.tile(range(3), pages)
        return PairCounts.of_arrays(pair, place, np.ones(3 * pages), clicks.ravel())

    asked = []
    for seed in range(6):
        counts = log(np.random.default_rng([1, seed]), pages)
        curve = fit_conditional(counts)
        longer = fit_conditional(log(np.random.default_rng([2, seed]), 4 * pages)).error[1:]
        growth = growth_of(counts, curve)
        assert growth[0] == 1
        asked.append([times_needed(curve, longer.mean(), each)[1:] for each in (growth, 1)])
    forecast, proportion = np.mean(asked, axis=(0, 2))
    assert forecast == pytest.approx(4, rel=0.15)
    assert proportion > 5


@pytest.mark.parametrize(("factors", "steps"), [(1, 3), (2, 0)])
def test_no_swap_is_an_empty_table(factors, steps):
    swaps = best_swaps(np.zeros((factors,) * 2), np.ones(factors), 0.1, pages=10, steps=steps)
    assert len(swaps) == 0
    assert list(swaps) == ["one", "other", "clicks", "joins", "worst", "mean"]


@pytest.mark.parametrize("queries", [40, 400])
@pytest.mark.parametrize("fixed", [False, True])
def test_swaps_on_pages_of_the_log_give_what_they_promise(queries, fixed):
    # A log of 2,000 pages, and 100 pages of each arrangement of five swaps, of the same queries.
    examination, pages, said, found = np.array([1, 0.7, 0.4, 0.2]), 100, [], []

    def drawn(number: int, swap: tuple[int, int] | None = None):
        query, noise = rng.integers(queries, size=number), rng.normal(size=(number, 4))
        order = np.argsort(np.arange(4) + noise * (not fixed), 1)
        if swap:
            order[:, swap] = order[:, swap[::-1]]
        clicks = rng.random(order.shape) < attraction[query[:, None], order] * examination
        return query, order, clicks

    def counted(*parts) -> PairCounts:
        query, order, clicks = (np.concatenate(each) for each in zip(*parts, strict=True))
        places, ones = np.tile(np.arange(4), len(query)), np.ones(order.size)
        pair = (query[:, None] * 4 + order).ravel()
        return PairCounts.of_arrays(
            pair, places, ones, clicks.ravel(), query=np.repeat(query, 4), factors=4
        )

    for seed in range(4):
        rng = np.random.default_rng(seed)
        attraction = -np.sort(-rng.beta(1, 3, (queries, 4)), 1)
        parts = [drawn(2_000)]
        counts = counted(*parts)
        log = Propensities(fit_conditional(counts), "conditional", ("position",), counts, None)
        plan = log.swaps_by_number(pages=pages)
        for swap in plan.itertuples():
            parts += [drawn(pages), drawn(pages, (swap.one, swap.other))]
        said.append(plan["mean"].iloc[-1])
        found.append(np.sqrt(4 / fit_conditional(counted(*parts)).swaps[1:]).mean())
    assert np.mean(said) == pytest.approx(np.mean(found), rel=0.15)
