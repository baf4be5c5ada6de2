"""Boosted trees: regression of learnt relevance, to predict that of new documents, and a ranker for
few labelled queries, LambdaMART."""

import numpy as np

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings
from twotowers.randomness import stream


def fit_trees(features: np.ndarray, target: np.ndarray, *, trees: int = 500, leaves: int = 255):
    """Fit LightGBM's least-squares trees, with the settings of Chen et al. (2024), Appendix C.3.

    The learning rate is 0.1. The published minimum of a leaf's sum of Hessians is 100. Each row has
    a Hessian of 1, so a leaf has 100 rows or more. There is no other minimum of rows. Features are
    of displays, the target is the learnt relevance. The result is predict([rows, width]) -> [rows]
    float64.
    """
    parameters = {
        "objective": "regression",
        "learning_rate": 0.1,
        "num_leaves": leaves,
        "min_data_in_leaf": 0,
        "min_sum_hessian_in_leaf": 100,
    }
    return _boosted(features, target, parameters, trees=trees)


def fit_lambdamart(
    rankings: Rankings,
    labels: np.ndarray,
    *,
    trees: int = 100,
    leaves: int = 31,
    learning_rate: float = 0.1,
):
    """Fit LightGBM's LambdaMART, with its other defaults (Hager 2026, Section 2.5.2).

    Gains are 2^label - 1, of whole labels from 0 to 30. Pairs are weighted by the difference in
    nDCG@30. The result is predict([rows, width] features) -> [rows] float64 scores.
    """
    if wrong := set(labels[labels != np.round(labels)].tolist()):
        raise InputError(
            f"{min(wrong)} is no grade",
            field="labels",
            expected="whole numbers, such as annotated relevance",
        )
    parameters = {"objective": "lambdarank", "learning_rate": learning_rate, "num_leaves": leaves}
    return _boosted(rankings.features, labels, parameters, trees=trees, lists=rankings.lengths)


def _boosted(features, target, parameters: dict, *, trees: int, lists=None):
    """The prediction of LightGBM's trees; `lists` are lengths of lists to rank."""
    import lightgbm  # here, because other rankers need no trees

    repeatable = {"num_threads": 1, "deterministic": True, "force_row_wise": True}
    parameters = parameters | repeatable | {"verbose": -1}
    data = lightgbm.Dataset(features, target, group=lists, params=parameters)
    model = lightgbm.train(parameters, data, num_boost_round=trees)
    return lambda features: model.predict(features, num_threads=1)


def some_queries(rankings: Rankings, number: int, *, seed: int) -> np.ndarray:
    """[rows] bool: whether the row's query is among `number` drawn ones; all if there are fewer."""
    queries = rankings.queries
    chosen = stream("queries with labels", seed).choice(
        queries, min(number, len(queries)), replace=False
    )
    return np.isin(rankings.query, chosen)
