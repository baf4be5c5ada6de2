"""A click log, reduced to what a click model needs of it."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from twotowers.errors import InputError, check_range
from twotowers.fitting.statistics import Statistics, Totals, sufficient
from twotowers.logs.checks import MOST_POSITIONS
from twotowers.logs.click_log import ClickLog, check_clicks
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
        counts = log.count()
        if not len(counts):
            raise InputError("the log is empty", path=log.source)
        highest = counts.ids["position"].highest
        longest = highest if positions is None else positions
        most = min(longest, MOST_POSITIONS)
        check_range(highest, field="position", low=1, high=most, path=str(log.source))
        check_clicks(log, counts.impressions.sum(), counts.clicks.sum())
        places = counts.count(["position"])
        by_position = places.clicks / places.impressions
        rates = float(by_position[0]), float(places.clicks.sum() / places.impressions.sum())
        return Reduced(*sufficient(model, counts, longest), longest, rates)
    log = as_read_by(model, log, positions)
    longest = log.longest if positions is None else positions
    check_clicks(log, log.shown, log.clicks)
    return Reduced(*sufficient(model, log, longest), longest, log.rates)


def as_read_by(
    model: ClickModel, log: ClickLog, positions: int | None, *, source: str = ""
) -> ClickLog:
    """The log, with its gaps closed for a model that has none.

    Args:
        model: the click model.
        log: a log of pages.
        positions: the most that a page may have; None for any number.
        source: where this number is from, for the message of an InputError.
    """
    log = log if model.gaps else log.closed()
    if positions is not None and log.longest > positions:
        raise InputError(
            f"a page shows {log.longest} documents",
            path=log.source,
            field="documents",
            expected=f"1 to {positions}{source}; `positions` allows more",
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
