"""Boosted regression trees, which carry relevance learnt per vector over to new documents."""

from __future__ import annotations

import lightgbm
import numpy as np


def fit_trees(
    features: np.ndarray,
    target: np.ndarray,
    *,
    trees: int = 500,
    leaves: int = 255,
    threads: int = 1,
):
    """Fit LightGBM's least-squares trees, with the settings of Chen et al. (2024), Appendix C.3.

    Learning rate 0.1; a leaf has 100 rows or more, because each row weighs 1 in the published
    minimum of 100 on a leaf's sum of Hessians (the minimum on its number of rows is lifted).

    Args:
        features: [rows, width] of the displayed documents; recurring vectors count as often as
            they were displayed.
        target: [rows] the relevance learnt of each.
        trees: number of trees; each takes the same time.
        leaves: leaves of a tree at most, 2 or more.
        threads: the result does not depend on it.

    Returns:
        predict([rows, width] features) -> [rows] float64 relevance.
    """
    parameters = {
        "objective": "regression",
        "learning_rate": 0.1,
        "num_leaves": leaves,
        "min_data_in_leaf": 0,
        "min_sum_hessian_in_leaf": 100,
        "num_threads": threads,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
    data = lightgbm.Dataset(features, target, params=parameters)
    model = lightgbm.train(parameters, data, num_boost_round=trees)
    return lambda features: model.predict(features, num_threads=threads)
