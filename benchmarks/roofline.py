"""Highest rates of one core of this machine: products, bytes moved, losses of cells."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import ONE_THREAD, best_seconds, child
from benchmarks.scaling import BASE
from twotowers.losses.cells import additive_losses

SIZES = {
    "full": {"side": 2048, "copied": 2**26, "cells": 2**20, "rows": 800},
    "quick": {"side": 128, "copied": 2**16, "cells": 2**12, "rows": 64},
}


def run(**size: int) -> Iterator[dict]:
    """Yield the one row."""
    yield child("benchmarks.roofline:rates", environment=ONE_THREAD, **size)


def rates(*, side: int, copied: int, cells: int, rows: int) -> dict:
    """GFLOP/s of float32 products, GB/s read and written, 10^9 losses and gradients per second.

    Args:
        side: of the square matrices to multiply, large enough for the best rate.
        copied: float32 numbers of the copied array, more than any cache holds.
        cells: number of losses or gradients, few enough to stay in cache.
        rows: documents of a step of the deep tower. Its first layer is a narrow product.
    """
    square = jnp.ones((side, side), jnp.float32)
    tall, narrow = jnp.ones((rows, 136), jnp.float32), jnp.ones((136, 32), jnp.float32)
    source, target = np.ones(copied, np.float32), np.empty(copied, np.float32)
    documents = BASE["documents"]
    lists = cells // documents**2
    relevance = jnp.linspace(-5, 5, lists * documents).reshape(lists, documents)
    shown = jnp.ones((lists, documents, documents), jnp.uint8)
    counts = jnp.zeros(documents), shown, shown
    product = jax.jit(jnp.matmul)
    value, slope = (
        jax.jit(function)
        for function in (
            additive_losses,
            jax.grad(lambda *arguments: additive_losses(*arguments).sum(), argnums=(0, 1)),
        )
    )
    repeats = 20

    def work(function, *arguments):
        def call():
            for _ in range(repeats):
                result = function(*arguments)
            jax.block_until_ready(result)

        call()
        return best_seconds(call) / repeats

    return {
        "gemm_gflops": 2 * side**3 / work(product, square, square) / 1e9,
        "narrow_gflops": 2 * rows * 136 * 32 / work(product, tall, narrow) / 1e9,
        "copy_gb_s": 2 * source.nbytes / best_seconds(lambda: np.copyto(target, source)) / 1e9,
        "losses_g_s": shown.size / work(value, relevance, *counts) / 1e9,
        "gradients_g_s": shown.size / work(slope, relevance, *counts) / 1e9,
    }
