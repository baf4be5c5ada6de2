"""Click rates by tile: every cell is there once, whatever tile it lies in."""

import numpy as np
import pytest

from twotowers.fitting.tiles import DEPTH, ClickRates, lay_out

FEATURES, LANES = 60, 2


def drawn(factors: int, rows: int, seed: int) -> ClickRates:
    """Rows at random. Lanes merge factors differently; feature vector 7 has no row."""
    rng = np.random.default_rng(seed)
    feature = rng.integers(FEATURES, size=rows)
    feature[feature == 7] = 8
    factor = np.stack([rng.integers(factors, size=rows)] * LANES)
    factor[1][factor[1] == factors - 1] = 0
    return ClickRates(
        feature=feature,
        factor=factor,
        rate=rng.random((LANES, rows)),
        weight=rng.integers(3, size=(LANES, rows)).astype(float),
        features=FEATURES,
        factors=factors,
    )


@pytest.mark.parametrize(("factors", "rows"), [(2, 80), (3, 400), (40, 300)])
def test_sums_by_factor_and_by_feature_vector_are_those_of_the_rows(factors, rows):
    rates = drawn(factors, rows, seed=factors)
    layout = lay_out(rates)
    found = layout.collect([[cells.clicks for cells in block.layers] for block in layout.blocks])
    by_feature = layout.by_feature(
        [[cells.clicks.sum(1) for cells in block.layers] for block in layout.blocks], FEATURES
    )
    for lane in range(LANES):
        clicks = rates.rate[lane] * rates.weight[lane]
        wanted = np.bincount(rates.factor[lane], clicks, factors)
        np.testing.assert_allclose(found[lane], wanted, rtol=1e-5)
        wanted = np.bincount(rates.feature, clicks, FEATURES)
        np.testing.assert_allclose(by_feature[lane], wanted, rtol=1e-5)
    depths = {len(block.layers) for block in layout.blocks}
    assert depths == ({1, DEPTH} if factors < 4 else {1})
