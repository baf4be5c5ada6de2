"""When is the identifiability graph of a semi-synthetic data set connected? (Section 5.2,
Appendix D.3, Tables 3 and 4, Figures 4c, 4d and 7)

Each seed draws contexts, samples and removed features anew, `repeats` times. Takes seconds.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.chen2024.contexts import POSITIONS, assign_contexts, vector_ids
from papers.chen2024.displays import displayed
from twotowers.identifiability import factor_components, graph_statistics
from twotowers.randomness import stream
from twotowers.rankings import Rankings, read_rankings

LARGEST = 3


def run(
    inputs,
    *,
    seed: int,
    name: str,
    repeats: int,
    contexts: list[int],
    ratios: list[float],
    features: list[int],
    feature_contexts: int,
    table_contexts: int,
) -> pd.DataFrame:
    """Frequencies of connected graphs, and the statistics of Tables 3 and 4.

    Args:
        inputs: rankings of all splits, and the initial ranker's policy.
        seed: draws everything.
        name: of the data set; becomes a column.
        repeats: draws per point.
        contexts: numbers of context types; 0 means positions only.
        ratios: shares of the queries that are kept, positions only.
        features: numbers of features that are kept, with `feature_contexts` context types.
        table_contexts: context types of Table 4.
    """
    raw = displayed(inputs.train, inputs.policy, "train", top=POSITIONS)
    lists = numbered(raw, raw.features)
    rows = []
    for repeat in range(repeats):
        draw = stream("repeat", seed, repeat).integers(2**31)
        rows += [
            ("contexts", number, repeat, "connected", connected(lists, number, draw))
            for number in contexts
        ]
        rows += [
            ("sampling", ratio, repeat, "connected", connected(sample(lists, ratio, draw), 0, draw))
            for ratio in ratios
        ]
        order = stream("features", seed, repeat).permutation(raw.features.shape[1])
        for number in features:
            fewer = numbered(raw, raw.features[:, order[:number]])
            value = connected(fewer, feature_contexts, draw)
            rows.append(("features", number, repeat, "connected", value))
    values = statistics(inputs, lists, table_contexts, seed=seed)
    rows += [("statistics", table_contexts, 0, metric, value) for metric, value in values.items()]
    frame = pd.DataFrame(rows, columns=["sweep", "amount", "repeat", "metric", "value"])
    frame = frame.astype({"amount": float, "value": float})
    return frame.assign(method="graph", position=None, dataset=name)


def numbered(lists: Rankings, features: np.ndarray) -> Rankings:
    """The lists with the number of each row's vector as its only feature: quicker to compare."""
    numbers = vector_ids(features).astype(np.float32)[:, None]
    return Rankings(lists.query, lists.document, lists.label, numbers)


def connected(lists: Rankings, contexts: int, seed: int) -> bool:
    """Is the graph between the (context, position) that occur connected?"""
    log = assign_contexts(lists, max(contexts, 1), seed=seed)
    seen, factor = np.unique(log.factor, return_inverse=True)
    return factor_components(log.feature, factor, factors=len(seen)).max() == 0


def sample(lists: Rankings, ratio: float, seed: int) -> Rankings:
    """A random share of the queries, at least one."""
    queries = lists.queries
    number = max(round(ratio * len(queries)), 1)
    kept = stream("sample", seed, ratio).choice(queries, number, replace=False)
    return lists.take(np.isin(lists.query, kept))


def statistics(inputs, lists: Rankings, contexts: int, *, seed: int) -> dict[str, float]:
    """Tables 3 and 4."""
    splits = [read_rankings(path) for path in (inputs.train, inputs.validation, inputs.test)]
    log = assign_contexts(lists, contexts, seed=seed)
    feature, factor = log.padded()
    seen, factor = np.unique(factor, return_inverse=True)
    graph = graph_statistics(feature, factor, factors=len(seen))
    sizes = {f"top{place}": size for place, size in enumerate(graph.sizes[:LARGEST], start=1)}
    return {
        "queries": sum(len(split.queries) for split in splits),
        "documents": sum(len(split.label) for split in splits),
        "features": splits[0].features.shape[1],
        "relevance_levels": len(np.unique(np.concatenate([split.label for split in splits]))),
        "nodes": graph.nodes,
        "edges": graph.edges,
        "components": graph.components,
        **sizes,
    }
