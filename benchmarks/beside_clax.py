"""Ten click models beside CLAX, in one run on one log; in CLAX's environment, of `benchmarks.pbm`.

CLAX gets the pages as arrays. Ours reads them from the file.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.clickmodels import LENGTH, fits_at, log_of, progress, time_fits
from benchmarks.measure import child
from benchmarks.pbm import clax_python
from twotowers.logs.page_arrays import read_page_arrays
from twotowers.models.names import MODELS

SIZES = {
    "full": {"sessions": 1_000_000, "held_out": 250_000, "clax": True},
    "quick": {"sessions": 2_000, "held_out": 500, "clax": False},
}
TRAINING = {"batch": 8192, "learning_rate": 0.01, "epochs": 100, "limit": 15.0}
"""The authors' own settings for WSCD-2012. `limit` is ours: training ends after the epoch in
which so many seconds have passed."""


def run(*, sessions: int, held_out: int, clax: bool) -> Iterator[dict]:
    """Yield one row for each of our fits, and one for each of CLAX's if there is to be any."""
    log = log_of(sessions, held_out)
    arrays = f"{log}/arrays.npz"
    child("benchmarks.beside_clax:write_arrays", log=log, path=arrays)
    for name in MODELS:
        yield from time_fits(log, sessions, [name], converge=False)
        if clax:
            progress(f"training {name} by CLAX")
            peer = child(
                "benchmarks.clax.clickmodels:fit_log",
                python=clax_python(),
                path=arrays,
                name=name,
                **TRAINING,
            )
            yield {"what": "beside CLAX", "model": name, "sessions": sessions, **peer}


def write_arrays(*, log: str, path: str) -> dict:
    """Both files as arrays of pair numbers from 1 and clicks, as CLAX takes them.

    Each document of this log belongs to one query, so the document alone names the pair.
    """
    arrays, documents = {}, []
    for split in ("train", "test"):
        pages = read_page_arrays(f"{log}/{split}.parquet", positions=LENGTH)
        documents.append(pages.ids["document"].to_numpy()[pages.pair])
        arrays[f"{split}.clicks"] = pages.clicks
    number = pd.factorize(np.concatenate(documents).ravel())[0].astype(np.int32) + 1
    train, test = np.split(number.reshape(-1, LENGTH), [len(documents[0])])
    np.savez(path, **arrays, **{"train.pair": train, "test.pair": test})
    return {"pairs": int(number.max())}


def compared(rows: list[dict]) -> list[dict]:
    """CLAX's rows, to which our seconds on the same pages are added."""
    found = []
    for row in rows:
        if row["what"] == "beside CLAX":
            ours = fits_at(rows, row["sessions"])[row["model"]]
            reached = ours["conditional"] <= row["conditional"]
            found.append(
                row
                | {"own": ours["seconds"], "own_conditional": ours["conditional"]}
                | {"reached": reached, "faster": row["seconds"] / ours["seconds"]}
            )
    return found
