"""What compressed tables cost: seconds of training by gradient descent on a stand-in of WSCD-2012.

    .venv/bin/python -m benchmarks.compression [--pages 200000] [--models MODEL ...]

Half of the pages are trained on, as in Figures 5.2 and 5.3. Printed per tower are the numbers of a
table, the epochs until early stopping, and the processor's seconds of an epoch and of all of them,
without compilation: what other processes do changes them little.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import jax
from flax import nnx

from benchmarks.worlds import PAGE, wscd
from twotowers.experiment.kinds import build_model
from twotowers.fitting.gradient import FitSettings, fit
from twotowers.methods.descent import session_loss
from twotowers.models.names import MODELS
from twotowers.splits import SPLITS
from twotowers.towers.baseline import BaselineTower
from twotowers.towers.hashed import HashedTower
from twotowers.towers.page_towers import PageTowers
from twotowers.towers.quotient_remainder import QuotientRemainderTower

BATCH = 512
TOWERS = {
    "full": BaselineTower,
    **{f"hashed, {ratio} times": partial(HashedTower, ratio=ratio) for ratio in (2, 10, 100)},
    "quotient and remainder, 10 times": partial(QuotientRemainderTower, ratio=10),
}


def main(pages: int, models: list[str]) -> None:
    """Train and print."""
    log, splits = wscd(pages, seed=1)
    losses = [session_loss(splits[split], [(0, "none")]) for split in SPLITS[:2]]
    pairs, steps = len(log.ids), len(log.sessions["train"].query) // BATCH
    print(f"{pages:,} pages, {pairs:,} pairs")
    settings = {"learning_rate": 0.01, "weight_decay": 1e-4, "batch": BATCH, "steps": steps,
                "patience": 1, "min_delta": 1e-5}  # fmt: skip
    for name in models:
        for title, tower in TOWERS.items():
            made = partial(PageTowers, build_model(MODELS[name]), tower, pairs, PAGE)
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["ubm", "dbn"])
    main(**vars(parser.parse_args()))
