"""A fit as a table: a row per probability, with what is known of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from twotowers.fits.prior_check import CONDITIONAL
from twotowers.intervals import interval
from twotowers.models.protocol import PER_DOCUMENT, PER_JUMP, PER_POSITION

if TYPE_CHECKING:
    from twotowers.fits.fit import Fit

COLUMNS = {
    "part": pa.string(),
    "query": None,
    "document": None,
    "position": pa.int32(),
    "last_click": pa.int32(),
    "probability": pa.float64(),
    "error": pa.float64(),
    "low": pa.float64(),
    "high": pa.float64(),
    "trials": pa.float64(),
    "impressions": pa.int64(),
    "clicks": pa.int64(),
    **dict.fromkeys(CONDITIONAL, pa.float64()),
}
"""Of a saved fit; see `twotowers.fits.fit`."""
KNOWN = ("error", "low", "high", "trials", "impressions")
"""Columns that say what an estimate rests on."""


def places(kind: str, size: int, pairs: pa.Table) -> dict[str, Any]:
    """Columns that say where each of the `size` probabilities of a part applies, by its kind."""
    if kind == PER_DOCUMENT:
        return {name: pairs[name] for name in pairs.column_names}
    if kind == PER_POSITION:
        return {"position": np.arange(1, size + 1)}
    if kind == PER_JUMP:
        position, last = np.divmod(np.arange(size), max(round(size**0.5), 1))
        return {"position": position + 1, "last_click": last}
    return {}


def table_of(fit: Fit) -> pa.Table:
    """Every fitted probability that was tried."""
    model, pairs, estimate, conditional = fit.model, fit.pairs, fit.estimate, fit.conditional
    known, clicks = estimate.intervals, None
    if fit.log is not None and len(pairs):
        counts = fit.log.count(["query", "document"])
        own = pa.table({column: counts.values(column) for column in counts.columns})
        clicks = np.zeros(len(pairs), int)
        clicks[pair_numbers(pairs, own)] = counts.clicks
    ids = {column.name: column.type for column in pairs.schema}
    schema = pa.schema([(column, kind or ids[column]) for column, kind in COLUMNS.items()])
    tables = [schema.empty_table()]
    for part, kind in model.parts.items():
        values = estimate.parameters[part]
        own = {"part": pa.repeat(part, len(values)), **places(kind, len(values), pairs)}
        if kind == PER_DOCUMENT and clicks is not None:
            own["clicks"] = clicks
        if part == "examination" and conditional is not None:
            columns = conditional.estimate, conditional.error, conditional.low, conditional.high
            own |= dict(zip(CONDITIONAL, columns, strict=True))
        own |= {"probability": values, "trials": estimate.trials[part], **vars(known[part])}
        for name, each in own.items():
            if isinstance(each, np.ndarray):  # NaN is missing.
                own[name] = pa.array(each, schema.field(name).type, from_pandas=True)
        tables.append(pa.table(own).filter(pa.array(estimate.trials[part] > 0)))
    # What a part does not have is missing.
    whole = pa.concat_tables(tables, promote_options="default")
    prior = json.dumps(asdict(estimate.prior))
    about = {"model": fit.name, "positions": str(fit.positions), "prior": prior}
    return whole.replace_schema_metadata(about)


def examinations_of(attraction: pa.Table, imagined: float, *, independent: bool) -> np.ndarray:
    """[documents] how often users examined each document, in expectation.

    It is the number of trials, where these are expected. The trials of a model whose clicks are
    `independent` are impressions. There n impressions with examination e tell of attraction a by
    the information I = n e / (a (1 - a e)), so n e is a I (1 - a e): at most a I, and at most the
    impressions. A document that users never look at has 0, however often it was shown. Trials of
    the prior, `imagined`, are no information of the log.
    """
    estimate, error, trials = (
        attraction[name].to_numpy() for name in ("estimate", "error", "trials")
    )
    if not independent:
        return trials
    with np.errstate(divide="ignore", invalid="ignore"):
        information = 1 / error**2 - imagined / (estimate * (1 - estimate))
        examined = np.clip(estimate * information, 0, trials)
    return np.where(np.isfinite(examined), examined, trials)


def product_of(attraction: pa.Table, satisfaction: pa.Table, unknown: float) -> pa.Table:
    """Attraction x satisfaction of each document. The errors of both logarithms add up at most.

    `unknown` is the satisfaction of documents that were never clicked.
    """
    one = attraction.to_pandas()
    both = one.merge(
        satisfaction.to_pandas()[["query", "document", "estimate", "error"]],
        how="left",
        on=["query", "document"],
        suffixes=("", "_of_other"),
    )
    other = both["estimate_of_other"].fillna(unknown)
    estimate = both["estimate"] * other
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = both["error"] / both["estimate"] + both["error_of_other"] / other
        low, high = (estimate * np.exp(end) for end in interval(0, spread))
    columns = {
        "estimate": estimate,
        "error": estimate * spread,
        "low": low.fillna(0.0),
        "high": np.minimum(high.fillna(1.0), 1.0),
    }
    product = attraction
    for name, values in columns.items():
        place = product.column_names.index(name)
        product = product.set_column(place, name, pa.array(values, from_pandas=True))
    return product


def pair_numbers(pairs: pa.Table, own: pa.Table) -> np.ndarray:
    """[pairs of a log] their numbers among other pairs, and behind the last if not there."""
    for name in pairs.column_names:
        if pa.types.is_integer(own[name].type) != pa.types.is_integer(pairs[name].type):
            # One log has only numbers, the other text, too. All ids are text in it.
            own, pairs = (_as_text(table, name) for table in (own, pairs))
    numbered = pairs.to_pandas().assign(number=np.arange(len(pairs)))
    number = own.to_pandas().merge(numbered, how="left", on=["query", "document"])["number"]
    return number.fillna(len(pairs)).to_numpy(int)


def _as_text(table: pa.Table, name: str) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
