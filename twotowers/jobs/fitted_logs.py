"""Click models fitted to one log: fit, predict other pages, save, load.

A saved model is a parquet file with a row per fitted probability. Columns: part (attraction,
examination, ...); query and document, position (from 1) and last_click (0 for none), as far as the
part has them; probability; error, its standard error, missing where there is none; low and high, an
interval of 95 %; trials, the expected number of times it was put to the test: what it rests on; and
impressions, how often it was shown. Documents that were never tried are left out. The file's
metadata has the name of the model, the number of positions, and the prior.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twotowers.errors import InputError
from twotowers.experiment.registry import build_model
from twotowers.files.artefacts import atomic
from twotowers.files.tables import check_types, opened
from twotowers.fitting.counted import PageLog
from twotowers.fitting.em import fit_counts, fit_em
from twotowers.fitting.estimates import Estimate
from twotowers.fitting.information import Intervals
from twotowers.fitting.prior import Prior
from twotowers.jobs.measures import page_perplexities
from twotowers.logs.page_arrays import PageArrays
from twotowers.logs.simulation import Sessions
from twotowers.methods.page_fits import page_losses
from twotowers.methods.task import Split
from twotowers.models.names import MODELS
from twotowers.models.protocol import PER_DOCUMENT, PER_JUMP, PER_POSITION, ClickModel

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
}
"""Of a saved model; see above."""


@dataclass(frozen=True)
class FittedLog:
    """A click model fitted to a log.

    Attributes:
        name: of the model, one of `MODELS`.
        positions: of the longest page it was fitted to.
        estimate: its probabilities.
        pairs: columns query and document of its query-document pairs, by their number.
    """

    name: str
    positions: int
    estimate: Estimate
    pairs: pa.Table

    @property
    def model(self) -> ClickModel:
        """The model, as one of pages."""
        return model_of(self.name)


def model_of(name: str) -> ClickModel:
    """The model of a name in `MODELS`, as one of pages."""
    return build_model(MODELS[name])


def fit_model(name: str, log: PageLog, prior: Prior, tolerance: float = 1e-8) -> FittedLog:
    """Fit a model to a log: in closed form if it can be, else by EM.

    Args:
        name: of the model, one of `MODELS`.
        log: the pages to fit.
        prior: imagined successes and trials.
        tolerance: of EM, see `twotowers.fitting.em.fit_em`.
    """
    model = model_of(name)
    statistics, pairs = log.statistics(model)
    if model.counts is not None:
        estimate = fit_counts(statistics, prior=prior)
    else:
        estimate = fit_em(statistics, prior=prior, tolerance=tolerance)
    return FittedLog(name, log.positions, estimate, pairs)


def perplexities(fitted: FittedLog, pages: PageArrays) -> dict[str, float]:
    """Mean metrics of pages, see `twotowers.jobs.measures.page_perplexities`."""
    model, unknown = fitted.model, fitted.estimate.unknown()
    known = {
        # What is not in the log has the number behind the last.
        part: np.append(values, unknown[part]) if model.parts[part] == PER_DOCUMENT else values
        for part, values in fitted.estimate.filled().items()
    }
    pair, where = _numbers(fitted.pairs, pages)[pages.pair], pages.where
    place = np.broadcast_to(np.arange(where.shape[1]), where.shape)
    sessions = [Sessions(np.arange(len(pair)), place, pages.clicks, where)]
    losses = page_losses(model, known, 0)(Split(pair, where, None, None, sessions=sessions))
    rows = page_perplexities(*losses, where)
    return {metric: value for metric, position, value in rows if position is None}


def _numbers(pairs: pa.Table, pages: PageArrays) -> np.ndarray:
    """[pairs of the pages] their numbers among other pairs, and behind the last if not there."""
    own = pa.table({"query": pages.query, "document": pages.document})
    for name in pairs.column_names:
        if pa.types.is_integer(own[name].type) != pa.types.is_integer(pairs[name].type):
            # One log has only numbers, the other text, too. All ids are text in it.
            own, pairs = (_as_text(table, name) for table in (own, pairs))
    return _places(pairs, own.to_pandas()).fillna(len(pairs)).to_numpy(int)


def _as_text(table: pa.Table, name: str) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))


def _places(pairs: pa.Table, rows: pd.DataFrame) -> pd.Series:
    """[rows] the number of each row's query and document among the pairs; missing if not there."""
    numbered = pairs.to_pandas().assign(number=np.arange(len(pairs)))
    return rows.merge(numbered, how="left", on=["query", "document"])["number"]


