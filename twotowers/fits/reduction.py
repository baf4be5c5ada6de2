"""A click log, reduced to what a click model needs of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError, check_range
from twotowers.fits.tables import places_of
from twotowers.fitting.counted import PageLog
from twotowers.fitting.statistics import Statistics, Totals
from twotowers.logs.click_log import MOST_POSITIONS, ClickLog, no_clicks
from twotowers.models.protocol import CELLS, ClickModel


class Reduced(NamedTuple):
    """What a click model needs of a log.

    Attributes:
        statistics: the log, as the model needs it.
        pairs: ids of the query-document pairs, by their number.
        positions: of the longest page.
        rates: clicks per impression of the whole log, at the first position and at all.
    """

    statistics: Statistics | Totals
    pairs: pa.Table
    positions: int
    rates: tuple[float, float]


def reduced(log: ClickLog, name: str, model: ClickModel, positions: int | None) -> Reduced:
    """What a model needs of a log.

    Args:
        log: the log.
        name: of the model, for messages.
        model: the model.
        positions: of the longest page; that of the log if None.
    """
    if log.counted:
        if model.statistics != CELLS:
            raise InputError(
                f"{name} needs pages, and the log is counted",
                path=log.source,
                field="model",
                expected="a log of pages, or a model whose clicks are independent, such as 'pbm'",
            )
        return _of_cells(log, model, positions)
    longest = log.stored.longest if positions is None else positions
    if log.stored.longest > longest:
        raise InputError(
            f"a page shows {log.stored.longest} documents",
            path=log.source,
            field="documents",
            expected=f"1 to {longest}; `positions` allows more",
        )
    if not log.stored.clicks:
        raise no_clicks(log)
    pages = PageLog(log.stored.path, longest, log.rows)
    return Reduced(*pages.statistics(model), longest, log.stored.rates)


def _of_cells(log: ClickLog, model: ClickModel, positions: int | None) -> Reduced:
    cells = log.cells()
    if not len(cells):
        raise InputError("the log is empty", path=log.source)
    if not pc.sum(cells["clicks"]).as_py():
        raise no_clicks(log)
    longest = pc.max(cells["position"]).as_py() if positions is None else positions
    check_range(
        pc.max(cells["position"]).as_py(),
        field="position",
        low=1,
        high=min(longest, MOST_POSITIONS),
        path=str(log.source),
    )
    pairs = cells.select(["query", "document"]).group_by(["query", "document"], use_threads=False)
    pairs = pairs.aggregate([]).select(["query", "document"])
    number = places_of(pairs, cells.select(["query", "document"]).to_pandas()).to_numpy(int)
    counts = (cells[each].to_numpy() for each in ("impressions", "clicks"))
    statistics = Statistics.of_cells(
        model,
        number,
        cells["position"].to_numpy().astype(np.int64) - 1,
        *counts,
        pairs=len(pairs),
        positions=longest,
    )
    first = cells.filter(pc.equal(cells["position"], pc.min(cells["position"])))
    rates = (
        pc.sum(own["clicks"]).as_py() / pc.sum(own["impressions"]).as_py() for own in (first, cells)
    )
    return Reduced(statistics, pairs, longest, (next(rates), next(rates)))


def check_of_documents(name: str, model: ClickModel) -> None:
    """Raise InputError for a model that has one probability for all documents."""
    if "attraction" not in model.parts:
        raise InputError(
            f"{name} tells no document from another",
            field="model",
            expected="a model with attraction",
        )
