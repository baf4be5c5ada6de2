"""The comparison of an item: published beside reproduced, and the same as texts.

A table in long form becomes rows of one number each, with both sources side by side. What is the
same in all rows stands once; every number keeps the decimals that its metric needs.
"""

import math
import re
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from twotowers.claims.statistics import select
from twotowers.errors import InputError, check_choice
from twotowers.report.words import MISSING

SOURCES, TRUTH = ("reproduced", "published"), "truth"

# Everything else in an item's csv is a key column: it says which number this is.
_MEASURES = ("value", "low", "high", "n", "source")


def side_by_side(
    table: pd.DataFrame, highlight: Mapping[str, Sequence[Hashable]] | None = None
) -> pd.DataFrame:
    """Published beside reproduced, matched on every key column, of the values to `highlight`.

    Key columns, published, reproduced, low, high, and difference (reproduced minus published), in
    the table's order; NaN where one side is missing.
    """
    highlight = highlight or {}
    for column in highlight:
        check_choice(column, table, field="highlight", what="no column")
    # A reference, such as the simulated user's parameters, is drawn and not compared.
    table = table[table["source"] != TRUTH]
    keys = [column for column in table.columns if column not in _MEASURES]
    # A temperature that went through float32 is no longer .333 exactly, and would meet
    # neither its published counterpart nor the highlight.
    floats = [key for key in keys if pd.api.types.is_float_dtype(table[key])]
    table = table.assign(**{key: table[key].astype(float).round(6) for key in floats})
    rows = select(table, **{column: list(values) for column, values in highlight.items()})
    if rows.empty:
        raise InputError(f"no row is left of {dict(highlight)}", field="highlight")
    both = rows[keys].drop_duplicates()
    for source, ends in ("published", []), ("reproduced", ["low", "high"]):
        own = rows[rows["source"] == source].rename(columns={"value": source})
        both = both.merge(own[[*keys, source, *ends]], "left", keys, validate="1:1")
    return both.assign(difference=both["reproduced"] - both["published"])


def comparison_view(
    table: pd.DataFrame,
    highlight: Mapping[str, Sequence[Hashable]] | None,
    headings: Mapping[str, str],
    names: Mapping[str, Mapping[str, str]] | None = None,
) -> dict:
    """The comparison as texts, for a template; headings and names are of keys and values.

    Returns:
        constant: (heading, text) of the keys that are the same in all rows.
        keys: Headings of the others.
        published, reproduced, interval: Whether any row has such a number.
        rows: Per row `keys`, pairs of a text and whether it repeats the row above; and the texts
            `published`, `reproduced`, `interval`, `difference`.
    """
    frame = side_by_side(table, highlight)
    keys = list(frame.columns[:-5])
    constant = [key for key in keys if len(frame) > 1 and frame[key].nunique(dropna=False) == 1]
    varying = [key for key in keys if key not in constant]
    # A logit and an nDCG in one table keep decimals of their own.
    metric = frame["metric"].astype(str) if "metric" in keys else pd.Series("", index=frame.index)
    forms = metric.map({name: _format(rows) for name, rows in frame.groupby(metric)})
    for column, called in (names or {}).items():
        if column in keys:
            frame[column] = frame[column].replace(dict(called))
    rows, before = [], []
    for row, form in zip(frame.to_dict("records"), forms, strict=True):
        texts = [_key_text(row[key]) for key in varying]
        # Each key's text, and whether it and all keys to its left repeat the row above.
        marked = [(text, texts[:last] == before[:last]) for last, text in enumerate(texts, start=1)]
        columns = ("published", "reproduced", "low", "high")
        published, reproduced, low, high = (_text(row[name], form) for name in columns)
        rows.append(
            {
                "keys": marked,
                "published": published,
                "reproduced": reproduced,
                "interval": "" if math.isnan(row["low"]) else f"[{low}, {high}]",
                "difference": _text(row["difference"], "+" + form),
            }
        )
        before = texts

    def heading(column: str) -> str:
        text = headings.get(column, column.replace("_", " "))
        return text[:1].upper() + text[1:]

    return {
        "constant": [(heading(key), _key_text(frame[key].iloc[0])) for key in constant],
        "keys": [heading(key) for key in varying],
        "published": bool(frame["published"].notna().any()),
        "reproduced": bool(frame["reproduced"].notna().any()),
        "interval": bool(frame["low"].notna().any()),
        "rows": rows,
    }


def _format(numbers: pd.DataFrame) -> str:
    """How to print numbers so that a thousandth of the largest shows: 4 decimals for an nDCG,
    3 for a logit; powers of ten for errors that would be 0.0000."""
    values = numbers[["published", "reproduced"]].abs().to_numpy(dtype=float)
    finite = values[np.isfinite(values)]
    largest = finite.max() if len(finite) else 1.0
    if 0 < largest < 1e-3:
        return ".1e"
    # One number out of range must not take the decimals of all others.
    return ".4f" if largest <= 1 else ".3f" if len(finite) and np.median(finite) < 100 else ".1f"


def _text(value: float, form: str) -> str:
    if value is None or math.isnan(value):
        return MISSING
    text = re.sub(r"e([+-])0", r"e\1", f"{value:{form}}")
    # Neither -0.000 nor +0.000 says anything that 0.000 does not.
    if float(text) == 0:
        text = "0" if "e" in form else text.lstrip("+-")
    return text.replace("-", "−")


def _key_text(value: object) -> str:
    if pd.isna(value):
        return MISSING
    if isinstance(value, float):
        return f"{value:g}".replace("-", "−")
    return str(value).replace("-", "−") if isinstance(value, int) else str(value)
