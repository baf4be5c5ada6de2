"""Clicks drawn from a fit have the probabilities of its model."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import twotowers as tt

PAGES = 20_000
PATTERNS = list(product([0, 1], repeat=3))


@pytest.fixture(scope="module")
def log() -> pa.Table:
    rng = np.random.default_rng(0)
    documents = rng.permuted(np.tile(np.arange(3), (4000, 1)), axis=1)
    chance = np.array([0.7, 0.4, 0.2])[documents] * [1, 0.6, 0.3]
    clicks = (rng.random(chance.shape) < chance).astype(int)
    return pa.table({"documents": documents.astype(str).tolist(), "clicks": clicks.tolist()})


@pytest.mark.parametrize("name", ["gctr", "dctr", "pbm", "cm", "ubm", "dcm", "ccm", "dbn", "sdbn"])
def test_patterns_of_clicks_are_as_likely_as_the_model_says(log, name):
    fit = tt.fit(log, name)
    page = {"documents": [["0", "1", "2"]], "clicks": [[0, 0, 0]]}
    many = pa.table({column: value * PAGES for column, value in page.items()})
    drawn = fit.sample(many, seed=3).to_pandas()["click"].to_numpy().reshape(-1, 3)
    every = {"documents": page["documents"] * 8, "clicks": list(map(list, PATTERNS))}
    predicted = fit.predict(pa.table(every)).to_pandas()
    each = np.where(predicted["click"] == 1, predicted["given_above"], 1 - predicted["given_above"])
    chance = each.reshape(8, 3).prod(axis=1)
    seen = np.array([(drawn == pattern).all(axis=1).sum() for pattern in PATTERNS])
    possible = chance > 1e-6
    assert seen[~possible].sum() == 0
    expected = PAGES * chance[possible] / chance[possible].sum()
    assert chisquare(seen[possible], expected).pvalue > 1e-4


def test_a_row_of_several_pages_is_drawn_page_by_page(log):
    fit = tt.fit(log, "dctr")
    counted = pa.table({"documents": [["0", "1"]], "clicks": [[1, 0]], "page_count": [500]})
    drawn = fit.sample(counted, seed=1).to_pandas()
    assert drawn["page"].max() == 500
    assert 0 < drawn["click"].mean() < 1
    assert drawn.equals(fit.sample(counted, seed=1).to_pandas())
    assert tt.fit(pa.Table.from_pandas(drawn), "dctr").pairs.num_rows == 2
