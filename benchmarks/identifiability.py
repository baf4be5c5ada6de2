"""Time and memory of the test for identifiability and of the repairs.

    .venv/bin/python -m benchmarks.identifiability [--rows 1e6 1e7 1e8]

Fills identifiability.md. Each size runs in a process of its own. Its peak memory is given before
the test, with the log in memory, and after it. Times are the best of three. Then come edges and
repairs of graphs with the sizes in Chen et al. 2024, Table 4: ten positions x 5,000 contexts, of
which most are alone (as on Istella-S) or many are connected (as on Yahoo!). The comparison with
networkx needs `pip install networkx` in an environment of your own.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.measure import best_seconds, child, machine, peak
from benchmarks.pages import where
from scripts.filling import fill_page, markdown
from twotowers.identifiability.graph import factor_components, graph_statistics
from twotowers.identifiability.intervention import node_intervention
from twotowers.identifiability.merging import node_merging
from twotowers.randomness import stream

PAGE = Path(__file__).with_suffix(".md")
FACTORS = 50_000
ROWS_PER_FEATURE = 20
BLOCK = 1 << 20
NETWORKX_ROWS = 200_000


def make_log(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """[rows] feature vectors and bias factors, int32: ten positions x 5,000 contexts.

    Contexts are in ten groups that share no feature vector, so there are ten components.
    """
    rng = stream("benchmark of identifiability", rows)
    feature = rng.integers(max(rows // ROWS_PER_FEATURE, 10), size=rows, dtype=np.int32)
    factor = rng.integers(FACTORS // 10, size=rows, dtype=np.int32)
    factor *= 10
    # Blocks keep the peak memory of making the log at that of holding it.
    for start in range(0, rows, BLOCK):
        block = slice(start, start + BLOCK)
        factor[block] += feature[block] % 10
    return feature, factor


def time_components(*, rows: int) -> dict:
    """Seconds of the test, components, and GB with the log in memory before it."""
    feature, factor = make_log(rows)
    before, component = peak(), factor_components(feature, factor, factors=FACTORS)
    seconds = best_seconds(lambda: factor_components(feature, factor, factors=FACTORS))
    return {"seconds": seconds, "before": before, "components": int(component.max()) + 1}


def against_networkx(rows: int) -> str:
    """Seconds of both libraries on the same bipartite graph, and whether they agree."""
    import networkx

    feature, factor = make_log(rows)

    def theirs():
        graph = networkx.Graph()
        graph.add_nodes_from(range(FACTORS))
        graph.add_edges_from(zip(factor.tolist(), (feature + FACTORS).tolist(), strict=True))
        component = np.empty(FACTORS, int)
        for number, members in enumerate(networkx.connected_components(graph)):
            component[[member for member in members if member < FACTORS]] = number
        return component

    our_time = best_seconds(lambda: factor_components(feature, factor, factors=FACTORS))
    their_time = best_seconds(theirs)
    component, other = factor_components(feature, factor, factors=FACTORS), theirs()
    pairs = len(np.unique(np.stack([component, other]), axis=1).T)
    same = pairs == component.max() + 1 == other.max() + 1
    return (
        f"networkx {networkx.__version__} on {rows:,} rows: {their_time:.2f} s against "
        f"{our_time:.3f} s, {their_time / our_time:.0f} times as long; "
        f"{'the same components' if same else 'DIFFERENT components'} ({component.max() + 1:,})."
    )


def table_4(largest: int, pairs: int) -> list[str]:
    """A table row of times: one feature vector under `largest` factors, others under two each."""
    rng = stream("benchmark of repairs", largest)
    factors = 48_900
    cell = np.sort(rng.choice(FACTORS, factors, replace=False))
    context = rng.normal(0, 0.35, (FACTORS // 10, 10))
    points = np.column_stack([context[cell // 10], 10 * (cell % 10 + 1)])
    order = rng.permutation(factors)
    factor = order[: largest + 2 * pairs]
    feature = np.concatenate([np.zeros(largest, int), np.arange(1, pairs + 1).repeat(2)])
    relevance, examination = rng.uniform(0.1, 1, pairs + 1), rng.uniform(0.1, 1, factors)

    start = time.perf_counter()
    graph = graph_statistics(feature, factor, factors=factors)
    counted = time.perf_counter()
    merging = node_merging(feature, factor, points)
    merged = time.perf_counter()
    node_intervention(feature, factor, relevance, examination)
    end = time.perf_counter()
    assert len(merging.pairs) == graph.components - 1
    numbers = factors, graph.edges, graph.components, graph.sizes[0]
    times = f"{counted - start:.2f}", f"{merged - counted:.1f}", f"{end - merged:.3f}"
    return [*(f"{number:,}" for number in numbers), *times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    found = []
    for rows in map(int, parser.parse_args().rows):
        row = child("benchmarks.identifiability:time_components", rows=rows)
        sizes = rows, max(rows // ROWS_PER_FEATURE, 10), FACTORS, row["components"]
        each = f"{row['seconds']:.2f}", f"{row['seconds'] / rows * 1e9:.0f}"
        memory = f"{row['before']:.2f}", f"{row['peak_gb']:.2f}"
        found.append([*(f"{size:,}" for size in sizes), *each, *memory])
    heads = ["rows", "feature vectors", "bias factors", "components", "s", "ns a row", "log, GB"]
    components = f"{markdown([*heads, 'peak, GB'], found)}\n\n{where(machine())}"
    repairs = [table_4(largest, pairs) for largest, pairs in ((100, 800), (11_000, 9_000))]
    heads = ["nodes", "edges", "components", "largest", "statistics, s", "merging, s"]
    tables = {"components": components, "repairs": markdown([*heads, "intervention, s"], repairs)}
    fill_page(PAGE, tables)
    if find_spec("networkx"):
        print(against_networkx(NETWORKX_ROWS))
    else:
        print("networkx is not installed; `pip install networkx` to compare with it.")


if __name__ == "__main__":
    main()
