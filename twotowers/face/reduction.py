"""A click log, reduced to what a click model needs of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError, check_range
from twotowers.face.logs import MOST_POSITIONS, ClickLog, no_clicks
from twotowers.face.tables import places_of
from twotowers.fitting.counted import PageLog
from twotowers.fitting.statistics import Statistics, Totals
from twotowers.models.protocol import CELLS, ClickModel


def reduced(
    log: ClickLog, name: str, model: ClickModel, positions: int | None
) -> tuple[Statistics | Totals, pa.Table, int]:
    """What a model needs of a log, the ids of its pairs, and the number of positions."""
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
    return *pages.statistics(model), longest


def _of_cells(
    log: ClickLog, model: ClickModel, positions: int | None
) -> tuple[Statistics, pa.Table, int]:
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
    return statistics, pairs, longest
