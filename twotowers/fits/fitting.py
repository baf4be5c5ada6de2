"""`fit`, for click models and for towers; and priors that follow from the log.

A probability that is tried a few times needs a prior. It stands for the unknown law of relevance,
so a wrong one is expensive: where documents are rare and rarely relevant, one imagined click in two
trials takes most of the examination away. The prior `rate` has the mean of the log instead, and
`chosen` is the one that predicts pages best that are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from twotowers.errors import InputError, check_options, check_range
from twotowers.files.progress import doing
from twotowers.fits.defaults import PRIOR
from twotowers.fits.fit import Fit, means_of
from twotowers.fits.models import fitted_model
from twotowers.fits.reduction import reduced
from twotowers.fitting.em import Estimate, fit_counts, fit_em
from twotowers.fitting.prior import Prior, pseudo_counts
from twotowers.logs.click_log import MOST_POSITIONS, OF_CLICKS, ClickLog, Trained, as_log
from twotowers.models.protocol import PER_DOCUMENT, ClickModel, of_documents

if TYPE_CHECKING:
    from twotowers.fits.towers import LogTowers
    from twotowers.simulations.clicks import SimulatedClicks
    from twotowers.simulations.towers import TowerFit, TwoTower

TOLERANCE = 1e-10
"""EM stops when an iteration gains no larger a share of the log-likelihood."""
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


@overload
def fit(
    log: SimulatedClicks,
    model: TwoTower,
    *,
    method: str | Callable[..., Any] | Mapping[str, Any] = ...,
    training: Mapping[str, Any] | None = ...,
    seeds: Sequence[int] = ...,
) -> TowerFit: ...
@overload
def fit(
    log: object,
    model: TwoTower,
    *,
    features: object = ...,
    bias: Sequence[str] = ...,
    method: str | Callable[..., Any] | Mapping[str, Any] = ...,
    training: Mapping[str, Any] | None = ...,
    seeds: Sequence[int] = ...,
    positions: int | None = ...,
    checkpoint: str | Path | None = ...,
) -> LogTowers: ...
@overload
def fit(
    log: object,
    model: str | type[ClickModel] | ClickModel = ...,
    *,
    prior: tuple[float, float] | str | None = ...,
    positions: int | None = ...,
    iterations: int = ...,
    tolerance: float = ...,
) -> Fit: ...
def fit(log: Any, model: Any = "ubm", **options: Any) -> Fit | LogTowers | TowerFit:
    """Fit a click model or two towers to a log, or two towers to simulated clicks.

    Args:
        log: a log of `read_log`, or what `read_log` takes; or clicks of `simulate`.
        model: a click model or its name (see `fit_click_model`), or a `TwoTower`.
        options: of a click model: prior, positions, iterations, tolerance (`fit_click_model`); of
            towers on a log: features, bias, method, training, seeds, positions, checkpoint
            (`fit_log_towers`); of towers on simulated clicks: method, training, seeds
            (`fit_towers`).

    Raises:
        InputError: see these; or an option is unknown, or a model does not suit the log.

    Example:
        >>> import pyarrow as pa
        >>> pages = {"documents": [["a", "b"], ["b", "a"]], "clicks": [[1, 0], [1, 0]]}
        >>> fit(pa.table(pages), "pbm")
        <pbm fitted to 2 query-document pairs>
    """
    simulated, towers = (isinstance(each, Trained) for each in (log, model))
    if simulated and not towers:
        raise InputError(
            f"{model!r} was given for {log!r}",
            field="model",
            expected=f"a `TwoTower`, or {OF_CLICKS} for a click model",
        )
    fitting: Callable[..., Any] = fit_click_model
    if simulated:
        from twotowers.simulations.towers import fit_towers as fitting  # JAX, where it is needed
    elif towers:
        from twotowers.fits.log_fits import fit_log_towers as fitting
    check_options(options, fitting, field="fit")
    return fitting(log, model, **options)


def fit_click_model(
    log: object,
    model: str | type[ClickModel] | ClickModel = "ubm",
    *,
    prior: tuple[float, float] | str | None = PRIOR,
    positions: int | None = None,
    iterations: int = 10_000,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Fit a click model to a log: in closed form if it can be, else by EM.

    Args:
        log: a log of `read_log`, or what `read_log` takes.
        model: a name ("gctr", "rctr", "dctr", "pbm", "cm", "ubm", "dcm", "ccm", "dbn", "sdbn", or
            that of a file of twotowers/models), or a click model.
        prior: (prior, mean): it adds prior - 1 successes in (prior - 1) / mean trials to every
            probability. None is none. "rate", the default, imagines two trials of every
            probability, of which those of attraction succeed as often as the first position is
            clicked, and the others half of the time. "chosen" chooses mean and trials for
            documents on a fifth of the pages, held out. It matters where documents are seen a few
            times.
        positions: of the longest page that the fit shall predict; the longest of the log if None.
        iterations, tolerance: of EM, which stops when an iteration gains no larger a share of the
            log-likelihood.

    Returns:
        the fitted model.

    Raises:
        InputError: the model is unknown, needs pages and the log is counted, or can be fitted by
            gradient descent only; an argument is out of range; a row of the log is wrong; or no
            document was clicked.

    Example:
        >>> import pyarrow as pa
        >>> pages = {"documents": [["a", "b"], ["b", "a"]], "clicks": [[1, 0], [1, 0]]}
        >>> fitted = fit_click_model(pa.table(pages), "pbm")
        >>> fitted.examination()["estimate"].to_numpy().round(2).tolist()
        [0.75, 0.25]
    """
    name, model = fitted_model(model)
    known = prior_of(prior)
    if positions is not None:
        check_range(positions, field="positions", low=1, high=MOST_POSITIONS, whole=True)
    check_range(iterations, field="iterations", low=1, high=10**9, whole=True)
    check_range(tolerance, field="tolerance", low=0, high=1)
    log = as_log(log)
    doing(f"fitting {name}")
    estimator: Callable[..., Estimate] = fit_counts
    if model.counts is None:
        estimator = partial(fit_em, iterations=iterations, tolerance=tolerance)
    if known == CHOSEN:
        known = chosen_prior(log, name, model, positions, estimator)
    statistics, pairs, longest, rates = reduced(log, name, model, positions)
    if known == RATE:
        known = rate_prior(model, rates)
    assert isinstance(known, Prior)
    estimate = estimator(statistics, prior=known)
    return Fit(name, model, longest, estimate, pairs, log.kind, log=log)


