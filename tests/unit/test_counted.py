"""Statistics counted from a log, against those of the pages in memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.unit.test_fit_pages import HIDDEN, LENGTH, SEEN
from twotowers.fitting.em import fit_counts, fit_em
from twotowers.fitting.information import intervals
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.logs import counted
from twotowers.logs.log import Log
from twotowers.logs.sessions import write_sessions
from twotowers.models.protocol import PER_DOCUMENT

PRIOR = Prior(1, 9)
CELLS = {name: HIDDEN[name] for name in ("pbm", "ubm")}


@pytest.fixture(params=["numbers", "text"])
def pages(request):
    """Pages of 1 to LENGTH of 9 documents, of which queries share some, with ids of a kind."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(400):
        query, length = int(rng.integers(3)), rng.integers(1, LENGTH + 1)
        documents = (rng.permutation(6)[:length] + 2 * query).tolist()
        rows.append((query, documents, rng.random(length) < 0.4))
    if request.param == "text":
        rows = [(f"q{q}", [f"d{each}" for each in d], clicks) for q, d, clicks in rows]
    return rows


@pytest.fixture
def path(pages, tmp_path):
    query, documents, clicks = zip(*pages, strict=True)
    page = {"split": ["log"] * len(query), "query": query, "documents": documents, "clicks": clicks}
    write_sessions(tmp_path / "log.parquet", [pa.table(page)])
    return tmp_path / "log.parquet"


@pytest.fixture
def in_pieces(monkeypatch):
    """Few pages are in a block."""
    monkeypatch.setattr(counted, "SIZE", 7)


def in_memory(pages):
    """The same pages, with pairs numbered here; and these numbers."""
    number = {}
    pair, clicks, where = (np.zeros((len(pages), LENGTH), kind) for kind in (int, bool, bool))
    for row, (query, documents, clicked) in enumerate(pages):
        own = [number.setdefault((query, document), len(number)) for document in documents]
        pair[row, : len(own)], clicks[row, : len(own)], where[row, : len(own)] = own, clicked, True
    return distinct_pages(pair, clicks, where, pairs=len(number)), number


def orders(pairs, number, model):
    """Part -> the place of each probability among those of the pages in memory."""
    ids = zip(*(pairs[column].to_pylist() for column in ("query", "document")), strict=True)
    order = np.array([number[each] for each in ids], int)
    return {
        part: order if kind == PER_DOCUMENT else slice(None) for part, kind in model.parts.items()
    }


@pytest.mark.parametrize("name", SEEN)
def test_totals_are_those_of_the_pages_in_memory(name, pages, path, in_pieces):
    model = SEEN[name]
    own, number = in_memory(pages)
    statistics = Statistics.of_pages(model, own)
    totals, pairs = Statistics.of_log(model, Log.read(path), LENGTH)
    assert pairs.schema.types == [pa.array([each]).type for each in next(iter(number))]
    for prior in (Prior(), PRIOR):
        expected, found = (fit_counts(each, prior=prior) for each in (statistics, totals))
        errors = [
            intervals(given, fit.parameters, prior=prior)
            for given, fit in ((statistics, expected), (totals, found))
        ]
        for part, order in orders(pairs, number, model).items():
            assert found.parameters[part].tobytes() == expected.parameters[part][order].tobytes()
            assert found.trials[part].tobytes() == expected.trials[part][order].tobytes()
            before, after = (each[part] for each in errors)
            for field, value in vars(after).items():
                np.testing.assert_allclose(value, getattr(before, field)[order], rtol=1e-5)


@pytest.mark.parametrize("name", CELLS)
def test_counts_of_cells_are_those_of_the_pages_in_memory(name, pages, path, in_pieces):
    model = CELLS[name]
    own, number = in_memory(pages)
    expected = Statistics.of_pages(model, own)
    found, pairs = Statistics.of_log(model, Log.read(path), LENGTH)
    order = orders(pairs, number, model)

    def rows(statistics, attraction):
        columns = attraction, statistics.index["examination"][:, 0], statistics.clicks[:, 0]
        return pd.Series(statistics.number, pd.MultiIndex.from_arrays(columns)).sort_index()

    ours = rows(found, order["attraction"][found.index["attraction"][:, 0]])
    assert ours.equals(rows(expected, expected.index["attraction"][:, 0]))
    fits = [fit_em(each, prior=PRIOR, tolerance=1e-12) for each in (expected, found)]
    for part, own in order.items():
        before, after = (fit.parameters[part] for fit in fits)
        np.testing.assert_allclose(after, before[own], atol=1e-6)
