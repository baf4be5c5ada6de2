"""Priors of click models that follow from the log.

A probability that is tried a few times needs a prior. It stands for the unknown law of relevance,
so a wrong one is expensive: where documents are rare and rarely relevant, one imagined click in two
trials takes most of the examination away. The prior `rate` has the mean of the log instead, and
`chosen` is the one that predicts pages best that are held out.

>>> from twotowers.models.position_based import PositionBased
>>> rate_prior(PositionBased(), (0.2, 0.1)).of("attraction")
(0.4, 2.0)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from twotowers.errors import InputError
from twotowers.fits.fit import Fit, means_of
from twotowers.fits.reduction import reduced
from twotowers.fitting.estimates import Estimate
from twotowers.fitting.prior import Prior, pseudo_counts
from twotowers.fitting.statistics import Statistics, Totals
from twotowers.logs.click_log import ClickLog, check_pages
from twotowers.models.protocol import PER_DOCUMENT, ClickModel

RATE, CHOSEN = "rate", "chosen"
TRIED = 2.0
"""Imagined trials of every probability."""
LEAST_RATE = 0.001
MEANS = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5)
"""Means of probabilities of documents that are tried, with two trials each. A search for mean and
trials starts at the best of them."""
LEAST, MOST = (0.001, 0.1), (0.999, 100.0)
"""Mean and trials are sought between these."""
NEAR, GAIN = 0.05, 1e-5
"""The search ends where log-odds of means, logarithms of trials and perplexities differ by less."""
STEPS = np.array([[0, 0], [0.5, 0], [0, 0.7]])
"""From the start of the search to its first three points."""
HELD_OUT = 0.2


def chosen_prior(
    log: ClickLog,
    model_name: str,
    model: ClickModel,
    positions: int | None,
    fitted: Callable[[Statistics | Totals, Prior], Estimate],
) -> Prior:
    """Choose the prior of each part per document, one part after the other.

    A fifth of the pages is held out, and each prior is judged by the conditional perplexity of
    their clicks, the mean over positions. Nelder and Mead's search finds mean and trials together.
    Other parts keep one success in two trials: they have few probabilities, so their prior matters
    little. `fitted` fits the model to statistics with a prior.
    """
    check_pages(log)
    longest = log.longest if positions is None else positions
    parts = log.split({"train": 1 - HELD_OUT, "test": HELD_OUT})
    statistics, pairs, *_ = reduced(parts["train"], model_name, model, longest)
    chosen: dict[str, tuple[float, float]] = {}
    pages = None
    for part in (part for part, kind in model.parts.items() if kind == PER_DOCUMENT):

        def loss(at: np.ndarray, part: str = part) -> float:
            nonlocal pages
            prior = Prior(1, TRIED, {**chosen, part: imagined(at)})
            fit = Fit(model_name, model, longest, fitted(statistics, prior), pairs)
            pages = fit.arrays(parts["test"]) if pages is None else pages
            return means_of(*fit.losses(pages))["conditional"]

        start = min((np.array([logit(mean), np.log(TRIED)]) for mean in MEANS), key=loss)
        best = minimize(
            loss,
            start,
            method="Nelder-Mead",
            bounds=[logit([LEAST[0], MOST[0]]), np.log([LEAST[1], MOST[1]])],
            options={"initial_simplex": start + STEPS, "xatol": NEAR, "fatol": GAIN},
        )
        chosen[part] = imagined(best.x)
    return Prior(1, TRIED, chosen)


def imagined(at: np.ndarray) -> tuple[float, float]:
    """Imagined successes and trials, from the log-odds of the mean and the logarithm of trials."""
    trials = float(f"{np.exp(at[1]):.3g}")
    return float(f"{trials * expit(at[0]):.3g}"), trials


def rate_prior(model: ClickModel, rates: tuple[float, float]) -> Prior:
    """Two imagined trials of every probability, one of which succeeds; of attraction by the log.

    Attraction has the click rate of the first position, which users examine; or of all positions,
    if the model knows no positions. `rates` are both.
    """
    if model.parts.get("attraction") != PER_DOCUMENT:
        return Prior(1.0, TRIED)
    rate = min(max(rates[len(model.parts) == 1], LEAST_RATE), 1 - LEAST_RATE)
    return Prior(1.0, TRIED, {"attraction": (TRIED * rate, TRIED)})


def prior_of(given: tuple[float, float] | str | None) -> Prior | str:
    """A prior as it is given to `fit`: itself, or `RATE` or `CHOSEN`, which follow from a log."""
    if given is None or given in (RATE, CHOSEN):
        return given or Prior()
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return pseudo_counts(*given)
    expected = f"{RATE!r}, {CHOSEN!r}, (prior, mean), or None"
    raise InputError(f"{given!r}", field="prior", expected=expected)
