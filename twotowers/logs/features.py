"""A table with the features of documents, or of query-document pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from twotowers.errors import InputError, nearest
from twotowers.files.artefacts import files_of
from twotowers.files.batches import column_names, read_batches
from twotowers.logs.frames import source_of

KEYS = ("query", "document")


def read_features(given: object, called: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Features of documents, or of query-document pairs where the table has queries.

    Args:
        given: a path, or a frame: a column `document`, perhaps `query`, and a column per feature.
        called: other names of `document` and `query`, as a log has them.
    """
    source, _ = source_of(given)
    files = files_of(source)
    # What pandas wrote of its index is no feature.
    names = [name for name in column_names(files[0]) if not name.startswith("__index_level_")]
    theirs = {(called or {}).get(name, name): name for name in KEYS}
    ours = {name: own for name, own in theirs.items() if name in names and own not in names}
    keys = [name for name in KEYS if name in {*names, *ours.values()}]
    if "document" not in keys:
        expected = nearest("document", names)
        raise InputError("no such column", path=source, field="document", expected=expected)
    parts = [
        batch.to_pandas(ignore_metadata=True)
        for each in files
        for batch in read_batches(each, names)
    ]
    table = pd.concat(parts, ignore_index=True).rename(columns=ours)
    numbers = [name for name in table.columns if name not in keys]
    if not numbers:
        raise InputError("there are no features", path=source, expected="a column per feature")
    for name in numbers:
        values = pd.to_numeric(table[name], errors="coerce").to_numpy(float)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise InputError(
                f"row {wrong[0] + 1}: {table[name].iloc[wrong[0]]!s:.40} was found",
                path=source,
                field=name,
                expected="finite numbers",
            )
        table[name] = values
    twice = table.duplicated(keys)
    if twice.any():
        raise InputError(
            f"row {int(np.flatnonzero(twice)[0]) + 1}: a {' and '.join(keys)} that came before",
            path=source,
            field="document",
            expected="a row per document, or query-document pair",
        )
    return table[[*keys, *numbers]]


def keys_of(features: pd.DataFrame) -> list[str]:
    """The columns that name a row: document, or query and document."""
    return [name for name in KEYS if name in features.columns[:2]]


def rows_of(features: pd.DataFrame, pairs: pd.DataFrame) -> np.ndarray:
    """[pairs] the row of each query-document pair's features; -1 where there are none.

    Ids are text if either table has text.

    Example:
        >>> rows_of(pd.DataFrame({"document": ["b", "a"], "price": [1, 3]}),
        ...         pd.DataFrame({"query": [1, 1, 1], "document": ["a", "b", "c"]})).tolist()
        [1, 0, -1]
    """
    keys = keys_of(features)
    one, other = features[keys], pairs[keys]
    for name in keys:
        if one[name].dtype != other[name].dtype:
            one, other = (each.assign(**{name: each[name].astype(str)}) for each in (one, other))
    numbered = one.assign(row=np.arange(len(one)))
    return other.merge(numbered, on=keys, how="left")["row"].fillna(-1).to_numpy(int)


@dataclass(frozen=True, eq=False)
class Scaled:
    """Columns less `mean`, over `scale` [width]: mean 0, standard deviation 1 in the log."""

    names: list[str]
    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, names: list[str], values: np.ndarray) -> Scaled:
        """With the scales of some rows: [rows, width]."""
        spread = values.std(0)
        flat = spread <= 1e-9 * np.maximum(np.abs(values).max(0), 1e-300)
        return cls(names, values.mean(0), np.where(flat, 1.0, spread))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """[..., width] float32."""
        return ((values - self.mean) / self.scale).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Standardised:
    """Features as towers read them: each has mean 0 and standard deviation 1 in the log.

    `table` is None if only the scales are known; `called` has the log's other names of `document`
    and `query`.
    """

    table: pd.DataFrame | None
    scales: Scaled
    called: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def fit(
        cls, table: pd.DataFrame, pairs: pd.DataFrame, called: Mapping[str, str]
    ) -> Standardised:
        """With the scales of the rows that a log's pairs have."""
        names = list(table.columns[len(keys_of(table)) :])
        unscaled = cls(table, Scaled(names, np.zeros(len(names)), np.ones(len(names))), called)
        values = table[names].to_numpy(float)[np.unique(unscaled.rows(pairs))]
        return replace(unscaled, scales=Scaled.fit(names, values))

    def of(self, given: object) -> Standardised:
        """The rows of another table, which `read_features` reads, on the same scales."""
        table = read_features(given, called=self.called)
        if missing := [name for name in self.scales.names if name not in table]:
            raise InputError(
                "no such column", path="features", field=missing[0], expected="those of the fit"
            )
        return replace(self, table=table)

    @property
    def ids(self) -> pd.DataFrame:
        """The columns that name the rows."""
        assert self.table is not None
        return self.table[keys_of(self.table)]

    def rows(self, pairs: pd.DataFrame) -> np.ndarray:
        """[pairs] the row of each pair; InputError where there is none."""
        if self.table is None:
            raise InputError(
                "a loaded fit holds none", field="features", expected="a table of features"
            )
        rows = rows_of(self.table, pairs)
        if (rows < 0).any():
            keys = keys_of(self.table)
            without = pairs[keys][rows < 0].drop_duplicates()
            first = ", ".join(f"{name} {value!r}" for name, value in without.iloc[0].items())
            raise InputError(
                f"{len(without):,} of the log have none, such as {first}",
                path="features",
                field=keys[-1],
                expected=f"a row for each {' and '.join(keys)} of the log",
            )
        return rows

    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """[rows, width] float32."""
        assert self.table is not None
        return self.scales(self.table[self.scales.names].to_numpy(float)[rows])

    def values(self, pairs: pd.DataFrame) -> np.ndarray:
        """[pairs, width] float32; InputError for a pair without features."""
        return self.scaled(self.rows(pairs))
