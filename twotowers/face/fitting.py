"""`fit`, for click models and for towers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from twotowers.errors import InputError, check_options
from twotowers.face.fits import Fit, fit_click_model
from twotowers.face.logs import OF_CLICKS, Trained
from twotowers.models.protocol import ClickModel

if TYPE_CHECKING:
    from twotowers.face.simulation import SimulatedClicks
    from twotowers.face.towers import TowerFit, TwoTower


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
    model: str | type[ClickModel] | ClickModel = ...,
    *,
    prior: tuple[float, float] | str | None = ...,
    positions: int | None = ...,
    iterations: int = ...,
    tolerance: float = ...,
) -> Fit: ...
def fit(log: Any, model: Any = "ubm", **options: Any) -> Fit | TowerFit:
    """Fit a click model to a log, or two towers to simulated clicks.

    Args:
        log: a log of `read_log`, or what `read_log` takes; for two towers, clicks of `simulate`.
        model: a click model or its name (see `fit_click_model`), or a `TwoTower`.
        options: those of `fit_click_model`: prior, positions, iterations, tolerance; or those of
            `fit_towers`: method, training, seeds.

    Raises:
        InputError: see both; or an option is unknown, or a model does not suit the log.

    Example:
        >>> import pyarrow as pa
        >>> pages = {"documents": [["a", "b"], ["b", "a"]], "clicks": [[1, 0], [1, 0]]}
        >>> fit(pa.table(pages), "pbm")
        <pbm fitted to 2 query-document pairs>
    """
    simulated, towers = (isinstance(each, Trained) for each in (log, model))
    if simulated != towers:
        raise InputError(
            f"{model!r} was given for {log!r}" if simulated else f"{model!r} needs features",
            field="model",
            expected=f"a `TwoTower`, or {OF_CLICKS} for a click model"
            if simulated
            else "clicks of `simulate`, or a click model",
        )
    if not simulated:
        check_options(options, fit_click_model, field="fit")
        return fit_click_model(log, model, **options)
    from twotowers.face.towers import fit_towers  # here: click models need none of it

    check_options(options, fit_towers, field="fit")
    return fit_towers(log, model, **options)
