"""Which bias factors identify relevance on TianGong-ST? (Section 5.2, Appendix D.2, Table 5)"""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.fitting.pair_counts import factor_components

FACTORS = ("v1", "v2", "position")
CHOICES = (FACTORS, ("v1", "position"), ("v2", "position"), ("position",))


def run(inputs, *, seed: int) -> pd.DataFrame:
    """Bias factors and components under every choice of what is a bias factor."""
    log, rows = pq.read_table(inputs.log), []
    for choice in CHOICES:
        values = zip(("bias_factors", "components"), components(log, choice), strict=True)
        rows += [(", ".join(choice), *value) for value in values]
    frame = pd.DataFrame(rows, columns=["factors", "metric", "value"])
    return frame.astype({"value": float}).assign(position=None)


def components(log: pa.Table, factors: Sequence[str] = FACTORS) -> tuple[int, int]:
    """How many bias factors a log has, and how many connected components they form.

    Documents are told apart within a query. One component means that the log identifies relevance
    up to a scale (Theorem 1). The log is as `count_cells` gives it.
    """
    table = log.to_pandas()
    document, factor = (
        table.groupby(columns, observed=True, dropna=False).ngroup().to_numpy()
        for columns in (["query", "document"], list(factors))
    )
    count = int(factor.max(initial=-1)) + 1
    return count, int(factor_components(document, factor, factors=count).max(initial=-1)) + 1
