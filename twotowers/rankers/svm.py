"""The initial ranker of semi-synthetic click logs: a linear ranking SVM (Joachims, KDD 2006).

Chen et al. (2024, Appendix C.1) train it on 1 % of the training queries with their labels,
sort all documents by it, and display the first ten.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings
from twotowers.randomness import stream

# svm_rank_learn's option -c in the published scripts.
COST = 200.0


def sample_queries(rankings: Rankings, share: float, *, seed: int) -> Rankings:
    """A random share of the queries, rounded down but at least one, in their order.

    Args:
        rankings: at least one query.
        share: in [0, 1].
        seed: of the draw.
    """
    queries = rankings.queries
    number = max(int(share * len(queries)), 1)
    chosen = stream("queries with labels", seed).choice(queries, number, replace=False)
    return rankings.take(np.isin(rankings.query, chosen))


def train_rank_svm(rankings: Rankings, *, cost: float = COST) -> np.ndarray:
    """Weights of a linear ranking SVM.

    It minimises |w|^2 / 2 + (cost / queries) * sum over pairs of max(0, 1 - w (x_i - x_j))^2. A
    pair is two documents of a query, and i has the higher label. `cost` is the published option
    -c, which that program also divides by the queries and multiplies by the sum over pairs. That
    program does not square the hinge. scikit-learn has no solver that converges on a plain hinge
    with labels this noisy. The squared hinge has its optimum after a few Newton steps.

    Args:
        rankings: the training queries. Memory grows with their pairs.
        cost: the cost of a wrong pair, for all queries together.

    Returns:
        [width] float64 weights. A document's score is features @ weights; higher ranks first.
    """
    # The import is slow, and the other rankers do not need it.
    from sklearn.svm import LinearSVC

    better, worse = _pairs(rankings)
    if not len(better):
        raise InputError(
            "no query has two documents of different labels",
            field="label",
            expected="labels that say which document is better",
        )
    # The solver separates two classes. A pair and its mirror image have the same loss, so each
    # pair is entered both ways at half the cost.
    difference = (rankings.features[better] - rankings.features[worse]).astype(float)
    side = np.repeat([1, -1], len(difference))
    svm = LinearSVC(C=cost / len(rankings.queries) / 2, fit_intercept=False, dual=False)
    return svm.fit(np.concatenate([difference, -difference]), side).coef_[0]


def _pairs(rankings: Rankings) -> tuple[np.ndarray, np.ndarray]:
    """[pairs] rows of the better and [pairs] of the worse document, for all pairs of a query."""
    offsets = rankings.offsets
    better, worse = [], []
    for start, stop in pairwise(offsets):
        label = rankings.label[start:stop]
        above, below = np.nonzero(label[:, None] > label)
        better.append(start + above)
        worse.append(start + below)
    return np.concatenate(better), np.concatenate(worse)
