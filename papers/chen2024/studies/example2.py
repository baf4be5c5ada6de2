"""Example 2's estimate of the probability of identifiability against simulation (Section 3)."""

import numpy as np
import pandas as pd

from twotowers.fitting.pair_counts import factor_components
from twotowers.randomness import stream


def run(inputs, *, seed: int, sizes: list[dict], repeats: int, limit: dict) -> pd.DataFrame:
    """Draw data sets at random and count how many have a connected graph.

    Sizes have `features` |X|, `factors` |T| and `rows`, a list of |D|; there are `repeats` data
    sets per size, and graphs with independent edges. `limit` is one of them with a list of
    `factors` and one number of `rows`: where the exponent f of the formula is to tend to |D|
    (Remark 2).
    """
    rows = []
    for size in sizes:
        features, factors = size["features"], size["factors"]
        for number in size["rows"]:
            rng = stream("data sets", seed, features, factors, number)
            drawn = [simulated(features, factors, number, rng) for _ in range(repeats)]
            connected, of_seen, apart = np.mean(drawn, axis=0)
            edge = 1 - pair_apart(features, factors, number)
            alike = stream("independent edges", seed, features, factors, number)
            values = {
                "simulated": connected,
                "simulated_seen": of_seen,
                "pair_apart": apart,
                "pair_estimate": 1 - edge,
                "independent": np.mean([gilbert(factors, edge, alike) for _ in range(repeats)]),
                "standard_error": np.sqrt(connected * (1 - connected) / repeats),
                "estimate": estimate(features, factors, number),
                "estimate_finite": estimate_finite(features, factors, number),
            }
            rows += [(features, factors, number, *value) for value in values.items()]
    features, number = limit["features"], limit["rows"]
    for factors in limit["factors"]:
        values = {
            "exponent_share": exponent(features, factors, number) / number,
            "limit_estimate": estimate(features, factors, number),
        }
        rows += [(features, factors, number, *value) for value in values.items()]
    columns = ["feature_vectors", "bias_factors", "rows", "metric", "value"]
    return pd.DataFrame(rows, columns=columns).assign(position=None)


def simulated(features: int, factors: int, rows: int, rng: np.random.Generator):
    """One random data set: is its graph connected, and is it but for the factors never drawn;
    and the share of pairs of factors that no vector joins."""
    feature, factor = rng.integers(features, size=rows), rng.integers(factors, size=rows)
    component = factor_components(feature, factor, factors=factors)
    seen = np.zeros((factors, features), np.float32)
    seen[factor, feature] = 1
    apart = (seen @ seen.T)[np.triu_indices(factors, 1)] == 0
    return component.max() == 0, np.ptp(component[factor]) == 0, apart.mean()


def gilbert(nodes: int, edge: float, rng: np.random.Generator) -> bool:
    """Is a graph connected whose edges are there with this chance each, independently?"""
    chosen = np.flatnonzero(rng.random(nodes * (nodes - 1) // 2) < edge)
    ends = np.stack(np.triu_indices(nodes, 1), axis=1)[chosen]
    vector = np.repeat(np.arange(len(ends)), 2)
    return factor_components(vector, ends.ravel(), factors=nodes).max() == 0


def exponent(features: int, factors: int, rows: int) -> float:
    """f of Example 2, by the form that keeps its digits where |T| is large."""
    cells = features * factors
    return cells * np.log1p(-np.expm1(-rows / cells))


def estimate(features: int, factors: int, rows: int) -> float:
    """The formula of Example 2, which may be below 0."""
    return 1 - factors * np.exp(exponent(features, factors, rows) - rows)


def pair_apart(features: int, factors: int, rows: int) -> float:
    """Lemma A.1: the probability that no vector joins two given factors."""
    overlap = 2 - np.exp(-rows / (features * factors))
    return np.exp(-rows / factors) * overlap**features


def estimate_finite(features: int, factors: int, rows: int) -> float:
    """Lemma A.2 with the edges of Lemma A.1: the formula before |T| - 1 becomes |T|."""
    return 1 - factors * pair_apart(features, factors, rows) ** (factors - 1)
