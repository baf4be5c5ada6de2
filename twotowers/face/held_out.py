"""A prior that fits the log: chosen by how well it predicts pages that are held out."""

from __future__ import annotations

from collections.abc import Callable

from twotowers.face.fits import Fit, check_pages
from twotowers.face.logs import ClickLog
from twotowers.face.priors import TRIED
from twotowers.face.reduction import reduced
from twotowers.fitting.estimates import Estimate
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics, Totals
from twotowers.models.protocol import PER_DOCUMENT, ClickModel

MEANS = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5)
"""Means of probabilities of documents that are tried, with two trials each."""
TRIALS = (0.5, 2.0, 8.0, 32.0)
"""Then trials, with the best of the means."""
HELD_OUT = 0.2


def chosen_prior(
    log: ClickLog,
    model_name: str,
    model: ClickModel,
    positions: int | None,
    fitted: Callable[[Statistics | Totals, Prior], Estimate],
) -> Prior:
    """Choose the prior of each part per document, one part after the other.

    A fifth of the pages is held out, and each prior is judged by the log-likelihood of their
    clicks, given the clicks above. Other parts keep one success in two trials: they have few
    probabilities, so their prior matters little.

    Args:
        log: with pages.
        model_name, model, positions: as of a fit.
        fitted: fits the model to statistics with a prior.

    Raises:
        InputError: the log is counted.
    """
    check_pages(log)
    longest = log.stored.longest if positions is None else positions
    parts = log.split({"train": 1 - HELD_OUT, "test": HELD_OUT})
    statistics, pairs, *_ = reduced(parts["train"], model_name, model, longest)
    found: dict[str, tuple[float, float]] = {}
    pages = None
    for part in (part for part, kind in model.parts.items() if kind == PER_DOCUMENT):

        def loss(successes: float, trials: float, part: str = part) -> float:
            nonlocal pages
            prior = Prior(1, TRIED, {**found, part: (successes, trials)})
            fit = Fit(model_name, model, longest, fitted(statistics, prior), pairs)
            pages = fit.arrays(parts["test"]) if pages is None else pages
            return float(fit.losses(pages)[1].sum())

        mean = min(MEANS, key=lambda mean: loss(2 * mean, 2.0))
        trials = min(TRIALS, key=lambda trials: loss(mean * trials, trials))
        found[part] = mean * trials, trials
    return Prior(1, TRIED, found)