def write_fitted(path: str | Path, fitted: FittedLog) -> None:
    """Save a fitted model, all or nothing: the file above.

    Args:
        path: the file.
        fitted: the model.
    """
    estimate, pairs, tables = fitted.estimate, fitted.pairs, []
    known = estimate.intervals
    ids = {column.name: column.type for column in pairs.schema}
    schema = pa.schema([(column, kind or ids[column]) for column, kind in COLUMNS.items()])
    for part, kind in fitted.model.parts.items():
        values, own = estimate.parameters[part], {}
        if kind == PER_DOCUMENT:
            own |= {column: pairs[column] for column in pairs.column_names}
        if kind == PER_POSITION:
            own |= {"position": np.arange(1, len(values) + 1)}
        if kind == PER_JUMP:
            position, last = np.divmod(np.arange(len(values)), round(len(values) ** 0.5))
            own |= {"position": position + 1, "last_click": last}
        own |= {"probability": values, "trials": estimate.trials[part], **vars(known[part])}
        tables.append(_rows(part, own, schema).filter(pa.array(estimate.trials[part] > 0)))
    about = {
        "model": fitted.name,
        "positions": str(fitted.positions),
        "prior": json.dumps(asdict(estimate.prior)),
    }
    with atomic(path) as temporary:
        pq.write_table(pa.concat_tables(tables).replace_schema_metadata(about), temporary)


def _rows(part: str, own: Mapping, schema: pa.Schema) -> pa.Table:
    """The probabilities of a part; missing is what it does not have, and NaN."""
    size = len(own["probability"])
    columns = {each.name: pa.nulls(size, each.type) for each in schema}
    columns["part"] = pa.repeat(part, size)
    for name, values in own.items():
        if isinstance(values, np.ndarray):
            values = pa.array(values, schema.field(name).type, from_pandas=True)
        columns[name] = values
    return pa.table(columns, schema)


def read_fitted(path: str | Path) -> FittedLog:
    """A model that `write_fitted` saved, to predict other pages with.

    Raises:
        InputError: the file cannot be read, or is no such file.
    """
    with opened(path) as file:
        check_types(file.schema_arrow, COLUMNS, path)
        about = file.metadata.metadata or {}
        name = about.get(b"model", b"").decode()
        if name not in MODELS:
            raise InputError(
                f"{name!r} is no model", path=path, field="model", expected=", ".join(MODELS)
            )
        if missing := [key for key in ("positions", "prior") if key.encode() not in about]:
            raise InputError(
                "is missing in the metadata", path=path, field=missing[0], expected="a saved model"
            )
        table = file.read()
    positions, prior = int(about[b"positions"]), Prior(**json.loads(about[b"prior"]))
    of_documents = table.filter(pc.is_valid(table["query"])).select(["query", "document"])
    pairs = of_documents.group_by(["query", "document"]).aggregate([])
    sizes = {PER_DOCUMENT: len(pairs), PER_POSITION: positions, PER_JUMP: positions**2}
    parameters, trials, known = {}, {}, {}
    for part, kind in model_of(name).parts.items():
        rows = table.filter(pc.equal(table["part"], part)).to_pandas()
        if kind == PER_DOCUMENT:
            number = _places(pairs, rows)
        elif kind == PER_POSITION:
            number = rows["position"] - 1
        elif kind == PER_JUMP:
            number = (rows["position"] - 1) * positions + rows["last_click"]
        else:
            number = np.zeros(len(rows))
        number, size = np.asarray(number, int), sizes.get(kind, 1)

        def laid_out(column: str, missing: float, rows=rows, number=number, size=size):
            values = np.full(size, missing)
            values[number] = rows[column]
            return values

        parameters[part], trials[part] = laid_out("probability", np.nan), laid_out("trials", 0.0)
        known[part] = Intervals(
            laid_out("error", np.nan), laid_out("low", 0.0), laid_out("high", 1.0),
            laid_out("impressions", 0.0),
        )  # fmt: skip
    estimate = Estimate(parameters, trials, prior=prior, known=known)
    return FittedLog(name, positions, estimate, pairs)
