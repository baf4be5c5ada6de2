"""Stand-ins with long lists: that they are reproducible, and have the real sets' shape."""

import numpy as np
import pytest

from twotowers.files.rankings import Rankings
from twotowers.standins.lists import BLOCK, NAMES, POPULATIONS
from twotowers.standins.rankings import generate

COLUMNS = ("query", "document", "label", "features")
# Hager (2026), Table 2.1: fewest documents, mean, median, 90th percentile, most.
LISTS = {"yahoo_ltr": (1, 24, 19, 49, 139), "istella_s_ltr": (3, 103, 120, 147, 182)}
WIDTHS = {"yahoo_ltr": 699, "istella_s_ltr": 220}


def same(one: Rankings, other: Rankings) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


@pytest.fixture(scope="module", params=NAMES)
def named(request) -> tuple[str, Rankings]:
    return request.param, generate(request.param, "train", queries=700, seed=3)


def test_form(named):
    name, rankings = named
    assert rankings.features.shape == (len(rankings.label), WIDTHS[name])
    assert rankings.features.dtype == rankings.label.dtype == np.float32
    assert set(rankings.label) == {0, 1, 2, 3, 4}
    assert len(rankings.queries) == 700
    numbers = np.concatenate([np.arange(n) for n in rankings.lengths])
    np.testing.assert_array_equal(rankings.document, numbers)
    whole = (rankings.features == np.round(rankings.features)).all()
    assert whole == POPULATIONS[name].counts
    assert rankings.features.min() >= 0
    assert rankings.features.max() <= (1e6 if whole else 1)


def test_list_lengths(named):
    name, rankings = named
    fewest, mean, median, long, most = LISTS[name]
    lengths = rankings.lengths
    # Four standard errors of 700 lists.
    assert lengths.mean() == pytest.approx(mean, abs=4 * lengths.std() / 700**0.5 + 1)
    assert np.median(lengths) == pytest.approx(median, abs=4)
    assert np.percentile(lengths, 90) == pytest.approx(long, rel=0.08)
    assert lengths.min() >= fewest
    assert lengths.max() <= most


@pytest.mark.parametrize("name", NAMES)
def test_the_same_arguments_give_the_same_data(name):
    one = generate(name, "test", queries=40, seed=1)
    assert same(one, generate(name, "test", queries=40, seed=1))
    for split, seed in (("test", 2), ("train", 1)):
        other = generate(name, split, queries=40, seed=seed)
        assert not np.array_equal(one.label[:100], other.label[:100])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("queries", [1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_the_first_queries_do_not_depend_on_how_many_are_drawn(name, queries):
    many = generate(name, "train", queries=2 * BLOCK, seed=0)
    few = generate(name, "train", queries=queries, seed=0)
    assert len(few.queries) == queries
    assert same(few, many.take(slice(0, len(few.query))))
