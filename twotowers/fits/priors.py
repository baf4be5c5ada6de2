"""Priors of click models that follow from the log.

A probability that is tried a few times needs a prior. It stands for the unknown law of relevance,
so a wrong one is expensive: where documents are rare and rarely relevant, one imagined click in two
trials takes most of the examination away. The prior `rate` has the mean of the log instead.

>>> from twotowers.models.position_based import PositionBased
>>> rate_prior(PositionBased(), (0.2, 0.1)).of("attraction")
(0.4, 2.0)
"""

from __future__ import annotations

from twotowers.errors import InputError
from twotowers.fitting.prior import Prior, pseudo_counts
from twotowers.models.protocol import PER_DOCUMENT, ClickModel

RATE, CHOSEN = "rate", "chosen"
TRIED = 2.0
"""Imagined trials of every probability."""
LEAST = 0.001


def rate_prior(model: ClickModel, rates: tuple[float, float]) -> Prior:
    """Two imagined trials of every probability, one of which succeeds; of attraction by the log.

    Attraction has the click rate of the first position, which users examine; or of all positions,
    if the model knows no positions.

    Args:
        model: the click model.
        rates: clicks per impression at the first position, and at all.
    """
    if model.parts.get("attraction") != PER_DOCUMENT:
        return Prior(1.0, TRIED)
    rate = min(max(rates[len(model.parts) == 1], LEAST), 1 - LEAST)
    return Prior(1.0, TRIED, {"attraction": (TRIED * rate, TRIED)})


def prior_of(given: tuple[float, float] | str | None) -> Prior | str:
    """A prior as it is given to `fit`: itself, or `RATE` or `CHOSEN`, which follow from a log."""
    if given is None or given in (RATE, CHOSEN):
        return given or Prior()
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return pseudo_counts(*given)
    expected = f"{RATE!r}, {CHOSEN!r}, (prior, mean), or None"
    raise InputError(f"{given!r}", field="prior", expected=expected)
