"""Results in long form: one row per measured number, and what it was measured on.

Columns: paper, setting, seed; what tells the rows of a setting or study apart, each by its own
name (model, method and lanes of a fit; regime, variant or others of a study); metric, position
(1-based, NA where a metric has none), value.
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

REQUIRED = ["paper", "setting", "seed", "metric", "position", "value"]
NUMBERS = {
    "seed": pa.types.is_integer,
    "position": pa.types.is_integer,
    "value": pa.types.is_float64,
}
LANE_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_null,
)


def write_results(
    results: pd.DataFrame, path: str | Path, *, paper: str, setting: str, seed: int
) -> None:
    """Write the results of one job.

    Args:
        results: columns metric, position, value, and those that tell rows apart.
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
    own = [column for column in results if column not in REQUIRED]
    ordered = results[[*REQUIRED[:3], *own, *REQUIRED[3:]]]
    with atomic(path) as temporary:
        pq.write_table(pa.Table.from_pandas(ordered, preserve_index=False), temporary)


def read_results(paths: Iterable[str | Path]) -> pd.DataFrame:
    """The results of several jobs, one below the other; columns that a job lacks are NA.

    Raises:
        InputError: a file cannot be read, a column is missing, or one has a type that results
            do not have.
    """
    table = pa.concat_tables(map(_read, paths), promote_options="permissive")
    return table.to_pandas().astype({"position": "Int64"})


def _read(path: str | Path) -> pa.Table:
    with opened(path) as file:
        schema = file.schema_arrow
        check_types(schema, dict.fromkeys([*REQUIRED, *schema.names]), path)
        for field in schema:
            number = field.name in NUMBERS
            allowed = (NUMBERS[field.name],) if number else LANE_TYPES
            if not any(is_a(field.type) for is_a in allowed):
                raise InputError(f"has type {str(field.type)[:40]}", path=path, field=field.name)
        table = file.read()
        # By way of floating point, where some are NA.
        position = table["position"].cast(pa.int32())
        table = table.set_column(schema.names.index("position"), "position", position)
    try:
        table.to_pandas()
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError("its notes for pandas are damaged", path=path) from error
    return table
