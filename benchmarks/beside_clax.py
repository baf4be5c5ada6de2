"""Ten click models beside CLAX, in one run on one log; in an environment of CLAX's own.

CLAX trains until it stops by itself. Its conditional perplexity of held-out pages is the target of
ours: EM starts anew with the next of TOLERANCES, the loosest first, until it is reached. The last
of them stands for EM's optimum, whose perplexity is stated, too. Both sides start from a file.
Priors are chosen before, on training pages that are held out, as CLAX's settings were chosen by its
authors; neither choice is timed.
"""

from __future__ import annotations

import subprocess
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.clickmodels import CONVERGED, LENGTH, TOLERANCE, estimated, log_of, progress
from benchmarks.measure import CACHE, ROOT, child
from twotowers.fits.fit import Fit, means_of
from twotowers.fits.fitting import fit_click_model
from twotowers.fits.models import model_of
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics
from twotowers.logs.log import Log
from twotowers.logs.page_arrays import page_arrays
from twotowers.models.names import MODELS

SIZES = {
    "full": {"sessions": 1_000_000, "held_out": 250_000, "clax": True},
    "quick": {"sessions": 2_000, "held_out": 500, "clax": False},
}
TRAINING = {"batch": 8192, "learning_rate": 0.01, "epochs": 100}
"""The authors' own settings for WSCD-2012."""
REQUIREMENTS = ROOT / "benchmarks" / "clax" / "requirements.txt"
TOLERANCES = (1e-2, 3e-3, 1e-3, TOLERANCE, CONVERGED, 1e-8)


def run(*, sessions: int, held_out: int, clax: bool) -> Iterator[dict]:
    """Yield one row for each model: our fit, and CLAX's if there is to be any."""
    log = log_of(sessions, held_out)
    child("benchmarks.beside_clax:write_files", log=log)
    python = python_of_clax() if clax else None
    for name in MODELS:
        peer = {}
        if clax:
            progress(f"training {name} by CLAX")
            fit_log = "benchmarks.clax.clickmodels:fit_log"
            found = child(fit_log, python=python, log=log, name=name, **TRAINING)
            peer = {f"clax {key}": value for key, value in found.items()}
        progress(f"fitting {name} to {sessions:,} sessions")
        chosen = child("benchmarks.beside_clax:choose", log=log, name=name)
        ours = {"log": log, "name": name, "prior": chosen["prior"]}
        ours["wanted"] = peer.get("clax conditional")
        row = {"what": "beside CLAX", "model": name, "sessions": sessions}
        yield row | chosen | child("benchmarks.beside_clax:fit", **ours) | peer


def python_of_clax() -> Path:
    """The interpreter of CLAX's own environment, which is made once."""
    folder = CACHE / "clax"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        progress("making the environment of CLAX (6 GB, some minutes)")
        venv.create(folder, with_pip=True, clear=True)
        install = ("install", "--quiet", "--require-hashes", "--requirement", REQUIREMENTS)
        subprocess.run([python, "-m", "pip", *install], check=True)
        (folder / "installed").touch()
    return python


def write_files(*, log: str) -> dict:
    """Both files for CLAX: numbers of pairs from 1, and clicks.

    Each document of this log belongs to one query, so the document alone names the pair.
    """
    clicks, documents = {}, []
    for split in ("train", "test"):
        pages = page_arrays(Log.read(f"{log}/{split}.parquet"), positions=LENGTH)
        documents.append(pages.ids["document"].to_numpy()[pages.pair])
        clicks[split] = pages.clicks
    number = pd.factorize(np.concatenate(documents).ravel())[0].astype(np.int32) + 1
    train, test = np.split(number.reshape(-1, LENGTH), [len(documents[0])])
    for split, pair in (("train", train), ("test", test)):
        write_pages(f"{log}/{split}-clax.parquet", query_doc_ids=pair, clicks=clicks[split])
    return {"pairs": int(number.max())}


def write_pages(path: str, **columns: np.ndarray) -> None:
    """Pages as CLAX reads them: columns [pages, LENGTH]."""
    lists = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), LENGTH)
        for name, values in columns.items()
    }
    pq.write_table(pa.table(lists), path)


def choose(*, log: str, name: str) -> dict:
    """The prior that predicts a fifth of the training pages best (`fit --prior chosen`)."""
    file = f"{log}/train.parquet"
    fitted = fit_click_model(file, name, prior="chosen", positions=LENGTH, tolerance=TOLERANCE)
    prior = fitted.estimate.prior
    return {"prior": {"": (prior.successes, prior.trials), **prior.parts}}


def fit(*, log: str, name: str, prior: dict, wanted: float | None) -> dict:
    """Seconds from the file to the first parameters that reach a held-out conditional perplexity.

    If no tolerance reaches it, the seconds are those of the last one."""
    model, parts = model_of(name)[1], dict(prior)
    imagined = Prior(*parts.pop(""), {part: tuple(each) for part, each in parts.items()})
    test, found = page_arrays(Log.read(f"{log}/test.parquet"), positions=LENGTH), {}
    for tolerance in TOLERANCES:
        start = time.perf_counter()
        statistics, pairs = Statistics.of_log(model, Log.read(f"{log}/train.parquet"), LENGTH)
        estimate = estimated(statistics, imagined, tolerance)
        found |= {"file": time.perf_counter() - start, "pairs": len(pairs)}
        fitted = Fit(name, model, LENGTH, estimate, pairs)
        found |= means_of(*fitted.losses(test))
        if model.counts is not None:
            break
        found |= {"tolerance": tolerance, "cycles": len(estimate.history) - 1}
        if wanted is None or found["conditional"] <= wanted:
            break
    if model.counts is None:
        if tolerance != TOLERANCES[-1]:
            estimate = estimated(statistics, imagined, TOLERANCES[-1])
        last = Fit(name, model, LENGTH, estimate, pairs)
        found["optimum"] = means_of(*last.losses(test))["conditional"]
    return found


def compared(rows: list[dict]) -> list[dict]:
    """The rows with CLAX, to which ratios are added; and whether ours reached CLAX's perplexity.

    A CLAX that did not stop by itself has none that could be reached.
    """
    found = []
    for row in (row for row in rows if "clax conditional" in row):
        ended = row["clax ended"]
        row = row | {"reached": row["conditional"] <= row["clax conditional"] if ended else None}
        found.append(row | ({"faster file": row["clax file"] / row["file"]} if ended else {}))
    return found
