"""Click probabilities of the documents of pages, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from twotowers.logs.page_arrays import Pages


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
    return pd.DataFrame(columns)
