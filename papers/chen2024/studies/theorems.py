"""Theorem 1, Proposition 3 and the number of swaps, on lists and random logs.

The logarithm of r(x) o(t) is linear. So the solutions of a log are those of linear equations.
"""

import numpy as np
import pandas as pd
from scipy.special import expit

from papers.chen2024.models.eye_tracking import EXAMINATION, POSITIONS, EyeTracking
from papers.chen2024.studies.propositions import random_log
from twotowers.claims.metrics import correlation, ndcg
from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability.graph import node_intervention
from twotowers.identifiability.linked_lists import Lists, linked_lists
from twotowers.randomness import stream

MOST_COMPONENTS = 6


def run(inputs, *, seed: int, lists: list[dict], logs: int, scale: float) -> pd.DataFrame:
    """Check each statement, on lists of K = 1, 2, ... components and random logs of one to six.

    Relevance is scaled in the second solution, but in the first position's component.
    """
    drawn = []
    for number in range(logs):
        rng = stream("random logs", seed, number)
        components = int(rng.integers(1, MOST_COMPONENTS + 1))
        drawn.append((components, *random_log(components, rng), rng))
    rows = theorem1(drawn) + proposition3(drawn) + swaps(drawn)
    for each in (linked_lists(positions=POSITIONS, **given) for given in lists[1:]):
        values, components = second_solution(each, scale), each.components
        rows += [("second solution", components, *value) for value in values.items()]
    frame = pd.DataFrame(rows, columns=["theorem", "components", "metric", "value"])
    return frame.astype({"components": "Int64", "value": float}).assign(position=None)


def theorem1(drawn) -> list[tuple]:
    """Logs whose free constants are not as many as components, connected or not.

    log c = log r(x) + log o(t) has as many solutions as its matrix has a kernel.
    """
    rows = []
    for kind, several in (("connected", False), ("disconnected", True)):
        ours = [log for log in drawn if (log[0] > 1) == several]
        wrong = sum(free_constants(*log[1:3]) != log[0] for log in ours)
        name = f"theorem 1, {kind}"
        rows += [(name, None, "wrong", wrong), (name, None, "checked", len(ours))]
    return rows


def free_constants(feature: np.ndarray, factor: np.ndarray) -> int:
    """The dimension of the solutions r(x), o(t) > 0 of given clicks."""
    feature = np.unique(feature, return_inverse=True)[1]
    features = feature.max() + 1
    matrix = np.zeros((len(feature), features + factor.max() + 1))
    row = np.arange(len(feature))
    matrix[row, feature] = matrix[row, features + factor] = 1
    return matrix.shape[1] - np.linalg.matrix_rank(matrix)


def proposition3(drawn) -> list[tuple]:
    """Merging along a random tree of the components, and with one pair more.

    Each component has a constant s, o'(t) = o(t) s; pairs ask for equal log o'.
    """
    tree, cycle = [], []
    for components, feature, factor, rng in drawn:
        if components == 1:
            continue
        of = factor_components(feature, factor, factors=factor.max() + 1)
        examination = np.log(rng.uniform(0.05, 1, len(of)))
        pairs = []
        for new in range(1, components):
            known, joined = np.flatnonzero(of < new), np.flatnonzero(of == new)
            pairs.append((rng.choice(known), rng.choice(joined)))
        tree.append(contradiction(pairs, of, examination))
        # Another pair of factors of the same two components closes a cycle.
        known, joined = pairs[-1]
        others = [
            (a, b)
            for a in np.flatnonzero(of == of[known])
            for b in np.flatnonzero(of == of[joined])
            if (a, b) != (known, joined)
        ]
        if others:
            more = others[rng.integers(len(others))]
            cycle.append(contradiction([*pairs, more], of, examination))
    values = {"tree": max(tree), "cycle": min(cycle), "checked": len(tree)}
    return [("proposition 3", None, *value) for value in values.items()]


def contradiction(pairs, component: np.ndarray, examination: np.ndarray) -> float:
    """The largest difference of log o' in a pair, where the constants are the best possible."""
    a, b = np.transpose(pairs)
    matrix = np.zeros((len(a), component.max() + 1))
    row = np.arange(len(a))
    matrix[row, component[a]] += 1
    matrix[row, component[b]] -= 1
    wanted = examination[b] - examination[a]
    constants = np.linalg.lstsq(matrix, wanted)[0]
    return np.abs(matrix @ constants - wanted).max()


def swaps(drawn) -> list[tuple]:
    """Logs where node intervention swaps other than K - 1 times, or does not connect them."""
    other = apart = 0
    for components, feature, factor, rng in drawn:
        factors = factor.max() + 1
        estimates = rng.uniform(0.1, 1, feature.max() + 1), rng.uniform(0.05, 1, factors)
        swap = node_intervention(feature, factor, *estimates)
        other += len(swap.feature) != components - 1
        joined = np.append(feature, swap.feature), np.append(factor, swap.target)
        apart += factor_components(*joined, factors=factors).max() > 0
    values = {"other": other, "apart": apart, "checked": len(drawn)}
    return [("swaps", None, *value) for value in values.items()]


def relevance_of(lists: Lists) -> np.ndarray:
    """[documents] P(attractive) for the users of the settings."""
    return expit(EyeTracking().truth(lists.labels, POSITIONS)["attraction"])


def second_solution(lists: Lists, scale: float) -> dict[str, float]:
    """Relevance and examination of the proof's second solution, and how it ranks."""
    feature, factor = lists.rows
    component = factor_components(feature, factor, factors=POSITIONS)
    constant = np.where(component == component[0], 1, scale)
    of_document = np.zeros(len(lists.labels))
    of_document[feature] = constant[factor]
    truth = relevance_of(lists)
    relevance, examination = truth * of_document, EXAMINATION / constant
    clicks = truth[feature] * EXAMINATION[factor]
    return {
        "difference": np.abs(relevance[feature] * examination[factor] - clicks).max(),
        "mcc": correlation(truth, relevance[None])[0],
        "ndcg@10": ndcg(
            relevance[lists.documents].astype(np.float32),
            lists.labels[lists.documents].astype(float),
            where=np.ones(lists.documents.shape, bool),
        ).mean(),
    }
