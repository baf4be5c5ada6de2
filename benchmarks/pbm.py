"""The position-based model to the same loss: ours from counts, and `clax-models`.

CLAX needs older packages, so it has an environment of its own. `make bench PART=pbm` makes it
from `benchmarks/clax/requirements.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks import fits
from benchmarks.measure import ROOT, child, own_python
from benchmarks.worlds import SEED, read_log, write_log
from twotowers.models.position_based import PositionBased
from twotowers.rankers.training import LinearRanker
from twotowers.towers.two_towers import two_towers

SIZES = {
    "full": {"sessions": 1_000_000, "queries": 3000, "epochs": 50, "clax": True},
    # CLAX installs PyTorch, which has several GB.
    "quick": {"sessions": 4000, "queries": 60, "epochs": 2, "clax": False},
}
REQUIREMENTS = ROOT / "benchmarks" / "clax" / "requirements.txt"


def run(*, sessions: int, queries: int, epochs: int, clax: bool) -> Iterator[dict]:
    """Yield a row per tower and method."""
    for tower in fits.TOWERS:
        log = str(write_log(tower, queries, sessions, fits.TEMPERATURE))
        size = {"tower": tower, "log": log, "epochs": epochs}
        methods = [("counts", {"target": "benchmarks.pbm:fit_counts", **size})]
        if clax:
            training = {**size, "training": fits.REPLAY, "seed": SEED}
            target = {"target": "benchmarks.clax.replay:fit_log", "python": str(clax_python())}
            methods.append(("CLAX", target | training))
        for method, arguments in methods:
            yield {"tower": tower, "method": method, "sessions": sessions, **child(**arguments)}


def fit_counts(*, tower: str, log: str, epochs: int) -> dict:
    """Fit the file of a log from counts. Returns what `benchmarks.replay.replay` returns."""
    data = [read_log(log, split) for split in ("train", "validation")]
    _, documents, width = data[0][0].shape
    model = two_towers(
        # CLAX's linear tower has an intercept. In a sum it would only shift the position bias; in
        # a product it does not.
        LinearRanker if tower == "linear" else tower,
        width=width,
        pairs=0,
        positions=documents,
        seed=SEED,
        model=PositionBased(),
    )
    settings = fits.counts_settings(tower, epochs)
    objectives = [fits.from_counts(*split) for split in data]
    return fits.timed_fit(model, objectives, settings, seed=SEED)


def clax_python() -> Path:
    """The interpreter of CLAX's environment. The environment is made once."""
    install = ("--require-hashes", "--requirement", REQUIREMENTS)
    return own_python("clax", "CLAX (6 GB, some minutes)", *install)
