"""Is this click log identified, and what would repair it?

    python -m twotowers.identify LOG --feature query document --bias position

Ends with 0 if the log is identified up to one constant, 1 if it is not, 2 on bad input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError
from twotowers.files.batches import (
    are_numbers,
    as_kinds,
    column_names,
    read_batches,
    whole_numbers,
)
from twotowers.files.tables import check_types, opened
from twotowers.identifiability.diagnosis import COUNTS, Report, check_columns, check_log

DECIMAL = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
"""Numbers as programs write them; 007 and NA are none."""
FEW = 20
"""The most bias factors, components or repairs that are listed one by one."""


def read_log(path: str | Path, wanted: list[str]) -> pd.DataFrame:
    """The wanted columns of a parquet or csv file, with impressions and clicks if it has them.

    Raises:
        InputError: the file is missing, damaged or of another format, a column is missing,
            repeated or nested, or a count of a csv file is not a whole number.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("no such file", path=path)
    if path.suffix == ".parquet":
        return _read_parquet(path, wanted)
    if path.suffix == ".csv":
        return _read_csv(path, wanted)
    raise InputError("unknown format", path=path, expected="a .parquet or .csv file")


def _read_parquet(path: Path, wanted: list[str]) -> pd.DataFrame:
    with opened(path) as file:
        schema = file.schema_arrow
        check_columns(wanted, schema.names, path)
        wanted = [name for name in schema.names if name in {*wanted, *COUNTS}]
        check_types(schema, dict.fromkeys(wanted), path)
        for name in wanted:
            kind = schema.field(name).type
            if pa.types.is_nested(kind) or pa.types.is_float16(kind):
                raise InputError(f"has type {str(kind)[:40]}", path=path, field=name)
        return file.read(wanted).replace_schema_metadata().to_pandas()


def _read_csv(path: Path, wanted: list[str]) -> pd.DataFrame:
    """Ids are read as `twotowers.sessions` reads them: 007 stays text, and so does NA."""
    names = column_names(path)
    check_columns(wanted, names, path)
    names = [name for name in dict.fromkeys(names) if name in {*wanted, *COUNTS}]
    numbers = are_numbers(path, names)
    batches = [as_kinds(batch, numbers) for batch in read_batches(path, names)]
    if not batches:
        return pd.DataFrame(columns=names)
    table = {name: pa.chunked_array([each[name] for each in batches]) for name in names}
    for name, values in table.items():
        if name in COUNTS:
            table[name] = whole_numbers(
                values.combine_chunks(), path=path, field=name, place=lambda at: f"row {at + 1}"
            )
        elif not numbers[name]:
            table[name] = _decimals(values)
    return pa.table(table).to_pandas()


def _decimals(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers with a fraction, if all text is, and no two different texts are one number."""
    if not pc.all(pc.match_substring_regex(text, DECIMAL)).as_py():
        return text
    values = text.cast(pa.float64())
    return values if len(pc.unique(values)) == len(pc.unique(text)) else text


def describe(report: Report) -> Iterator[str]:
    """The report, line by line."""
    yield f"{report.rows:,} rows, {len(report.features):,} feature vectors, " + (
        f"{len(report.factors):,} bias factors"
    )
    sizes = np.sort(report.sizes)[::-1]
    shown = ", ".join(f"{size:,}" for size in sizes[:FEW])
    rest = f" and {len(sizes) - FEW:,} more" if len(sizes) > FEW else ""
    yield f"components: {len(sizes):,} (bias factors in each: {shown}{rest})"
    if len(report.factors) <= FEW:
        for number in range(len(sizes)):
            members = np.flatnonzero(report.component == number)
            yield f"  {number + 1}: " + ", ".join(_name(report.factors, each) for each in members)
    yield f"verdict: {'identified up to one constant' if report.identified else 'not identified'}"
    if report.merging:
        yield from _repairs(
            f"merging would treat {len(report.merging.pairs):,} pairs of bias factors as one, at "
            f"a total distance of {report.merging.total:.6g}:",
            (
                f"{_name(report.factors, one)} and {_name(report.factors, other)}"
                f" (distance {cost:.4g})"
                for (one, other), cost in zip(
                    report.merging.pairs, report.merging.cost, strict=True
                )
            ),
            len(report.merging.pairs),
        )
    if report.intervention:
        swaps = report.intervention
        total = f"at a total cost of {swaps.total:.6g}" if report.rates else "for example"
        costs = [f" (cost {cost:.4g})" if report.rates else "" for cost in swaps.cost]
        yield from _repairs(
            f"intervention would swap {len(swaps.cost):,} feature vectors, {total}:",
            (
                f"{_name(report.features, each)} from {_name(report.factors, source)}"
                f" to {_name(report.factors, target)}{cost}"
                for each, source, target, cost in zip(
                    swaps.feature, swaps.source, swaps.target, costs, strict=True
                )
            ),
            len(swaps.cost),
        )


def _repairs(heading: str, repairs, count: int):
    yield heading
    for _, line in zip(range(FEW), repairs, strict=False):
        yield f"  {line}"
    if count > FEW:
        yield f"  and {count - FEW:,} more"


def _name(values: pd.DataFrame, number: int) -> str:
    # A row of a frame has one type, so whole numbers in it would become fractions.
    return " ".join(f"{column}={values[column].iat[number]}" for column in values.columns)


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m twotowers.identify", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("log", help="click log: a .parquet or .csv file")
    columns = {"nargs": "+", "metavar": "COLUMN"}
    parser.add_argument(
        "--feature", required=True, help="columns that name the feature vector", **columns
    )
    parser.add_argument(
        "--bias", required=True, help="columns that name the bias factor", **columns
    )
    parser.add_argument(
        "--bias-features",
        help="numeric columns whose distance is the cost of merging (default: the bias columns)",
        **columns,
    )
    parser.add_argument(
        "--repair", choices=["merge", "intervene"], help="only this repair (default: both)"
    )
    options = parser.parse_args(arguments)
    named = {name: getattr(options, name) for name in ("feature", "bias", "bias_features")}
    # A column that is named twice counts once.
    wanted = {name: list(dict.fromkeys(columns)) for name, columns in named.items() if columns}
    try:
        table = read_log(options.log, [name for columns in wanted.values() for name in columns])
        report = check_log(table, **wanted, repair=options.repair, path=options.log)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    lines = list(describe(report))
    if report.identified and options.repair:
        lines.append(f"nothing to {options.repair}: the log is connected already")
    try:
        print(*lines, sep="\n", flush=True)
    except BrokenPipeError:  # whoever read it has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if report.identified else 1


if __name__ == "__main__":
    sys.exit(main())
