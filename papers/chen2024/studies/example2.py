"""Example 2's estimate of the probability of identifiability against simulation (Section 3)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from twotowers.identifiability.graph import factor_components
from twotowers.randomness import stream


def run(inputs, *, seed: int, sizes: list[dict], repeats: int) -> pd.DataFrame:
    """Draw data sets at random and count how many have a connected graph.

    Args:
        inputs: none.
        seed: draws the data sets.
        sizes: mappings of `features` |X|, `factors` |T| and `rows`, a list of |D|.
        repeats: data sets per size.
    """
    rows = []
    for size in sizes:
        features, factors = size["features"], size["factors"]
        for number in size["rows"]:
            rng = stream("data sets", seed, features, factors, number)
            drawn = [simulated(features, factors, number, rng) for _ in range(repeats)]
            connected, of_seen = np.mean(drawn, axis=0)
            values = {
                "simulated": connected,
                "simulated_seen": of_seen,
                "standard_error": np.sqrt(connected * (1 - connected) / repeats),
                "estimate": estimate(features, factors, number),
                "estimate_finite": estimate_finite(features, factors, number),
            }
            rows += [(features, factors, number, *value) for value in values.items()]
    frame = pd.DataFrame(
        rows, columns=["feature_vectors", "bias_factors", "rows", "metric", "value"]
    )
    return frame.assign(position=None)


def simulated(features: int, factors: int, rows: int, rng: np.random.Generator):
    """Is a random data set's graph connected, and is it but for the factors never drawn?"""
    feature, factor = rng.integers(features, size=rows), rng.integers(factors, size=rows)
    component = factor_components(feature, factor, factors=factors)
    return component.max() == 0, np.ptp(component[factor]) == 0


def estimate(features: int, factors: int, rows: int) -> float:
    """The formula of Example 2, which may be below 0."""
    cells = features * factors
    return 1 - factors * np.exp(-rows + cells * np.log(2 - np.exp(-rows / cells)))


def estimate_finite(features: int, factors: int, rows: int) -> float:
    """The first line of the proof's last step (Appendix A.2), before |T| - 1 becomes |T|."""
    overlap = 2 - np.exp(-rows / (features * factors))
    apart = np.exp(-rows / factors) * overlap**features
    return 1 - factors * apart ** (factors - 1)
