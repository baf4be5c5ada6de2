"""Click probabilities of the documents of pages, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from twotowers.fits.reduction import as_read_by
from twotowers.logs.click_log import ClickLog, check_pages
from twotowers.logs.page_arrays import Pages, page_arrays
from twotowers.logs.sessions import EQUAL
from twotowers.models.protocol import ClickModel


def pages_to_predict(
    log: ClickLog, model: ClickModel, positions: int, *, once: bool = True, bias: Sequence[str] = ()
) -> Pages:
    """The pages of a log, as a fitted model sees them; InputError if there are none, or one is
    longer than the fit's pages.

    Args:
        log: the log.
        model: the click model. Gaps are closed for one that has no gaps.
        positions: of the fit's longest page.
        once: whether equal pages of one row are a page each.
        bias: columns of numbers that towers of places read.
    """
    check_pages(log)
    log.holding(bias)
    log = as_read_by(model, log, positions, source=", as the fit has")
    pages = page_arrays(log, positions=positions, bias=bias)
    if not once or pages.number is None:
        return pages
    pair, clicks, where = (
        np.repeat(each, pages.number, 0) for each in (pages.pair, pages.clicks, pages.where)
    )
    further = None if pages.bias is None else np.repeat(pages.bias, pages.number, 0)
    return Pages(pair, clicks, where, pages.pairs, ids=pages.ids, bias=further)


def predictions(pages: Pages, losses: Sequence[Sequence[np.ndarray]]) -> pd.DataFrame:
    """What `Fit.predict` returns.

    Args:
        pages: of a log.
        losses: of each fit -ln P(click or none, as observed): of each document alone, and given
            the clicks above, [pages, K] each. Probabilities are means over fits.
    """
    page, place = np.nonzero(pages.where)
    clicked = pages.clicks[page, place]
    assert pages.ids is not None  # A log names its documents.
    shown = pages.ids.to_pandas().iloc[pages.pair[page, place]].reset_index(drop=True)
    columns = {"page": page + 1, **shown, "position": place + 1, "click": clicked.astype(int)}
    for name, of_fits in zip(
        ("probability", "given_above"), zip(*losses, strict=True), strict=True
    ):
        observed = np.mean([np.exp(-each[page, place]) for each in of_fits], axis=0)
        columns[name] = np.where(clicked, observed, 1 - observed)
    if pages.number is not None:
        columns[EQUAL] = pages.number[page]
    return pd.DataFrame(columns)