def chosen_prior(
    log: ClickLog,
    name: str,
    model: ClickModel,
    positions: int | None,
    estimator: Callable[..., Estimate],
) -> Prior:
    """Choose the prior of each part per document, one part after the other.

    A fifth of the pages is held out, and each prior is judged by the conditional perplexity of
    their clicks, the mean over positions. Nelder and Mead's search finds mean and trials together.
    Other parts keep one success in two trials: they have few probabilities, so their prior matters
    little.
    """
    longest = log.longest if positions is None else positions
    parts = log.split({"train": 1 - HELD_OUT, "test": HELD_OUT})
    statistics, pairs, *_ = reduced(parts["train"], name, model, longest)
    chosen: dict[str, tuple[float, float]] = {}
    pages = None
    for part in of_documents(model.parts):

        def loss(at: np.ndarray, part: str = part) -> float:
            nonlocal pages
            prior = Prior(1, TRIED, {**chosen, part: imagined(at)})
            fit = Fit(name, model, longest, estimator(statistics, prior=prior), pairs)
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

    >>> from twotowers.models.position_based import PositionBased
    >>> rate_prior(PositionBased(), (0.2, 0.1)).of("attraction")
    (0.4, 2.0)
    """
    if model.parts.get("attraction") != PER_DOCUMENT:
        return Prior(1.0, TRIED)
    rate = min(max(rates[len(model.parts) == 1], LEAST_RATE), 1 - LEAST_RATE)
    return Prior(1.0, TRIED, {"attraction": (TRIED * rate, TRIED)})


def prior_of(given: tuple[float, float] | str | None) -> Prior | str:
    """The prior that `fit` was given; or `RATE` or `CHOSEN`, the name of one that follows later."""
    if given is None or given in (RATE, CHOSEN):
        return given or Prior()
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return pseudo_counts(*given)
    expected = f"{RATE!r}, {CHOSEN!r}, (prior, mean), or None"
    raise InputError(f"{given!r}", field="prior", expected=expected)
