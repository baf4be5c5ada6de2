"""What tells whether a log is sound: every number by plain loops over its pages."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from twotowers.logs.health import Health, clicks_above, health, multiple
from twotowers.logs.log import Log


def drawn(pages: int, queries: int, *, seed: int = 0, documents: int = 6) -> list[tuple]:
    """Query, documents, clicks and rising positions of some pages; a document may come twice."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(pages):
        size = rng.integers(1, 5)
        shown = rng.integers(documents, size=size).tolist()
        clicks = rng.random(size) < 0.4 / np.arange(1, size + 1) + 0.2
        place = np.sort(rng.permutation(np.arange(2, 8))[:size]).tolist()
        found.append((int(rng.integers(queries)), shown, clicks.tolist(), place))
    return found


def log_of(pages: list[tuple], *, gaps: bool = False) -> Log:
    names = ("query", "documents", "clicks", "position")[: 4 if gaps else 3]
    columns = dict(zip(names, map(list, zip(*pages, strict=True)), strict=False))
    return Log.of_batches([pa.record_batch(columns)])


@pytest.mark.parametrize("gaps", [False, True])
def test_the_numbers_are_those_of_loops(gaps):
    pages = drawn(203, 4)
    found = health(log_of(pages, gaps=gaps).count(), log_of(pages, gaps=gaps))
    shown, clicked, places, twice = Counter(), Counter(), defaultdict(set), defaultdict(list)
    for query, documents, clicks, position in pages:
        twice[query, *documents, *(position if gaps else ())].append(clicks)
        position = position if gaps else range(1, len(documents) + 1)
        for document, click, place in zip(documents, clicks, position, strict=True):
            shown[query, document] += 1
            clicked[query, document] += click
            places[query, document].add(place)
    before, later = pages[:162], pages[162:]  # All but the last fifth of 203, which is 41.
    several = [each for each in twice.values() if len(each) == 2 and max(map(sum, each)) > 1]
    expected = {
        "pairs": len(shown),
        "queries": 4,
        "impressions": sum(shown.values()),
        "clicks": sum(clicked.values()),
        "thrice": sum(times <= 3 for times in shown.values()),
        "one_position": sum(len(each) == 1 for each in places.values()),
        "unclicked": sum(times == 0 for times in clicked.values()),
        "first": 2 if gaps else 1,
        "multiple": 1,
        "pages": 203,
        "without": sum(not any(clicks) for _, _, clicks, _ in pages),
        "several": sum(sum(clicks) > 1 for _, _, clicks, _ in pages),
        "repeats": sum(len({*documents}) < len(documents) for _, documents, _, _ in pages),
        "later": sum(len(documents) for _, documents, _, _ in later),
        "unseen_pairs": 0,
        "unseen_queries": 0,
        "lag": None,
        "repeated": 0,
        "twins": len(several),
        "alike": sum(one == other for one, other in several),
    }
    assert vars(found) == expected
    assert found.copied == ""
    new = [(9, [1, 50], [True, False], [2, 3]), (1, [51, 2, 52], [True] * 3, [2, 4, 7])] * 20
    found = health(log_of(before + new[:40]).count(), log_of(before + new[:40]))
    assert (found.later, found.unseen_queries, found.unseen_pairs) == (100, 40, 80)


def test_pairs_that_were_hardly_shown_or_clicked_are_counted():
    pages = [(0, [k], [False], [1]) for k in range(6) for _ in range(k + 1)]
    pages += [(0, [7, 0], [False, True], [1, 2])]
    found = health(log_of(pages).count())
    assert (found.pairs, found.thrice, found.one_position, found.unclicked) == (7, 4, 6, 6)
    assert found.pages is None


@pytest.mark.parametrize("copies", [2, 3])
def test_a_log_that_was_appended_is_repeated_at_its_length(copies):
    pages = drawn(150, 10, documents=60) * copies
    found = health(log_of(pages).count(), log_of(pages))
    assert (found.lag, found.repeated) == (150, 150 * (copies - 1))
    assert found.copied.endswith("150 pages further on")


def test_a_part_that_comes_again_is_found_at_its_distance():
    pages = drawn(300, 10, documents=60)
    found = health(log_of(pages + pages[200:260]).count(), log_of(pages + pages[200:260]))
    assert (found.lag, found.repeated) == (100, 60)


SOUND = dict.fromkeys(
    ("pairs", "queries", "impressions", "clicks", "thrice", "one_position", "unclicked"), 9
)


@pytest.mark.parametrize(
    ("numbers", "copied"),
    [
        ({"lag": 7, "repeated": 51}, "51 of 1,000 pages are there again, 7 pages further on"),
        ({"lag": 1, "repeated": 51}, "51 of 1,000 pages are there again, 1 page further on"),
        ({"lag": 7, "repeated": 50}, ""),
        ({"lag": None, "repeated": 51}, ""),
        ({"twins": 20, "alike": 6}, "Of 20 rankings"),
        ({"twins": 20, "alike": 5}, ""),
        ({"twins": 19, "alike": 19}, ""),
        ({"multiple": 2}, "Every count is a multiple of 2"),
    ],
)
def test_how_much_is_a_copy(numbers, copied):
    found = Health(**{**SOUND, "first": 1, "multiple": 1, "pages": 1000, **numbers}).copied
    assert found.startswith(copied) if copied else found == ""


@pytest.mark.parametrize(
    ("counts", "telling", "found"),
    [([6, 9, 30], 20, 3), ([6, 9, 30], 19, 1), ([6, 9, 31], 99, 1), ([4, 2.5], 99, 1)],
)
def test_all_counts_are_multiples_of_a_number(counts, telling, found):
    assert multiple(np.array(counts), telling) == found


def test_clicks_below_clicks_have_the_odds_ratio_of_mantel_and_haenszel():
    """One 2 x 2 table after the other; by queries, as the docstring has it."""
    pages = drawn(3000, 30, documents=3)
    tables = defaultdict(lambda: np.zeros((2, 2)))
    for query, documents, clicks, _ in pages:
        for place in range(1, len(documents)):
            above = any(clicks[:place])
            tables[query, documents[place], place][int(not above), int(not clicks[place])] += 1
    r, s = defaultdict(float), defaultdict(float)
    for (query, *_), ((a, b), (c, d)) in tables.items():
        if min(a + b, c + d, a + c, b + d) > 0:
            r[query] += a * d / (a + b + c + d)
            s[query] += b * c / (a + b + c + d)
    one, other, size = np.array([*r.values()]), np.array([*s.values()]), len(r)
    ratio = one.sum() / other.sum()
    error = np.sqrt(size / (size - 1) * ((one / one.sum() - other / other.sum()) ** 2).sum())
    law = stats.t(size - 1, np.log(ratio), error)
    found = clicks_above(log_of(pages))
    assert found.value == pytest.approx(ratio)
    assert found.error == pytest.approx(error)
    assert (found.low, found.high) == pytest.approx(np.exp(law.interval(0.95)))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(np.log(ratio)) / error, size - 1))
    few = clicks_above(log_of([page for page in pages if page[0] < 9]))
    assert few.reason == "only 9 queries tell, fewer than 10"
    assert few.value > 0
    assert np.isnan(few.p)
    alone = clicks_above(log_of([page for page in pages if len(page[1]) == 1]))
    assert alone.reason.startswith("no pair was shown at one position")
