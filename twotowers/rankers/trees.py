"""Boosted trees: regression of learnt relevance, to predict that of new documents, and a ranker for
few labelled queries, LambdaMART."""

from __future__ import annotations

import numpy as np

from twotowers.errors import InputError, check_range
from twotowers.files.rankings import Rankings
from twotowers.randomness import stream


def fit_trees(
    features: np.ndarray,
    target: np.ndarray,
    *,
    trees: int = 500,
    leaves: int = 255,
    threads: int = 1,
):
    """Fit LightGBM's least-squares trees, with the settings of Chen et al. (2024), Appendix C.3.

    The learning rate is 0.1. The published minimum of a leaf's sum of Hessians is 100. Each row has
    a Hessian of 1, so a leaf has 100 rows or more. There is no other minimum of rows.

    Args:
        features: [rows, width] of the displayed documents. A vector has a row per display.
        target: [rows] the learnt relevance.
        trees: number of trees.
        leaves: the most leaves of a tree, 2 or more.
        threads: number of threads. The result does not depend on it.

    Returns:
        predict([rows, width] features) -> [rows] float64 relevance.
    """
    parameters = {
        "objective": "regression",
        "learning_rate": 0.1,
        "num_leaves": leaves,
        "min_data_in_leaf": 0,
        "min_sum_hessian_in_leaf": 100,
    }
    return _boosted(features, target, parameters, trees=trees, threads=threads)


def fit_lambdamart(
    rankings: Rankings,
    labels: np.ndarray,
    *,
    trees: int = 100,
    leaves: int = 31,
    learning_rate: float = 0.1,
    threads: int = 1,
):
    """Fit LightGBM's LambdaMART, with its other defaults (Hager 2026, Section 2.5.2).

    Gains are 2^label - 1. Pairs are weighted by the difference in nDCG@30.

    Args:
        rankings: the labelled queries.
        labels: [rows] whole numbers, 0 to 30.
        trees: number of trees.
        leaves: the most leaves of a tree, 2 or more.
        learning_rate: of each tree.
        threads: number of threads. The result does not depend on it.

    Returns:
        predict([rows, width] features) -> [rows] float64 scores; higher ranks first.
    """
    if wrong := set(labels[labels != np.round(labels)].tolist()):
        raise InputError(
            f"{min(wrong)} is no grade",
            field="labels",
            expected="whole numbers, such as annotated relevance",
        )
    parameters = {"objective": "lambdarank", "learning_rate": learning_rate, "num_leaves": leaves}
    data = rankings.features, labels
    return _boosted(*data, parameters, trees=trees, threads=threads, lists=rankings.lengths)


def _boosted(features, target, parameters: dict, *, trees: int, threads: int, lists=None):
    """The prediction of LightGBM's trees; `lists` are lengths of lists to rank."""
    import lightgbm  # here, because other rankers need no trees

    repeatable = {"num_threads": threads, "deterministic": True, "force_row_wise": True}
    parameters = parameters | repeatable | {"verbose": -1}
    data = lightgbm.Dataset(features, target, group=lists, params=parameters)
    model = lightgbm.train(parameters, data, num_boost_round=trees)
    return lambda features: model.predict(features, num_threads=threads)


def some_queries(rankings: Rankings, number: int, *, seed: int) -> np.ndarray:
    """[rows] bool: whether the row's query is among some queries, drawn without replacement.

    Args:
        rankings: the queries to draw from. If there are at most `number`, all are chosen.
        number: queries to draw, 1 or more.
        seed: of the draw.
    """
    check_range(number, field="queries", low=1, high=10**9, whole=True)
    queries = rankings.queries
    chosen = stream("queries with labels", seed).choice(
        queries, min(number, len(queries)), replace=False
    )
    return np.isin(rankings.query, chosen)
