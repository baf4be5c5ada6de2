"""The cells of a real log: divided exactly, drawn again without bias, or refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twotowers.errors import InputError
from twotowers.logs.observed_pages import divided, observed_splits

SHARES = {"train": 0.5, "validation": 0.3, "test": 0.2}


def write(path, **changes):
    columns = {
        "query": ["b", "b", "a", "b"],
        "document": [7, 5, 7, 7],
        "position": pa.array([1, 2, 1, 3], pa.int32()),
        "impressions": [100, 50, 10, 4],
        "clicks": [40, 0, 10, 1],
    }
    pq.write_table(pa.table(columns | changes), path)
    return path


def test_parts_add_up_to_the_whole_log(tmp_path):
    where, counts = observed_splits(write(tmp_path / "log.parquet"), SHARES, positions=3, seed=1)
    # Queries and documents in the order of their ids.
    assert where.tolist() == [[True, False, False], [True, True, False]]
    shown, clicked = (
        sum(np.asarray(getattr(part, name), int) for part in counts.values())
        for name in ("impressions", "clicks")
    )
    expected = np.zeros((1, 2, 3, 3), int)
    expected[0, 1, 1, 0], expected[0, 1, 0, 1], expected[0, 1, 1, 2] = 100, 50, 4
    expected[0, 0, 0, 0] = 10
    np.testing.assert_array_equal(shown, expected)
    assert clicked.sum() == 51
    for part in counts.values():
        assert (part.clicks <= part.impressions).all()


def test_cells_that_differ_in_bias_features_only_are_added_up(tmp_path):
    """`reading: {bias: [device]}` tells cells apart that are one to fits by position."""
    by_device = write(
        tmp_path / "a.parquet", document=[7] * 4, position=pa.array([1] * 4, pa.int32())
    )
    where, counts = observed_splits(by_device, SHARES, positions=3, seed=1)
    assert where[:, 0].tolist() == [True, True]
    assert sum(int(part.impressions.sum()) for part in counts.values()) == 164
    assert sum(int(part.clicks.sum()) for part in counts.values()) == 51
    assert all((part.clicks <= part.impressions).all() for part in counts.values())


def test_lists_may_be_longer_than_the_page(tmp_path):
    path = write(tmp_path / "log.parquet", query=["a"] * 4, document=[7, 5, 8, 9])
    where, counts = observed_splits(path, SHARES, positions=3, seed=1)
    assert where.shape == (1, 4)
    assert {part.impressions.shape for part in counts.values()} == {(1, 1, 4, 3)}
    assert sum(int(part.impressions.sum()) for part in counts.values()) == 164


def test_division_in_distribution():
    """Impressions are multinomial. Clicks keep their rate."""
    shown, clicked = np.full(2000, 50), np.full(2000, 20)
    parts = divided(shown, clicked, SHARES, rng=np.random.default_rng(0))
    for split, share in SHARES.items():
        size, clicks = parts[split]
        assert size.mean() == pytest.approx(50 * share, rel=0.02)
        assert size.var() == pytest.approx(50 * share * (1 - share), rel=0.15)
        assert clicks.mean() == pytest.approx(20 * share, rel=0.03)
    np.testing.assert_array_equal(sum(clicks for _, clicks in parts.values()), clicked)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position": pa.array([1, 2, 1, 4], pa.int32())}, "positions reach from 1 to 4"),
        ({"position": pa.array([0, 2, 1, 3], pa.int32())}, "positions reach from 0 to 3"),
    ],
)
def test_what_cannot_be_a_log(tmp_path, changes, message):
    path = write(tmp_path / "log.parquet", **changes)
    with pytest.raises(InputError, match=message) as caught:
        observed_splits(path, SHARES, positions=3, seed=1)
    assert str(path) in str(caught.value)


def test_an_empty_log(tmp_path):
    path = write(tmp_path / "log.parquet")
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    with pytest.raises(InputError, match="the log is empty"):
        observed_splits(path, SHARES, positions=3, seed=1)
