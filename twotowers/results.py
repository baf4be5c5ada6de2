"""Results in long form: one row per measured number, and what it was measured on.

Columns: paper, setting, method, seed, the lane columns (strength, temperature, weighting,
or others that a study names), metric, position (1-based, NA where a metric has none), value.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.artefacts import atomic
from twotowers.errors import InputError

REQUIRED = ["paper", "setting", "method", "seed", "metric", "position", "value"]


def write_results(
    results: pd.DataFrame, path: str | Path, *, paper: str, setting: str, seed: int
) -> None:
    """Write the results of one job.

    Args:
        results: columns method, metric, position, value and the lane columns.
        path: the parquet file.
        paper, setting, seed: what the job was about; become columns.

    Raises:
        InputError: a required column is missing.
    """
    results = results.assign(paper=paper, setting=setting, seed=seed)
    results = results.astype({"position": "Int64"} if "position" in results else {})
    for column in REQUIRED:
        if column not in results:
            raise InputError("the column is missing", path=path, field=column)
    lanes = [column for column in results if column not in REQUIRED]
    ordered = results[[*REQUIRED[:4], *lanes, *REQUIRED[4:]]]
    with atomic(path) as temporary:
        pq.write_table(pa.Table.from_pandas(ordered, preserve_index=False), temporary)


def read_results(paths: Iterable[str | Path]) -> pd.DataFrame:
    """The results of several jobs, one below the other; lanes that a job lacks are NA."""
    tables = [pq.read_table(path) for path in paths]
    table = pa.concat_tables(tables, promote_options="permissive")
    return table.to_pandas().astype({"position": "Int64"})
