"""Results in long form: one row per measured number.

The columns are paper, setting and seed; columns that tell the rows of a setting or study apart
(model, method and lanes of a fit; regime, variant and others of a study); metric, position (from 1,
NA if the metric has none) and value.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.files.artefacts import atomic

REQUIRED = ["paper", "setting", "seed", "metric", "position", "value"]


def write_results(
    results: pd.DataFrame, path: str | Path, *, paper: str, setting: str, seed: int
) -> None:
    """Write the results of one job: metric, position, value, and columns that tell rows apart."""
    results = results.assign(paper=paper, setting=setting, seed=seed)
    results = results.astype({"position": "Int64"} if "position" in results else {})
    own = [column for column in results if column not in REQUIRED]
    ordered = results[[*REQUIRED[:3], *own, *REQUIRED[3:]]]
    with atomic(path) as temporary:
        pq.write_table(pa.Table.from_pandas(ordered, preserve_index=False), temporary)


def read_results(paths: Iterable[str | Path]) -> pd.DataFrame:
    """The results of several jobs in one table. Columns that a job lacks are NA."""
    tables = [pq.read_table(path, partitioning=None) for path in paths]
    table = pa.concat_tables(tables, promote_options="permissive")
    results = table.to_pandas(strings_to_categorical=True)
    # Rows of texts are taken several times as fast as objects.
    texts = dict.fromkeys(results.select_dtypes("category"), object)
    return results.astype({"position": "Int64", **texts})
