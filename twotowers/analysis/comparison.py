"""Which click model predicts held-out pages best, and by how much."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from twotowers.errors import InputError, check_range
from twotowers.fits.defaults import PRIOR, TEST
from twotowers.fits.fit import Fit, means_of
from twotowers.fits.fitting import fit_click_model, prior_of
from twotowers.fits.models import fitted_model
from twotowers.intervals import ratio
from twotowers.logs.click_log import ClickLog, as_log, check_pages
from twotowers.logs.frames import Native, native
from twotowers.models.names import MODELS
from twotowers.models.page import PageModel
from twotowers.models.protocol import CellModel


def compare(
    log: object,
    models: Sequence[str | CellModel | PageModel | Fit] = tuple(MODELS),
    *,
    prior: tuple[float, float] | str | None = PRIOR,
    test: float = TEST,
    seed: int = 0,
) -> Native:
    """Fit click models to some pages of a log, and predict the others.

    Args:
        log: a log of `read_log`, or what it takes, with pages.
        models: as of `fit`; or fits, which then predict all pages of the log.
        prior: as of `fit`.
        test: the share of pages held out, in (0, 1).
        seed: chooses them.

    Returns:
        a frame with a row per model, the best first: model; perplexity, conditional and
        log_likelihood of the held-out pages, as in `Fit.evaluate`; behind, by which the mean
        log-likelihood is below that of the best model; and error, the standard error of that,
        clustered by query, missing for the best model and in a log of one query.

    Raises:
        InputError: see `fit` and `ClickLog.split`.

    Example:
        >>> pages = {"query": [1, 2] * 50, "documents": [["a", "b"]] * 100,
        ...          "clicks": [[1, 0]] * 90 + [[0, 1]] * 10}
        >>> found = compare(pa.table(pages), ["gctr", "dctr"])
        >>> found["model"].to_pylist(), found["behind"].to_pylist()[0]
        (['dctr', 'gctr'], 0.0)
    """
    log = as_log(log)
    check_pages(log)
    fits = [each for each in models if isinstance(each, Fit)]
    others = [each for each in models if not isinstance(each, Fit)]
    if bool(fits) == bool(others):
        raise InputError(
            f"{len(fits)} fits among {len(fits) + len(others)} models",
            field="models",
            expected="one model or more, all of them fitted or none",
        )
    held_out = log
    if not fits:  # All is checked before the first fit.
        check_range(test, field="test", low=0.001, high=0.999)
        prior_of(prior)
        if not all(fitted_model(each)[1].gaps for each in others):
            log = log.closed()  # All predict the same pages.
        part, held_out = log.split({"train": 1 - test, "test": test}, seed=seed).values()
        how: dict[str, Any] = {"prior": prior, "positions": log.longest}
        fits = [fit_click_model(part, each, **how) for each in others]
    table = predictions(fits, held_out)
    return native(pa.Table.from_pandas(table, preserve_index=False), log.kind)


def predictions(fits: Sequence[Fit], log: ClickLog) -> pd.DataFrame:
    """What `compare` returns, of fits and the pages that they predict."""
    rows: list[dict[str, Any]] = []
    losses: list[np.ndarray] = []
    log = log if all(each.model.gaps for each in fits) else log.closed()
    pages = fits[0].arrays(log)
    for one in fits:
        if one.positions != pages.where.shape[1]:
            pages = one.arrays(log)
        alone, given, where = one.losses(pages)
        rows.append({"model": one.name} | means_of(alone, given, where, pages.number))
        losses.append(given)
    table = pd.DataFrame(rows)
    best = int(table["log_likelihood"].argmax())
    assert pages.ids is not None  # Pages of a file have ids.
    query = pd.factorize(pages.ids["query"].to_numpy()[pages.pair[:, 0]])[0]
    times = 1 if pages.number is None else pages.number[:, None]
    size = np.bincount(query, (times * pages.where).sum(1))
    more = (np.where(pages.where, each - losses[best], 0) for each in losses)
    behind = [ratio(np.bincount(query, (times * own).sum(1)), size) for own in more]
    table["behind"], table["error"] = zip(*behind, strict=True)
    table.loc[best, "error"] = np.nan
    return table.sort_values("log_likelihood", ascending=False, kind="stable")
