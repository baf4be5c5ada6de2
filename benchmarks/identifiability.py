"""Time and memory of the test for identifiability, by the rows of the log.

    python benchmarks/identifiability.py [--rows 1e6 1e7 1e8]

Prints a markdown table. Each size runs in a process of its own, whose peak memory is stated at
the end and before the test, with the log in memory. The comparison with networkx is made where that is installed, which
it is not by the project: `pip install networkx`, into an environment of your own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from twotowers.identifiability import factor_components
from twotowers.randomness import stream

FACTORS = 50_000
ROWS_PER_FEATURE = 20
BLOCK = 1 << 20
NETWORKX_ROWS = 200_000


def make_log(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """[rows] feature vectors and bias factors, int32: ten positions x 5,000 contexts.

    Contexts come in ten groups that share no feature vector, so that the answer is ten.
    """
    rng = stream("benchmark of identifiability", rows)
    feature = rng.integers(max(rows // ROWS_PER_FEATURE, 10), size=rows, dtype=np.int32)
    factor = rng.integers(FACTORS // 10, size=rows, dtype=np.int32)
    factor *= 10
    # In blocks, so that making the log takes no more memory than holding it.
    for start in range(0, rows, BLOCK):
        block = slice(start, start + BLOCK)
        factor[block] += feature[block] % 10
    return feature, factor


def ours(rows: int) -> tuple[float, float, float, int]:
    """Seconds, GB before, GB at most, and components."""
    feature, factor = make_log(rows)
    before = peak()
    start = time.perf_counter()
    component = factor_components(feature, factor, factors=FACTORS)
    return time.perf_counter() - start, before, peak(), int(component.max()) + 1


def peak() -> float:
    """Peak resident memory of this process in GB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def against_networkx(rows: int) -> str:
    """The same bipartite graph in both: seconds each, and whether the answers agree."""
    import networkx

    feature, factor = make_log(rows)
    start = time.perf_counter()
    component = factor_components(feature, factor, factors=FACTORS)
    middle = time.perf_counter()
    graph = networkx.Graph()
    graph.add_nodes_from(range(FACTORS))
    graph.add_edges_from(zip(factor.tolist(), (feature + FACTORS).tolist(), strict=True))
    theirs = np.empty(FACTORS, int)
    for number, members in enumerate(networkx.connected_components(graph)):
        theirs[[member for member in members if member < FACTORS]] = number
    end = time.perf_counter()
    pairs = len(np.unique(np.stack([component, theirs]), axis=1).T)
    same = pairs == component.max() + 1 == theirs.max() + 1
    return (
        f"networkx {networkx.__version__} on {rows:,} rows: {end - middle:.2f} s against "
        f"{middle - start:.3f} s, {(end - middle) / (middle - start):.0f} times as long; "
        f"{'the same components' if same else 'DIFFERENT components'} ({component.max() + 1:,})."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    rows = [int(each) for each in parser.parse_args().rows]
    print(
        "| rows | feature vectors | bias factors | components | s | ns a row | log, GB | peak, GB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    context = multiprocessing.get_context("spawn")
    for size in rows:
        with context.Pool(1) as pool:
            seconds, before, most, components = pool.apply(ours, (size,))
        print(
            f"| {size:,} | {max(size // ROWS_PER_FEATURE, 10):,} | {FACTORS:,} | {components:,} | "
            f"{seconds:.2f} | {seconds / size * 1e9:.0f} | {before:.2f} | {most:.2f} |",
            flush=True,
        )
    print()
    if find_spec("networkx"):
        print(against_networkx(NETWORKX_ROWS))
    else:
        print("networkx is not installed; `pip install networkx` to compare with it.")


if __name__ == "__main__":
    main()
