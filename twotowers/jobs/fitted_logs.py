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
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twotowers.errors import InputError
from twotowers.experiment.kinds import build_model
from twotowers.files.artefacts import atomic
from twotowers.files.tables import check_types, opened
from twotowers.fitting.counted import PageLog
from twotowers.fitting.information import intervals
from twotowers.fitting.pages import PagesEstimate, fit_pages
from twotowers.fitting.statistics import Statistics
from twotowers.fitting.totals import Totals
from twotowers.jobs.measures import page_perplexities
from twotowers.logs.page_arrays import PageArrays
from twotowers.logs.simulation import Sessions
from twotowers.methods.page_fits import page_losses, unknown_of
from twotowers.methods.task import Split
from twotowers.models.independent import as_pages
from twotowers.models.names import MODELS
from twotowers.models.page import PageModel
from twotowers.models.protocol import PER_DOCUMENT, PER_JUMP, PER_POSITION

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
        prior: imagined successes and failures.
    """

    name: str
    positions: int
    estimate: PagesEstimate
    pairs: pa.Table
    prior: tuple[float, float]

    @property
    def model(self) -> PageModel:
        """The model, as one of pages."""
        return model_of(self.name)


def model_of(name: str) -> PageModel:
    """The model of a name in `MODELS`, as one of pages."""
    return as_pages(build_model(MODELS[name]))


def fit_model(
    name: str, log: PageLog, prior: tuple[float, float], tolerance: float = 1e-8
) -> tuple[FittedLog, Statistics | Totals]:
    """Fit a model to a log: in closed form if it can be, else by EM.

    Args:
        name: of the model, one of `MODELS`.
        log: the pages to fit.
        prior: imagined successes and failures.
        tolerance: of EM, see `twotowers.fitting.pages.fit_pages`.

    Returns:
        the fitted model, and what it was fitted to.
    """
    statistics, pairs = log.statistics(model_of(name))
    if isinstance(statistics, Totals):
        estimate = statistics.fit(prior=prior)
    else:
        estimate = fit_pages(statistics, prior=prior, tolerance=tolerance)
    return FittedLog(name, log.positions, estimate, pairs, prior), statistics


def perplexities(fitted: FittedLog, pages: PageArrays) -> dict[str, float]:
    """Mean metrics of pages, see `twotowers.jobs.measures.page_perplexities`."""
    model, unknown = fitted.model, unknown_of(fitted.estimate, fitted.prior)
    known = {
        # What is not in the log has the number behind the last.
        part: np.append(np.where(np.isnan(values), unknown[part], values), unknown[part])
        if model.parts[part] == PER_DOCUMENT
        else np.where(np.isnan(values), unknown[part], values)
        for part, values in fitted.estimate.parameters.items()
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


def write_fitted(path: str | Path, fitted: FittedLog, statistics: Statistics | Totals) -> None:
    """Save a fitted model, all or nothing: the file above.

    Args:
        path: the file.
        fitted: the model.
        statistics: what it was fitted to.
    """
    estimate, pairs, tables = fitted.estimate, fitted.pairs, []
    prior = dict.fromkeys(estimate.parameters, fitted.prior)
    known = intervals(statistics, estimate.parameters, prior=prior)
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
        "prior": json.dumps(fitted.prior),
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
    positions, prior = int(about[b"positions"]), tuple(json.loads(about[b"prior"]))
    of_documents = table.filter(pc.is_valid(table["query"])).select(["query", "document"])
    pairs = of_documents.group_by(["query", "document"]).aggregate([])
    sizes = {PER_DOCUMENT: len(pairs), PER_POSITION: positions, PER_JUMP: positions**2}
    parameters, trials = {}, {}
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
        parameters[part] = np.full(sizes.get(kind, 1), np.nan)
        trials[part] = np.zeros(sizes.get(kind, 1))
        parameters[part][np.asarray(number, int)] = rows["probability"]
        trials[part][np.asarray(number, int)] = rows["trials"]
    return FittedLog(name, positions, PagesEstimate(parameters, trials, np.array([])), pairs, prior)
