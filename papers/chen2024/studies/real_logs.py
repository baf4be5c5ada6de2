"""The identifiability check on a click log without simulation (ours, not the paper's).

Positions are the only bias factors; documents are told apart within a query. How thin could the
log be before its position bias were no longer identified?
"""

import numpy as np
import pandas as pd

from twotowers.fitting.pair_counts import factor_components
from twotowers.identifiability.graph import node_intervention, node_merging
from twotowers.randomness import stream


def run(inputs, *, seed: int, name: str, shares: list[float], draws: int) -> pd.DataFrame:
    """Pairs of positions that documents link, components, and what a repair would take.

    `shares` of the query-document pairs are kept, in so many draws each.
    """
    log = pd.read_parquet(inputs.log, columns=["query", "document", "position", "impressions"])
    document = log.groupby(["query", "document"]).ngroup().to_numpy()
    position = log["position"].to_numpy() - 1
    positions = position.max() + 1
    # How many swaps are needed does not depend on what they cost.
    alike = np.ones(document.max() + 1), np.ones(positions)
    values = {
        "pages": log["impressions"][position == 0].sum(),
        "rows": len(position),
        "documents": document.max() + 1,
        "components": factor_components(document, position, factors=positions).max() + 1,
        "merges": len(node_merging(document, position, np.arange(positions)[:, None]).pairs),
        "interventions": len(node_intervention(document, position, *alike).feature),
    }
    rows = [(metric, None, None, None, value) for metric, value in values.items()]
    seen = np.zeros((positions, document.max() + 1), int)
    seen[position, document] = 1
    linked = seen @ seen.T
    for p, q in zip(*np.triu_indices(positions, 1), strict=True):
        rows.append(("linked_pairs", p + 1, q + 1, None, linked[p, q]))
    for share in shares:
        rng = stream("thinned log", seed, share)
        drawn = [connected(document, position, share, positions, rng) for _ in range(draws)]
        rows.append(("connected_share", None, None, share, np.mean(drawn)))
    frame = pd.DataFrame(rows, columns=["metric", "position", "other", "share", "value"])
    kinds = {"other": "Int64", "share": float, "value": float}
    return frame.astype(kinds).assign(log=name)


def connected(document, position, share: float, positions: int, rng) -> bool:
    """Is the graph connected when only a share of the query-document pairs is logged?"""
    kept = (rng.random(document.max() + 1) < share)[document]
    return factor_components(document[kept], position[kept], factors=positions).max() == 0
