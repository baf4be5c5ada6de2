"""Bias factors of logs with vertical types, and their components: by hand, by search, Table 5."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.chen2024.studies.verticals import components
from twotowers.logs.counted import count_cells
from twotowers.standins.logs import generate_log

COLUMNS = ("query", "document", "position", "v1", "v2")


def log_of(rows):
    """A log of (query, document, position, v1, v2), each shown once."""
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    return count_cells({**columns, "impressions": [1] * len(rows), "clicks": [0] * len(rows)}, {})


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(*[st.integers(1, 4)] * 3, st.sampled_from("ab"), st.sampled_from("xyz")),
        min_size=1,
        max_size=12,
    )
)
def test_components_equal_a_search_of_the_graph_of_factors(rows):
    log = log_of(rows)
    for factors in (("v1", "v2", "position"), ("v2", "position"), ("v1",)):
        shown = {(row[:2], tuple(row[COLUMNS.index(name)] for name in factors)) for row in rows}
        nodes = {factor for _, factor in shown}
        groups = {node: {node} for node in nodes}
        for (one, s), (other, t) in itertools.product(shown, shown):
            if one == other and groups[s] is not groups[t]:
                merged = groups[s] | groups[t]
                groups.update(dict.fromkeys(merged, merged))
        distinct = len({id(group) for group in groups.values()})
        assert components(log, factors) == (len(nodes), distinct)


@pytest.fixture(scope="module")
def tiangong():
    return generate_log("tiangong", seed=0)


@pytest.mark.parametrize(
    ("factors", "published", "tolerance"),
    [
        # Chen et al. 2024, Table 5. The tolerances are 4 standard deviations between seeds,
        # plus the distance of the mean over ten seeds from the published figure.
        (("v1", "v2", "position"), 2_900, 270),
        (("v1", "position"), 1_106, 117),
        (("v2", "position"), 87, 46),
        (("position",), 1, 0),
    ],
)
def test_components_of_table_5(tiangong, factors, published, tolerance):
    assert components(tiangong, factors)[1] == pytest.approx(published, abs=tolerance)


def test_bias_factors_of_tiangong(tiangong):
    assert components(tiangong)[0] == pytest.approx(20_704, rel=0.04)


def test_positions_of_yandex_are_connected():
    assert components(generate_log("yandex", seed=0), ["position"]) == (10, 1)
