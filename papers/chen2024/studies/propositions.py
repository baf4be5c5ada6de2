"""Propositions 1, 2 and 4 checked by simulation (Section 4, Appendix A)."""

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from twotowers.fitting.pair_counts import factor_components
from twotowers.randomness import stream

TOLERANCE = 1e-9
COMPONENTS = {"proposition 2": 2, "proposition 4": 6}


def run(
    inputs, *, seed: int, clicks: list[int], cases: list[dict], draws: int, graphs: int
) -> pd.DataFrame:
    """The variance of Proposition 1, and the error bounds of Propositions 2 and 4.

    `clicks` are numbers N of Proposition 1. Cases have true `relevance`, examinations `first` and
    `second`, and the `estimate` of relevance that is conditioned on; each has `draws` simulations,
    each bound `graphs` random data sets.
    """
    rows = []
    for number in clicks:
        for case, truth in enumerate(cases, start=1):
            rng = stream("proposition 1", seed, number, case)
            values = proposition1(number, draws, rng, **truth)
            rows += [("proposition 1", number, case, *value) for value in values.items()]
    for proposition, components in COMPONENTS.items():
        rng = stream(proposition, seed)
        used = np.array([share_of_bound(components, rng) for _ in range(graphs)])
        values = {
            "checked": len(used),
            "violated": (used > 1 + TOLERANCE).sum(),
            "tightest": used.max(),
        }
        rows += [(proposition, None, None, *value) for value in values.items()]
    frame = pd.DataFrame(rows, columns=["proposition", "clicks", "case", "metric", "value"])
    kinds = {"clicks": "Int64", "case": "Int64", "value": float}
    return frame.astype(kinds).assign(position=None)


def proposition1(
    clicks: int,
    draws: int,
    rng: np.random.Generator,
    *,
    relevance: float,
    first: float,
    second: float,
    estimate: float,
) -> dict[str, float]:
    """Omega = o'(t1) / o(t1) - o'(t2) / o(t2), with o' = click rate / r', simulated."""
    ratios = [
        rng.binomial(clicks, relevance * truth, draws) / clicks / estimate / truth
        for truth in (first, second)
    ]
    omega = ratios[0] - ratios[1]
    cost = 1 / (relevance * first) + 1 / (relevance * second) - 2
    squares = (omega - omega.mean()) ** 2
    return {
        "mean": omega.mean(),
        "variance": omega.var(ddof=1),
        "expected_variance": cost * relevance**2 / (clicks * estimate**2),
        "standard_error": squares.std(ddof=1) / np.sqrt(draws),
    }


def share_of_bound(components: int, rng: np.random.Generator) -> float:
    """Error over bound in one random data set whose components are merged along a random tree.

    Clicks are fitted perfectly: within a component r' = r / s and o' = o s for some s, and
    equal o' of merged factors ties the s of all components together. The error is the largest
    difference of r' / r, the bound the diameter of the tree (Proposition 4), which for two
    components is the length of its one edge (Proposition 2).
    """
    feature, factor = random_log(components, rng)
    component = factor_components(feature, factor, factors=factor.max() + 1)
    examination = rng.uniform(0.05, 1, len(component))
    scale = np.full(components, rng.uniform(0.2, 1))
    edges = []
    for new in range(1, components):
        known = rng.choice(np.flatnonzero(component < new))
        joined = rng.choice(np.flatnonzero(component == new))
        merged = examination[known] * scale[component[known]]
        scale[new] = merged / examination[joined]
        length = abs(examination[known] - examination[joined]) / merged
        edges.append((component[known], new, length))
    start, end, length = map(np.array, zip(*edges, strict=True))
    tree = coo_array((length, (start, end)), shape=(components, components)).tocsr()
    return np.ptp(1 / scale) / shortest_path(tree, directed=False).max()


def random_log(components: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Feature vectors and bias factors of rows: each component a star of one to five factors."""
    feature, factor = [], []
    for size in rng.integers(1, 6, components):
        first = len(factor) and max(factor) + 1
        for other in range(first, first + size):
            feature += [len(feature)] * 2
            factor += [first, other]
    return np.array(feature), np.array(factor)
