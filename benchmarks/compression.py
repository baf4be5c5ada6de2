"""What compressed tables cost: seconds of training by gradient descent on a stand-in of WSCD-2012.

    .venv/bin/python -m benchmarks.compression [PAGES [MODEL ...]]

Half of the pages are trained on, as in Figures 5.2 and 5.3. Printed per tower are the numbers of a
table, the epochs until early stopping, and the processor's seconds of an epoch and of all of them,
without compilation: what other processes do changes them little.
"""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import jax
from flax import nnx

from twotowers import SPLITS
from twotowers.experiment.kinds import build_model
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.logs.observed_pages import observed_pages
from twotowers.logs.sessions import write_sessions
from twotowers.methods.likelihood import session_loss
from twotowers.methods.task import Split
from twotowers.models.names import MODELS
from twotowers.models.page_towers import PageTowers
from twotowers.standins.logs import generate_pages
from twotowers.towers.baseline import BaselineTower
from twotowers.towers.hashed import HashedTower
from twotowers.towers.quotient_remainder import QuotientRemainderTower

BATCH = 512
SHARES = dict(zip(SPLITS, (0.5, 0.25, 0.25), strict=True))
TOWERS = {
    "full": BaselineTower,
    **{f"hashed, {ratio} times": partial(HashedTower, ratio=ratio) for ratio in (2, 10, 100)},
    "quotient and remainder, 10 times": partial(QuotientRemainderTower, ratio=10),
}


def main(pages: int, models: list[str]) -> None:
    """Train and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pages.parquet"
        write_sessions(path, generate_pages("wscd", sessions=pages, seed=1))
        log = observed_pages(path, SHARES, positions=10, seed=1)
    losses = [
        session_loss(
            Split(log.pair, log.where, None, None, sessions=[log.sessions[split]]), [(0, {})]
        )
        for split in SPLITS[:2]
    ]
    pairs, steps = len(log.ids), len(log.sessions["train"].query) // BATCH
    print(f"{pages:,} pages, {pairs:,} pairs")
    settings = {"learning_rate": 0.01, "weight_decay": 1e-4, "batch": BATCH, "steps": steps,
                "patience": 1, "min_delta": 1e-5}  # fmt: skip
    for name in models or ["ubm", "dbn"]:
        for title, tower in TOWERS.items():
            made = partial(PageTowers, build_model(MODELS[name]), tower, pairs, 10)
            seconds, epochs = {}, {}
            # The first epoch also compiles.
            for most in (1, 1, 100):
                model = made(rngs=nnx.Rngs(0))
                start = time.process_time()
                found = fit(model, *losses, FitSettings(epochs=most, **settings), lanes=1, seed=1)
                seconds[most], epochs[most] = time.process_time() - start, int(found.epochs[0])
            table = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model.towers, nnx.Param)))
            print(
                f"{name}, {title}: {table:,} numbers, {epochs[100]} epochs, "
                f"{seconds[100] / epochs[100]:.2f} s each, {seconds[100]:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    pages, *models = sys.argv[1:] or ["200_000"]
    main(int(pages), models)
