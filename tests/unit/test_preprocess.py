"""Published preprocessing, against closed forms and a loop over queries."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twotowers.datasets.preprocess import (
    preprocess,
    preprocess_stratified,
    preprocess_ultra,
    signed_log1p,
)
from twotowers.errors import InputError
from twotowers.files.rankings import Rankings


def ragged(*labels, width=3) -> Rankings:
    """Queries 10, 20, ... with these labels. Features differ between rows."""
    lengths = [len(query) for query in labels]
    rows = sum(lengths)
    return Rankings(
        query=np.repeat(10 * np.arange(1, len(labels) + 1), lengths),
        document=np.concatenate([np.arange(n) for n in lengths] or [[]]).astype(np.int32),
        label=np.array([label for query in labels for label in query], np.float32),
        features=np.arange(rows * width, dtype=np.float32).reshape(rows, width),
    )


def as_lists(rankings) -> list[tuple[int, list[int], list[float]]]:
    bounds = zip(rankings.offsets[:-1], rankings.offsets[1:], strict=True)
    return [
        (
            int(rankings.query[start]),
            rankings.document[start:end].tolist(),
            rankings.label[start:end].tolist(),
        )
        for start, end in bounds
    ]


def test_signed_log1p_is_odd_and_inverts_expm1():
    x = np.array([[0, 1, np.e - 1], [-1, 1.6e8, -73]], np.float32)
    y = signed_log1p(x)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y[0], [0, np.log(2), 1], rtol=1e-6)
    np.testing.assert_array_equal(signed_log1p(-x), -y)
    np.testing.assert_allclose(np.expm1(np.abs(y)), np.abs(x), rtol=1e-5)


LABELS = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=6
).filter(lambda queries: any(map(any, queries)))


@given(LABELS, st.integers(1, 9))
def test_preprocess_equals_a_loop_over_queries(labels, top):
    expected = []
    for number, query in enumerate(labels, start=1):
        documents = sorted(range(len(query)), key=lambda i, query=query: -query[i])[:top]
        if any(query):
            expected.append((10 * number, documents, [2.0 * query[i] for i in documents]))
    raw = ragged(*labels)
    result = preprocess(raw, top=top, label_max=2)
    assert as_lists(result) == expected
    start = dict(zip(raw.queries, raw.offsets, strict=False))
    rows = [start[q] + d for q, d in zip(result.query, result.document, strict=True)]
    np.testing.assert_array_equal(result.features, signed_log1p(raw.features[rows]))


def test_nothing_remains():
    with pytest.raises(InputError, match="none of the 2 queries has a relevant document"):
        preprocess(ragged([0, 0], [0]))


def test_kept_features_are_copied_once():
    rows, width = 40_000, 136
    raw = Rankings(
        query=np.arange(rows) // 20,
        document=(np.arange(rows) % 20).astype(np.int32),
        label=np.ones(rows, np.float32),
        features=np.ones((rows, width), np.float32),
    )
    tracemalloc.start()
    preprocess(raw, top=25)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * raw.features.nbytes


@given(LABELS, LABELS, st.booleans())
def test_preprocess_ultra_equals_loops(train, test, logarithm):
    splits = {"train": ragged(*train, width=2), "test": ragged(*test, width=2)}
    splits["test"].features[:] *= -7
    kept = {}
    for name, labels in (("train", train), ("test", test)):
        kept[name] = [
            (10 * number, list(range(len(query))), list(map(float, query)))
            for number, query in enumerate(labels, start=1)
            if len(query) > 1 and any(query)
        ]
    if not all(kept.values()):
        with pytest.raises(InputError, match=r"no query has two documents|none of the"):
            preprocess_ultra(splits, logarithm=logarithm)
        return
    result = preprocess_ultra(splits, logarithm=logarithm)
    assert {name: as_lists(split) for name, split in result.items()} == kept
    values = [
        split.features[np.isin(split.query, result[name].query)] for name, split in splits.items()
    ]
    both = np.concatenate(values).astype(float)
    scaled = both - both.min(0)
    if logarithm:
        scaled = np.log10(scaled + 1)
    expected = 2 * scaled / scaled.max(0) - 1
    found = np.concatenate([result["train"].features, result["test"].features])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_stratified_rounds_off_goes_to_the_largest_remainders():
    # 7 of 10: 3.5, 2.1 and 1.4; rounded down 3, 2 and 1.
    kept = preprocess_stratified(ragged([0] * 5 + [1] * 3 + [2] * 2), most=7, log1p=False)
    assert np.bincount(kept.label.astype(int)).tolist() == [4, 2, 1]


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=30), min_size=1, max_size=8),
    st.integers(1, 12),
    st.integers(0, 5),
)
def test_stratified_lists_are_as_long_as_they_may_be_and_keep_the_shares_of_labels(
    labels, most, seed
):
    raw = ragged(*labels)
    kept = preprocess_stratified(raw, most=most, log1p=False, seed=seed)
    assert kept.lengths.tolist() == [min(len(query), most) for query in labels]
    # Rows are as they were, in their order.
    rows = raw.offsets[:-1][kept.query // 10 - 1] + kept.document
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(kept.features, raw.features[rows])
    np.testing.assert_array_equal(kept.label, raw.label[rows])
    for query, left in zip(labels, np.split(kept.label, kept.offsets[1:-1]), strict=True):
        counts = np.bincount(left.astype(int), minlength=5)
        exact = np.bincount(query, minlength=5) * min(most / len(query), 1)
        assert (np.abs(counts - exact) < 1).all()


def test_which_documents_stratified_keeps_is_drawn():
    draws = [preprocess_stratified(ragged([0] * 50), most=5, log1p=True, seed=s) for s in range(40)]
    assert len({document for draw in draws for document in draw.document}) > 45
    again = preprocess_stratified(ragged([0] * 50), most=5, log1p=True, seed=3)
    np.testing.assert_array_equal(draws[3].document, again.document)


def test_stratified_cuts_what_is_too_large_for_a_logarithm():
    raw = ragged([0, 1])
    raw.features[:] = [[3e38, -3e38, 0], [1, -1, 2]]
    kept = preprocess_stratified(raw, most=5, log1p=True)
    np.testing.assert_allclose(kept.features[0], [np.log1p(1e9), -np.log1p(1e9), 0], rtol=1e-6)
    np.testing.assert_allclose(kept.features[1], np.log1p([1, 1, 2]) * [1, -1, 1], rtol=1e-6)
