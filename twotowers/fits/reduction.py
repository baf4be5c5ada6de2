"""A click log as a click model reads it: reduced for a fit, and page by page for predictions."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError, check_range
from twotowers.fitting.statistics import Statistics, position_of
from twotowers.logs.click_log import MOST_POSITIONS, ClickLog, check_clicks, check_pages
from twotowers.logs.page_arrays import Pages, page_arrays
from twotowers.logs.sessions import EQUAL
from twotowers.models.protocol import CELLS, ClickModel


def reduced(
    log: ClickLog, name: str, model: ClickModel, positions: int | None
) -> tuple[Statistics, pa.Table, int, tuple[float, float]]:
    """What a model needs of a log: its statistics; the ids of query-document pairs, by their
    number; the positions of the longest page, as given or the log's; and clicks per impression of
    the whole log, at the first position and at all."""
    if log.counted:
        if model.statistics != CELLS:
            raise InputError(
                f"{name} needs pages, and the log is counted",
                path=log.source,
                field="model",
                expected="a log of pages, or a model whose clicks are independent, such as 'pbm'",
            )
        counts = log.count()
        if not len(counts):
            raise InputError("the log is empty", path=log.source)
        highest = counts.ids["position"].highest
        longest = highest if positions is None else positions
        most = min(longest, MOST_POSITIONS)
        check_range(highest, field="position", low=1, high=most, path=str(log.source))
    else:
        counts = log = as_read_by(model, log, positions)
        longest = log.longest if positions is None else positions
    places = counts.count(["position"])
    shown, clicks = places.impressions.sum(), places.clicks.sum()
    check_clicks(log, shown, clicks)
    first = position_of(places) == 0
    at_first = places.clicks[first].sum() / max(places.impressions[first].sum(), 1)
    rates = float(at_first), float(clicks / shown)
    return *Statistics.of_log(model, counts, longest), longest, rates


def as_read_by(model: ClickModel, log: ClickLog, positions: int | None) -> ClickLog:
    """The log, with its gaps closed for a model that has none, and pages of at most `positions`."""
    log = log if model.gaps else log.closed()
    if positions is not None and log.longest > positions:
        raise InputError(
            f"a page shows {log.longest} documents",
            path=log.source,
            field="documents",
            expected=f"1 to {positions}, the positions of the fit",
        )
    return log


def check_of_documents(name: str, model: ClickModel) -> None:
    """Raise InputError for a model that has one probability for all documents."""
    if "attraction" not in model.parts:
        raise InputError(
            f"{name} has one probability for all documents",
            field="model",
            expected="a model with attraction",
        )


def pages_to_predict(
    log: ClickLog, model: ClickModel, positions: int, *, once: bool = True, bias: Sequence[str] = ()
) -> Pages:
    """The pages of a log, as a fitted model sees them; InputError if there are none, or one is
    longer than the fit's pages.

    Gaps are closed for a model that has none. `once`: equal pages of one row are a page each;
    `bias` are columns of numbers that towers of places read.
    """
    check_pages(log)
    log.holding(bias)
    log = as_read_by(model, log, positions)
    pages = page_arrays(log, positions=positions, bias=bias)
    if not once or pages.number is None:
        return pages
    pair, clicks, where = (
        np.repeat(each, pages.number, 0) for each in (pages.pair, pages.clicks, pages.where)
    )
    further = None if pages.bias is None else np.repeat(pages.bias, pages.number, 0)
    return Pages(pair, clicks, where, pages.pairs, ids=pages.ids, bias=further)


def predictions(pages: Pages, losses: Sequence[Sequence[np.ndarray]]) -> pd.DataFrame:
    """What `Fit.predict` returns; probabilities are means over fits.

    Losses of each fit are -ln P(click or none, as observed): of each document alone, and given the
    clicks above, [pages, K] each.
    """
    page, place = np.nonzero(pages.where)
    clicked = pages.clicks[page, place]
    columns = shown_with(pages, pages.clicks)
    for name, of_fits in zip(
        ("probability", "given_above"), zip(*losses, strict=True), strict=True
    ):
        observed = np.mean([np.exp(-each[page, place]) for each in of_fits], axis=0)
        columns[name] = np.where(clicked, observed, 1 - observed)
    if pages.number is not None:
        columns[EQUAL] = pages.number[page]
    return pd.DataFrame(columns)


def shown_with(pages: Pages, clicks: np.ndarray) -> dict[str, np.ndarray | pd.Series]:
    """Columns of the documents that pages show, with these clicks [pages, K]."""
    page, place = np.nonzero(pages.where)
    assert pages.ids is not None  # A log names its documents.
    ids = pages.ids.to_pandas().iloc[pages.pair[page, place]].reset_index(drop=True)
    clicked = clicks[page, place].astype(int)
    return {"page": page + 1, **ids, "position": place + 1, "click": clicked}
