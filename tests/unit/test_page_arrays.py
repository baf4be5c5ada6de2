"""Pages as arrays: all of a log, and the distinct ones with their number."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from twotowers.logs import page_arrays as arrays
from twotowers.logs.log import Log
from twotowers.logs.page_arrays import Pages, distinct_arrays, page_hashes

LONGEST = 4


def drawn(shared: bool, gaps: bool, times: bool) -> tuple[list[dict], Log]:
    """Pages, many of them alike; whether queries share documents; with gaps; with counts."""
    rng, pages = np.random.default_rng(0), []
    for number in rng.integers(40, size=400):
        own = np.random.default_rng(number)
        size, query = own.integers(1, 4), int(own.integers(3))
        page = {
            "query": query,
            "documents": (own.permutation(5)[:size] + (0 if shared else 10 * query)).tolist(),
            "clicks": (own.random(size) < 0.5).tolist(),
        }
        page |= {"page_count": int(rng.integers(1, 4))} if times else {}
        place = np.sort(own.permutation(LONGEST)[:size]) + 1
        pages.append(page | ({"position": place.tolist()} if gaps else {}))
    return pages, Log.of_batches([pa.RecordBatch.from_pylist(pages)])


def pages_of(found: Pages) -> Counter:
    """How often each page is there, by the ids of its documents."""
    ids = found.ids.to_pylist()
    counted = Counter()
    for pair, clicks, where, number in zip(
        found.pair, found.clicks, found.where, found.number, strict=True
    ):
        shown = tuple(
            (k + 1, *ids[pair[k]].values(), bool(clicks[k])) for k in np.flatnonzero(where)
        )
        assert shown not in counted
        counted[shown] = number
    return counted


@pytest.mark.parametrize("hashed", ["well", "alike"])
@pytest.mark.parametrize("times", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_distinct_pages_are_those_of_a_loop(shared, gaps, times, hashed, monkeypatch):
    """Different pages are not mixed up even if their first hashes are the same."""
    if hashed == "alike":
        hashes = arrays.page_hashes
        monkeypatch.setattr(
            arrays, "page_hashes", lambda block: [hashes(block)[0] % 7, hashes(block)[1]]
        )
    pages, log = drawn(shared, gaps, times)
    expected = Counter()
    for page in pages:
        place = page.get("position", range(1, 9))
        columns = zip(place, page["documents"], page["clicks"], strict=False)
        key = tuple((k, page["query"], document, click) for k, document, click in columns)
        expected[key] += page.get("page_count", 1)
    found = distinct_arrays(log, positions=LONGEST)
    assert pages_of(found) == expected
    assert found.pairs == len({shown[1:3] for key in expected for shown in key})
    assert (np.diff(found.pair[:, 0]) >= 0).all()
    assert not found.clicks[~found.where].any()


@pytest.mark.parametrize("gaps", [False, True])
def test_pages_have_equal_hashes_where_they_are_alike(gaps):
    pages, log = drawn(True, gaps, False)
    for clicks in (True, False):
        names = ("query", "documents", *["clicks"] * clicks, *["position"] * gaps)
        keys = [str([page[name] for name in names]) for page in pages]
        for number in page_hashes(log.blocks[0], clicks=clicks):
            assert len({*zip(keys, number.tolist(), strict=True)}) == len({*keys})
            assert len({*number.tolist()}) == len({*keys})
