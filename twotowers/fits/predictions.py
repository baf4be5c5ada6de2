"""Click probabilities of the documents of pages, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from twotowers.logs.simulation import Sessions


def predictions(
    pages: Sessions, pair: np.ndarray, ids: pd.DataFrame, losses: Sequence[Sequence[np.ndarray]]
) -> pd.DataFrame:
    """What `Fit.predict` returns.

    Args:
        pages: with clicks and `where`, [pages, K].
        pair: [pages, K] number of the query-document pair.
        ids: query and document of the pairs.
        losses: of each fit -ln P(click or none, as observed): of each document alone, and given
            the clicks above, [pages, K] each. Probabilities are means over fits.
    """
    page, place = np.nonzero(pages.where)
    clicked = pages.clicks[page, place]
    shown = ids.iloc[pair[page, place]].reset_index(drop=True)
    columns = {"page": page + 1, **shown, "position": place + 1, "click": clicked.astype(int)}
    for name, of_fits in zip(
        ("probability", "given_above"), zip(*losses, strict=True), strict=True
    ):
        observed = np.mean([np.exp(-each[page, place]) for each in of_fits], axis=0)
        columns[name] = np.where(clicked, observed, 1 - observed)
    return pd.DataFrame(columns)
