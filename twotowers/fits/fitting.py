"""`fit`, for click models and for towers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from twotowers.errors import InputError, check_options, check_range
from twotowers.files.progress import doing
from twotowers.fits.defaults import PRIOR
from twotowers.fits.fit import Fit
from twotowers.fits.held_out import CHOSEN, RATE, chosen_prior, prior_of, rate_prior
from twotowers.fits.models import is_fitted, model_of
from twotowers.fits.reduction import reduced
from twotowers.fitting.em import fit_counts, fit_em
from twotowers.fitting.estimates import Estimate
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics, Totals
from twotowers.logs.click_log import MOST_POSITIONS, OF_CLICKS, ClickLog, Trained, as_log
from twotowers.models.protocol import ClickModel

if TYPE_CHECKING:
    from twotowers.fits.towers import LogTowers
    from twotowers.simulations.clicks import SimulatedClicks
    from twotowers.simulations.towers import TowerFit, TwoTower

TOLERANCE = 1e-10
"""EM stops when an iteration gains no larger a share of the log-likelihood."""


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
    return fitter(model, prior, positions, iterations, tolerance).fit(as_log(log))


@dataclass(frozen=True)
class Fitter:
    """A click model and how to fit it, all of it checked. `fitter` makes one.

    The prior may be the name of one that follows from the log; positions are those of the log if
    None.
    """

    name: str
    model: ClickModel
    prior: Prior | str
    positions: int | None
    iterations: int
    tolerance: float

    def fit(self, log: ClickLog) -> Fit:
        """Read a log, as far as it is not read yet, and fit the model."""
        prior = self.prior
        doing(f"fitting {self.name}")
        if prior == CHOSEN:
            prior = chosen_prior(log, self.name, self.model, self.positions, self._estimate)
        needed = reduced(log, self.name, self.model, self.positions)
        if prior == RATE:
            prior = rate_prior(self.model, needed.rates)
        assert isinstance(prior, Prior)
        estimate = self._estimate(needed.statistics, prior)
        return Fit(
            self.name, self.model, needed.positions, estimate, needed.pairs, log.kind, log=log
        )

    def _estimate(self, statistics: Statistics | Totals, prior: Prior) -> Estimate:
        if self.model.counts is not None:
            return fit_counts(statistics, prior=prior)
        assert isinstance(statistics, Statistics)  # Totals are of models that are counted.
        how = {"iterations": self.iterations, "tolerance": self.tolerance}
        return fit_em(statistics, prior=prior, **how)


def fitter(
    model: str | type[ClickModel] | ClickModel,
    prior: tuple[float, float] | str | None = PRIOR,
    positions: int | None = None,
    iterations: int = 10_000,
    tolerance: float = TOLERANCE,
) -> Fitter:
    """The arguments of `fit_click_model` but for the log, checked before a log is read."""
    name, chosen = model_of(model)
    if not is_fitted(chosen):
        raise InputError(
            f"{name} has neither counts nor expectations",
            field="model",
            expected="a model that counting or EM fits",
        )
    if positions is not None:
        check_range(positions, field="positions", low=1, high=MOST_POSITIONS, whole=True)
    check_range(iterations, field="iterations", low=1, high=10**9, whole=True)
    check_range(tolerance, field="tolerance", low=0, high=1)
    return Fitter(name, chosen, prior_of(prior), positions, iterations, tolerance)
