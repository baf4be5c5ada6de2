"""Click counts on disk: round trips, readable by others, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from twotowers.logs import counts as layouts
from twotowers.logs.cells import LaneLog, Pairs, cells_schema, read_logs, write_logs
from twotowers.logs.counts import Cells, of_cells

LENGTH = 5


def make_pairs(lengths, rng) -> Pairs:
    """Queries in no order, documents that are not 0..n-1 (lists were truncated)."""
    ids = rng.permutation(10**6)[: len(lengths)]
    documents = [rng.permutation(40)[:n].astype(np.int32) for n in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Pairs(np.repeat(ids, lengths), np.concatenate(documents), offsets)


def make_counts(pairs, rng, highest=5, density=0.5) -> Cells:
    lengths = pairs.lengths[:, None]
    there = (np.arange(LENGTH) < lengths)[:, :, None] & (np.arange(LENGTH) < lengths)[:, None]
    shown = rng.integers(0, highest, there.shape) * (rng.random(there.shape) < density) * there
    shown[0, 0, 0] = highest
    return listed(shown, rng.binomial(shown, 0.5))


def listed(shown, clicked) -> Cells:
    place = np.nonzero(shown)
    return Cells(*place, shown[place], clicked[place])


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, LENGTH), min_size=1, max_size=5),
    st.lists(st.sampled_from([-1, -0.333, 0, 0.666, 1]), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from([0, 0.333, 1]), min_size=1, max_size=3, unique=True),
    st.sampled_from([1, 255, 256, 70_000, 2**33]),
    st.integers(0, 2**32 - 1),
)
def test_round_trip(tmp_path_factory, lengths, strengths, temperatures, highest, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pairs = {"train": make_pairs(lengths, rng), "test": make_pairs(lengths[::-1], rng)}
    lanes = [
        {"strength": float(s), "temperature": float(t), "user": "one"}
        for s in strengths
        for t in temperatures
    ]
    counts = {
        (split, number): make_counts(pairs[split], rng, highest)
        for split in pairs
        for number in range(len(lanes))
    }
    logs = (LaneLog(split, lanes[number], each) for (split, number), each in counts.items())
    write_logs(path, logs, pairs)
    order = rng.permutation(len(lanes))  # any order may be asked for
    for split in pairs:
        back = read_logs(
            path,
            [lanes[number] for number in order],
            split=split,
            pairs=pairs[split],
            length=LENGTH,
        )
        assert back.impressions.dtype == back.clicks.dtype == np.min_scalar_type(highest)
        for number, lane in enumerate(order):
            expected = counts[split, lane]
            found = listed(back.impressions[number], back.clicks[number])
            for ours, theirs in zip(vars(found).values(), vars(expected).values(), strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_cells_stand_where_the_lists_say(tmp_path):
    lane, path = {"strength": 1.0, "temperature": 0.0}, tmp_path / "log.parquet"
    rows = [
        {"query": 3, "document": 0, "position": 1, "impressions": 9, "clicks": 1},
        {"query": 7, "document": 0, "position": 2, "impressions": 5, "clicks": 2},
        {"query": 7, "document": 4, "position": 1, "impressions": 5, "clicks": 0},
    ]
    rows = [{"split": "train", **lane, **row} for row in rows]
    pq.write_table(pa.Table.from_pylist(rows, schema=cells_schema(lane)), path)
    pairs = Pairs(np.array([7, 7, 3]), np.array([4, 0, 0], np.int32), np.array([0, 2, 3]))
    counts = read_logs(path, [lane], split="train", pairs=pairs, length=2)
    assert counts.impressions.tolist() == [[[[5, 0], [0, 5]], [[9, 0], [0, 0]]]]
    assert counts.clicks.tolist() == [[[[0, 0], [0, 2]], [[1, 0], [0, 0]]]]


def test_listed_counts_are_the_dense_ones(monkeypatch):
    """Cells may come in any order, and a query may have none."""
    rng, logs = np.random.default_rng(0), []
    for highest in (3, 300):
        shown = rng.integers(0, highest, (4, LENGTH, LENGTH)) * (
            rng.random((4, LENGTH, LENGTH)) < 0.3
        )
        shown[2] = 0
        columns = vars(listed(shown, rng.binomial(shown, 0.5))).values()
        order = rng.permutation(np.count_nonzero(shown))
        logs.append(Cells(*(column[order] for column in columns)))
    dense = of_cells(logs, 4, LENGTH)
    monkeypatch.setattr(layouts, "LONGEST_DENSE", LENGTH - 1)
    found = of_cells(logs, 4, LENGTH)
    assert (dense.listed, found.listed) == (False, True)
    for name in ("impressions", "clicks"):
        table = np.zeros((2, 4, LENGTH, LENGTH), int)
        at = (*np.indices(found.position.shape)[:2], found.document, found.position)
        np.add.at(table, at, getattr(found, name))
        np.testing.assert_array_equal(table, getattr(dense, name))
        values = found.total(getattr(found, name)), dense.total(getattr(dense, name))
        np.testing.assert_array_equal(*values)
    np.testing.assert_array_equal(found.sessions, dense.sessions)
    places = rng.random(LENGTH)
    one, other = (
        each.total(each.impressions * each.of_positions(places)) for each in (found, dense)
    )
    np.testing.assert_allclose(one, other)
    relevance = rng.random((2, 4, LENGTH))
    one, other = (
        each.total(each.impressions * each.of_documents(relevance)) for each in (found, dense)
    )
    np.testing.assert_allclose(one, other)
