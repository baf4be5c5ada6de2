"""When is the identifiability graph of a semi-synthetic data set connected? (Section 5.2,
Appendix D.3, Tables 3 and 4, Figures 4c, 4d and 7)

Each seed draws contexts, samples and removed features anew, `repeats` times.
"""

import numpy as np
import pandas as pd

from papers.chen2024.models.eye_tracking import POSITIONS
from twotowers.experiment.ranked_lists import assign_contexts, vector_ids
from twotowers.files.rankings import read_rankings
from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability.graph import number_of_edges
from twotowers.logs.policies import displayed
from twotowers.randomness import stream

LARGEST = 3


def run(
    inputs,
    *,
    seed: int,
    name: str,
    repeats: int,
    feature_repeats: int,
    contexts: list[int],
    ratios: list[float],
    features: list[int],
    feature_contexts: int,
    table_contexts: int,
) -> pd.DataFrame:
    """Frequencies of connected graphs, and the statistics of Tables 3 and 4.

    There are `repeats` draws per point, and `feature_repeats` where features are removed, which
    takes far longer. `contexts` are numbers of context types; 0 means positions only. `ratios` are
    shares of the queries that are kept, positions only. `features` are numbers of features that are
    kept, with `feature_contexts` context types; Table 4 has `table_contexts`.
    """
    lists = displayed(inputs.train, inputs.policy, top=POSITIONS)
    feature, lengths = vector_ids(lists.features), lists.lengths
    rows = []
    for repeat in range(repeats):
        draw = stream("repeat", seed, repeat).integers(2**31)
        rows += [
            ("contexts", number, repeat, "connected", connected(feature, lengths, number, draw))
            for number in contexts
        ]
        rows += [
            ("sampling", ratio, repeat, "connected", connected(*part, 0, draw))
            for ratio in ratios
            for part in [sample(feature, lengths, ratio, draw)]
        ]
        order = stream("features", seed, repeat).permutation(lists.features.shape[1])
        for number in features if repeat < feature_repeats else ():
            fewer = vector_ids(lists.features[:, order[:number]])
            value = connected(fewer, lengths, feature_contexts, draw)
            rows.append(("features", number, repeat, "connected", value))
    drawn = assign_contexts(lengths, table_contexts, positions=POSITIONS, seed=seed)
    values = sizes(inputs) | graph(*drawn.padded(feature))
    rows += [("statistics", table_contexts, 0, metric, value) for metric, value in values.items()]
    frame = pd.DataFrame(rows, columns=["sweep", "amount", "repeat", "metric", "value"])
    frame = frame.astype({"amount": float, "value": float})
    return frame.assign(position=None, dataset=name)


def connected(feature: np.ndarray, lengths: np.ndarray, contexts: int, seed: int) -> bool:
    """Is the graph between the (context, position) that occur connected?"""
    places = assign_contexts(lengths, max(contexts, 1), positions=POSITIONS, seed=seed).shown
    seen, factor = np.unique(places, return_inverse=True)
    return factor_components(feature, factor, factors=len(seen)).max() == 0


def sample(
    feature: np.ndarray, lengths: np.ndarray, ratio: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and lengths of a random share of the lists, at least one."""
    number = max(round(ratio * len(lengths)), 1)
    chosen = stream("sample", seed, ratio).choice(len(lengths), number, replace=False)
    kept = np.isin(np.arange(len(lengths)), chosen)
    return feature[np.repeat(kept, lengths)], lengths[kept]


def sizes(inputs) -> dict[str, float]:
    """Table 3."""
    splits = [read_rankings(path) for path in (inputs.train, inputs.validation, inputs.test)]
    return {
        "queries": sum(len(split.queries) for split in splits),
        "documents": sum(len(split.label) for split in splits),
        "features": splits[0].features.shape[1],
        "relevance_levels": len(np.unique(np.concatenate([split.label for split in splits]))),
    }


def graph(feature: np.ndarray, factor: np.ndarray) -> dict[str, int]:
    """Table 4; only factors that occur are nodes."""
    seen, factor = np.unique(factor, return_inverse=True)
    sizes = np.sort(np.bincount(factor_components(feature, factor, factors=len(seen))))[::-1]
    edges = number_of_edges(feature, factor, factors=len(seen))
    counts = {"nodes": len(seen), "edges": edges, "components": len(sizes)}
    return counts | {f"top{place}": int(size) for place, size in enumerate(sizes[:LARGEST], 1)}
