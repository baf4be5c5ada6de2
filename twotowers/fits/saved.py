"""Fits that were saved, read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from twotowers.errors import InputError
from twotowers.experiment.components import components
from twotowers.files.columns import check_types
from twotowers.files.tables import opened
from twotowers.fits.fit import Fit
from twotowers.fits.models import model_of
from twotowers.fits.tables import COLUMNS, places_of
from twotowers.fitting.estimates import Estimate
from twotowers.fitting.prior import Prior
from twotowers.models.names import MODELS
from twotowers.models.protocol import PER_DOCUMENT, PER_JUMP, PER_POSITION, ClickModel

if TYPE_CHECKING:
    from twotowers.fits.towers import LogTowers


def load(path: str | Path, *, model: ClickModel | None = None) -> Fit | LogTowers:
    """A fit that `Fit.save` or `LogTowers.save` wrote.

    Args:
        path: the file.
        model: the click model, for one that is no file of twotowers/models.

    Raises:
        InputError: the file cannot be read, is no such file, or is a fit of another model.
    """
    with opened(path) as file:
        if towers := (file.metadata.metadata or {}).get(b"towers"):
            from twotowers.fits.log_fits import load_towers  # here: click models need no JAX

            return load_towers(path, json.loads(towers), file.read())
    return load_click_model(path, model=model)


def load_click_model(path: str | Path, *, model: ClickModel | None = None) -> Fit:
    """A fit of a click model; see `load`."""
    with opened(path) as file:
        if b"towers" in (file.metadata.metadata or {}):
            raise InputError("it has towers", path=path, expected="a fit of a click model")
        check_types(file.schema_arrow, COLUMNS, path)
        about = file.metadata.metadata or {}
        name = about.get(b"model", b"").decode()
        if model is None and name not in MODELS and name not in components("models"):
            raise InputError(
                f"{name!r} is no model", path=path, field="model", expected=", ".join(MODELS)
            )
        if missing := [key for key in ("positions", "prior") if key.encode() not in about]:
            raise InputError(
                "is missing in the metadata", path=path, field=missing[0], expected="a saved model"
            )
        table = file.read()
    saved = json.loads(about[b"prior"])
    own = {part: tuple(numbers) for part, numbers in saved.pop("parts", {}).items()}
    positions, prior = int(about[b"positions"]), Prior(**saved, parts=own)
    of_documents = table.filter(pc.is_valid(table["query"])).select(["query", "document"])
    pairs = of_documents.group_by(["query", "document"]).aggregate([])
    sizes = {PER_DOCUMENT: len(pairs), PER_POSITION: positions, PER_JUMP: positions**2}
    given, chosen = model_of(model or name)
    if given != name:
        raise InputError(
            f"the model {given!r} was given, and the fit is of {name!r}",
            path=path,
            field="model",
            expected=f"{name!r}, or none for a file of twotowers/models",
        )
    parameters: dict[str, np.ndarray] = {}
    trials: dict[str, np.ndarray] = {}
    for part, kind in chosen.parts.items():
        rows = table.filter(pc.equal(table["part"], part)).to_pandas()
        if kind == PER_DOCUMENT:
            number = places_of(pairs, rows)
        elif kind == PER_POSITION:
            number = rows["position"] - 1
        elif kind == PER_JUMP:
            number = (rows["position"] - 1) * positions + rows["last_click"]
        else:
            number = np.zeros(len(rows))
        parameters[part] = np.full(sizes.get(kind, 1), np.nan)
        trials[part] = np.zeros(sizes.get(kind, 1))
        parameters[part][np.asarray(number, int)] = rows["probability"]
        trials[part][np.asarray(number, int)] = rows["trials"]
    estimate = Estimate(parameters, trials, prior=prior)
    return Fit(name, chosen, positions, estimate, pairs, saved=table)
