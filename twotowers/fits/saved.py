"""Fits that were saved, read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.errors import InputError
from twotowers.files.columns import check_types
from twotowers.files.tables import opened
from twotowers.fits.fit import Fit
from twotowers.fits.models import model_of
from twotowers.fits.tables import COLUMNS, places
from twotowers.fitting.em import Estimate
from twotowers.fitting.prior import Prior
from twotowers.models.protocol import PER_DOCUMENT, PER_JUMP, PER_POSITION

if TYPE_CHECKING:
    from twotowers.fits.towers import LogTowers


def load(path: str | Path) -> Fit | LogTowers:
    """A fit that `Fit.save` or `LogTowers.save` wrote.

    Raises:
        InputError: the file cannot be read, is no saved fit, or is one of an unknown model.
    """
    with opened(path) as file:
        metadata = file.metadata.metadata or {}
        about = {name.decode(): value for name, value in metadata.items()}
        if "towers" in about:
            from twotowers.fits.log_fits import load_towers  # here: click models need no JAX

            return load_towers(path, json.loads(about["towers"]), file.read())
        check_types(file.schema_arrow, COLUMNS, path)
        if not {"model", "positions", "prior"} <= about.keys():
            raise InputError("its metadata has no model", path=path, expected="a saved fit")
        table = file.read()
    name, chosen = model_of(about["model"].decode())
    saved = json.loads(about["prior"])
    of_parts = {part: tuple(numbers) for part, numbers in saved.pop("parts", {}).items()}
    positions, prior = int(about["positions"]), Prior(**saved, parts=of_parts)
    of_documents = table.filter(pc.is_valid(table["query"])).select(["query", "document"])
    pairs = of_documents.group_by(["query", "document"]).aggregate([])
    sizes = {PER_DOCUMENT: len(pairs), PER_POSITION: positions, PER_JUMP: positions**2}
    parameters: dict[str, np.ndarray] = {}
    trials: dict[str, np.ndarray] = {}
    for part, kind in chosen.parts.items():
        rows = table.filter(pc.equal(table["part"], part)).to_pandas()
        if own := places(kind, sizes.get(kind, 1), pairs):
            rows = pa.table(own).to_pandas().merge(rows, how="left", on=[*own])
        else:
            rows = rows.reindex([0])
        parameters[part] = rows["probability"].to_numpy()
        trials[part] = rows["trials"].fillna(0).to_numpy()
    estimate = Estimate(parameters, trials, prior=prior)
    return Fit(name, chosen, positions, estimate, pairs, saved=table)


def load_click_model(path: str | Path) -> Fit:
    """As `load`, of a fit that counts or EM made, since towers are refused."""
    saved = load(path)
    if not isinstance(saved, Fit):
        raise InputError("it has towers", path=path, expected="a fit of a click model")
    return saved
