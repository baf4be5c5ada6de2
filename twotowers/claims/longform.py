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

from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.files.tables import check_types, opened

TYPES = {
    "paper": None,
    "setting": None,
    "seed": pa.int64(),
    "metric": None,
    "position": pa.int64(),
    "value": pa.float64(),
}
REQUIRED = list(TYPES)


def write_results(
    results: pd.DataFrame, path: str | Path, *, paper: str, setting: str, seed: int
) -> None:
    """Write the results of one job.

    Args:
        results: columns metric, position and value, and those that tell rows apart.
        path: the parquet file.
        paper, setting, seed: values of these columns, the same in every row.
    """
    results = results.assign(paper=paper, setting=setting, seed=seed)
    results = results.astype({"position": "Int64"} if "position" in results else {})
    for column in REQUIRED:
        if column not in results:
            raise InputError("the column is missing", path=path, field=column)
    own = [column for column in results if column not in REQUIRED]
    ordered = results[[*REQUIRED[:3], *own, *REQUIRED[3:]]]
    with atomic(path) as temporary:
        pq.write_table(pa.Table.from_pandas(ordered, preserve_index=False), temporary)


def read_results(paths: Iterable[str | Path]) -> pd.DataFrame:
    """The results of several jobs in one table. Columns that a job lacks are NA."""
    table = pa.concat_tables(map(_read, paths), promote_options="permissive")
    return table.to_pandas().astype({"position": "Int64"})


def _read(path: str | Path) -> pa.Table:
    with opened(path) as file:
        check_types(file.schema_arrow, TYPES, path)
        return file.read()
