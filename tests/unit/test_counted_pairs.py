"""Pairs counted in a log are those counted in memory, and give the same curve."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.harvesting import harvest
from twotowers.fitting.pair_counts import PairCounts
from twotowers.logs.counted import Counts


@pytest.fixture
def cells() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = 3_000
    query, document = rng.integers(40, size=rows), rng.integers(8, size=rows)
    frame = pd.DataFrame(
        {
            "query": query,
            "document": np.char.add("d", document.astype(str)),
            "position": rng.integers(1, 5, size=rows),
            "device": rng.choice(["phone", "desk"], size=rows),
            "impressions": rng.integers(0, 4, size=rows),
        }
    )
    chance = 0.5 / frame.position * rng.uniform(size=320)[query * 8 + document]
    frame["clicks"] = rng.binomial(frame.impressions, chance)
    return frame


def read_pairs(cells, *, bias=("position",), clicked=True) -> PairCounts:
    batch = pa.RecordBatch.from_pandas(cells[cells["impressions"] > 0], preserve_index=False)
    return PairCounts.of_counts(Counts.of_batches([batch]), bias, clicked=clicked)


def in_memory(cells, bias) -> PairCounts:
    names = cells[cells.impressions > 0][bias].drop_duplicates().sort_values(bias)
    factor = pd.MultiIndex.from_frame(names).get_indexer(pd.MultiIndex.from_frame(cells[bias]))
    pair = pd.factorize(cells["query"].astype(str) + "/" + cells["document"], sort=True)[0]
    return PairCounts.of_arrays(
        pair,
        factor,
        cells.impressions,
        cells.clicks,
        query=cells["query"],
        names=names.reset_index(drop=True),
    )


@pytest.mark.parametrize("bias", [["position"], ["position", "device"]])
def test_they_give_the_curve_of_arrays(cells, bias):
    counts, expected = read_pairs(cells, bias=bias), in_memory(cells, bias)
    assert counts.names.astype(str).equals(expected.names.astype(str))
    assert counts.shown.tolist() == expected.shown.tolist()
    assert counts.clicked.tolist() == expected.clicked.tolist()
    one, other = fit_conditional(counts), fit_conditional(expected)
    assert one.estimate == pytest.approx(other.estimate)
    assert one.error == pytest.approx(other.error)
    every = read_pairs(cells, bias=bias, clicked=False)
    assert harvest(every).estimate == pytest.approx(harvest(expected).estimate)


def test_pairs_that_were_never_clicked_still_link(cells):
    rows = pd.DataFrame(
        {"query": 1, "document": "a", "position": [1, 2], "impressions": 5, "clicks": 0}
    )
    counts = read_pairs(rows)
    assert len(counts.pair) == 0
    assert counts.component.tolist() == [0, 0]


def test_rows_of_a_cell_are_one_cell(cells):
    distinct = cells.groupby(["query", "document", "position"], as_index=False)[
        ["impressions", "clicks"]
    ].sum()
    split, whole = read_pairs(cells), read_pairs(distinct)
    assert split.repeats == pytest.approx(whole.repeats)
    assert split.repeats == pytest.approx(in_memory(cells, ["position"]).repeats)
    shown = distinct[distinct["position"] == split.names["position"][0]]["impressions"]
    assert split.repeats[0] == pytest.approx((shown**2).sum() / shown.sum())
