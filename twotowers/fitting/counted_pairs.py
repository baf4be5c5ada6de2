"""Counts of pairs from a table of cells of any size, by DuckDB.

Only rows of pairs that were shown under several bias factors come into memory: see
`twotowers.fitting.pair_counts`. DuckDB groups within its memory limit, and uses the disk for the
rest.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError, nearest
from twotowers.fitting.pair_counts import PairCounts, components
from twotowers.logs.warehouse import MEMORY, database, quoted, text

FACTORS = "SELECT {bias} FROM cells WHERE impressions > 0 GROUP BY ALL ORDER BY ALL"
CODED = """
SELECT query, document, factor, sum(impressions) AS impressions, sum(clicks) AS clicks
FROM cells JOIN factors ON {same}
WHERE impressions > 0
GROUP BY query, document, factor
"""
TOTALS = """
SELECT factor, sum(impressions)::DOUBLE AS shown, sum(clicks)::DOUBLE AS clicked,
    sum(impressions::DOUBLE * impressions) / sum(impressions) AS repeats
FROM coded GROUP BY factor ORDER BY factor
"""
PAIRS = """
SELECT query, document, min(factor) AS first, sum(clicks) AS clicks
FROM coded GROUP BY query, document HAVING min(factor) <> max(factor)
"""
# The number of a pair and of its query follow from their values, on any number of threads.
KEPT = """
SELECT query, document, row_number() OVER (ORDER BY query, document) - 1 AS pair,
    dense_rank() OVER (ORDER BY query) - 1 AS cluster
FROM pairs WHERE {kept}
"""
EDGES = "SELECT DISTINCT first, factor FROM coded JOIN pairs USING (query, document)"
ROWS = """
SELECT pair, factor, sum(coded.impressions)::DOUBLE AS impressions,
    sum(coded.clicks)::DOUBLE AS clicks, any_value(cluster) AS cluster
FROM coded JOIN kept USING (query, document)
GROUP BY pair, factor ORDER BY pair, factor
"""


def read_pairs(
    cells: str | Path | pd.DataFrame | pa.Table,
    *,
    bias: Sequence[str] = ("position",),
    clicked: bool = True,
) -> PairCounts:
    """Counts of the pairs that tell of bias.

    Args:
        cells: a parquet file, or a frame, with query, document, bias features, impressions and
            clicks. Rows of one cell are added up.
        bias: columns of bias features. Each combination in the log is a bias factor.
        clicked: whether pairs without a click are left out. `harvest` needs them,
            `fit_conditional` does not.

    Example:
        >>> cells = pd.DataFrame({
        ...     "query": ["a"] * 3, "document": ["x", "x", "y"], "position": [1, 2, 1],
        ...     "impressions": [10, 10, 7], "clicks": [4, 2, 0]})
        >>> counts = read_pairs(cells)
        >>> counts.clicks.tolist(), counts.shown.tolist()
        ([4.0, 2.0], [17.0, 10.0])
    """
    path = cells if isinstance(cells, str | Path) else None
    with (
        tempfile.TemporaryDirectory() as folder,
        database(Path(folder) / "pairs", MEMORY, None) as connection,
    ):
        _open(connection, cells, path)
        _check(connection, ["query", "document", *bias], path)
        named = ", ".join(map(quoted, bias))
        same = " AND ".join(f"cells.{name} = factors.{name}" for name in map(quoted, bias))
        make = "CREATE TEMP {kind} {name} AS {statement}"
        for kind, name, statement in (
            ("TABLE", "levels", FACTORS.format(bias=named)),
            ("TABLE", "factors", f"SELECT *, row_number() OVER (ORDER BY {named}) - 1 AS factor "
             "FROM levels"),
            ("TABLE", "coded", CODED.format(same=same)),
            ("TABLE", "pairs", PAIRS),
            ("TABLE", "kept", KEPT.format(kept="clicks > 0" if clicked else "true")),
        ):  # fmt: skip
            connection.execute(make.format(kind=kind, name=name, statement=statement))
        names = connection.execute("SELECT * EXCLUDE factor FROM factors ORDER BY factor").df()
        totals = connection.execute(TOTALS).fetchnumpy()
        edges = connection.execute(EDGES).fetchnumpy()
        rows = connection.execute(ROWS).fetchnumpy()
    # An edge leads from the first factor of a pair to another: a "pair" of both.
    tied = components(edges["first"], edges["factor"], len(names))
    return PairCounts.of_sorted(
        *(rows[name] for name in ("pair", "factor", "impressions", "clicks", "cluster")),
        names,
        totals=tuple(totals[name] for name in ("shown", "clicked", "repeats")),
        component=tied,
    )


def _open(connection, cells, path) -> None:
    if path is None:
        connection.register("cells", cells)
        return
    if not Path(path).is_file():
        raise InputError("no such file", path=path)
    try:
        connection.execute(f"CREATE TEMP VIEW cells AS SELECT * FROM read_parquet({text(path)})")
    except duckdb.Error as error:
        raise InputError(str(error)[:300], path=path, expected="a parquet file") from error


def _check(connection, keys, path) -> None:
    known = connection.table("cells").columns
    for name in (*keys, "impressions", "clicks"):
        if name not in known:
            raise InputError("no such column", field=name, path=path, expected=nearest(name, known))
    empty = ", ".join(f"count_if({quoted(name)} IS NULL)" for name in keys)
    # NaN is above all numbers to DuckDB.
    within = "clicks BETWEEN 0 AND impressions AND isfinite(impressions::DOUBLE)"
    bad = f"NOT coalesce({within}, false)"
    *missing, wrong = connection.execute(f"SELECT {empty}, count_if({bad}) FROM cells").fetchone()
    for name, number in zip(keys, missing, strict=True):
        if number:
            raise InputError(f"{number:,} rows are empty", field=name, path=path)
    if wrong:
        row = connection.execute(
            f"SELECT clicks, impressions FROM cells WHERE {bad} LIMIT 1"
        ).fetchone()
        raise InputError(
            f"{row[0]} of {row[1]} impressions, the first of {wrong:,} such rows",
            field="clicks",
            path=path,
            expected="from 0 to the impressions of the row",
        )
