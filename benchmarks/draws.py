"""Draws of dropout: the library's hash of a place and a key beside the generators of jax.random.

Time is that of the processor. Other work on the machine lengthens it too, so compare ratios of one
run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp

from benchmarks.measure import ONE_THREAD, child
from twotowers.towers.parts import drop

SIZES = {"full": {"entries": 2**16, "repeats": 1000}, "quick": {"entries": 2**12, "repeats": 2}}
RATE = 0.3
GENERATORS = {"Threefry": "threefry2x32", "XLA's own (Philox)": "rbg"}
HASH = "ours, a hash"


def run(*, entries: int, repeats: int) -> Iterator[dict]:
    """Yield a row per way to draw: nanoseconds per entry, and how many times ours that is."""
    took = child(
        "benchmarks.draws:time_draws", environment=ONE_THREAD, entries=entries, repeats=repeats
    )
    for name in (HASH, *GENERATORS):
        yield {"what": name, "ns": took[name], "ratio": took[name] / took[HASH]}


def time_draws(*, entries: int, repeats: int) -> dict:
    """Nanoseconds to drop an entry, by way to draw."""
    inputs = jnp.ones(entries)

    def bernoulli(inputs, rate, key):
        return jnp.where(jax.random.bernoulli(key, 1 - rate, inputs.shape), inputs / (1 - rate), 0)

    ways = {HASH: (drop, "threefry2x32")}
    ways |= {name: (bernoulli, generator) for name, generator in GENERATORS.items()}
    found = {}
    for name, (way, generator) in ways.items():

        @jax.jit
        def program(key, inputs, way=way):
            def step(number, inputs):
                return way(inputs, RATE, jax.random.fold_in(key, number)) + 1

            return jax.lax.fori_loop(0, repeats, step, inputs)

        key = jax.random.key(0, impl=generator)
        program(key, inputs).block_until_ready()
        start = time.process_time()
        program(key, inputs).block_until_ready()
        found[name] = (time.process_time() - start) / repeats / entries * 1e9
    return found
