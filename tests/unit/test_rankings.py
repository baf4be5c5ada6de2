"""The ragged container: offsets, padding, and its parquet form."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, mask, pad, read_rankings, write_rankings


def lists(*lengths) -> Rankings:
    rows = sum(lengths)
    return Rankings(
        query=np.repeat(100 - np.arange(len(lengths)), lengths),
        document=np.concatenate([np.arange(n, dtype=np.int32) for n in lengths]),
        label=np.arange(rows, dtype=np.float32),
        features=np.arange(3 * rows, dtype=np.float32).reshape(rows, 3),
    )


def test_offsets_queries_lengths():
    rankings = lists(2, 1, 3)
    assert rankings.offsets.tolist() == [0, 2, 3, 6]
    assert rankings.queries.tolist() == [100, 99, 98]
    assert rankings.lengths.tolist() == [2, 1, 3]
    assert rankings.take(np.array([3, 4])).lengths.tolist() == [2]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 2))
def test_pad_and_mask_invert(lengths, spare):
    length = max(lengths) + spare
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.arange(1, offsets[-1] + 1)
    padded, where = pad(values, offsets, length), mask(np.array(lengths), length)
    assert padded.shape == where.shape == (len(lengths), length)
    np.testing.assert_array_equal(padded[where], values)
    assert not padded[~where].any()
    assert where.sum(1).tolist() == lengths


def test_round_trip(tmp_path):
    rankings = lists(2, 1, 3)
    write_rankings(rankings, tmp_path / "a.parquet")
    back = read_rankings(tmp_path / "a.parquet")
    for name in ("query", "document", "label", "features"):
        np.testing.assert_array_equal(getattr(back, name), getattr(rankings, name))
    assert back.features.dtype == np.float32


def test_missing_column_and_wrong_type_name_the_field(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"query": [1], "document": [0], "label": [0.0]}), path)
    with pytest.raises(InputError, match=r"a\.parquet: features: the column is missing"):
        read_rankings(path)
    pq.write_table(pa.table({"query": [1], "document": [0], "label": [0.0], "features": [1]}), path)
    with pytest.raises(InputError, match=r"document: has type int64 \(expected int32\)"):
        read_rankings(path)
