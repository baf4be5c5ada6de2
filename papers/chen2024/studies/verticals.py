"""Which bias factors identify relevance on TianGong-ST? (Section 5.2, Appendix D.2, Table 5)"""

from __future__ import annotations

import pandas as pd
import pyarrow.parquet as pq

from papers.chen2024.verticals import components

CHOICES = (("v1", "v2", "position"), ("v1", "position"), ("v2", "position"), ("position",))


def run(inputs, *, seed: int) -> pd.DataFrame:
    """Bias factors and components under every choice of what is a bias factor."""
    log = pq.read_table(inputs.log)
    rows = []
    for choice in CHOICES:
        factors, values = components(log, choice)
        rows.append((", ".join(choice), "bias_factors", factors))
        rows.append((", ".join(choice), "components", values))
    frame = pd.DataFrame(rows, columns=["factors", "metric", "value"])
    return frame.astype({"value": float}).assign(position=None)
