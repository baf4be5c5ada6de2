"""Drawings of a log of one's own: ten click models."""

import numpy as np
import pandas as pd
import pytest

from papers.own_log.items import models
from twotowers.models.names import MODELS


def test_differences_are_taken_within_a_draw():
    """Draws differ by more than models do; of one draw, models differ alike."""
    rows = [
        (f"ten-{name}", metric, 1.2 + place / 100 + seed, seed)
        for seed in range(20)
        for place, name in enumerate(MODELS)
        for metric in models.METRICS
    ]
    found = pd.DataFrame(rows, columns=["setting", "metric", "value", "seed"])
    table = models.table(found, None)
    less = table[table["metric"] == "mean_perplexity_less_base"].set_index("setting")
    assert models.BASE not in less.index
    ahead = list(MODELS).index("ubm") / 100
    np.testing.assert_allclose(less.loc["ten-gctr", ["value", "low", "high"]].astype(float), -ahead)
    plain = table[table["metric"] == "mean_perplexity"].set_index("setting")
    assert plain.loc["ten-gctr", "high"] - plain.loc["ten-gctr", "low"] == pytest.approx(18.05)
    figure = models.draw(table)
    assert len(figure.axes) == 2
