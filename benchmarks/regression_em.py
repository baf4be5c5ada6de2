"""Readings of regression EM on the authors' own lists: `python -m benchmarks.regression_em`.

Chen et al. (2024) and their code describe different updates, and one run in ten of the code's
ends where an examination of 1 keeps it. Here many starts of each reading are fitted, in double
precision as in the code, to the lists that `table1_authors` reads. Printed are what one run
finds, the share of stuck runs, and how often ten runs agree with Table 1: mean and deviation of
MCC both within one printed deviation (or half a printed digit) of the printed. All of it takes
more than an hour; `--runs 20 --steps 20000` shows the differences in minutes.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.table1_authors import VARIANTS, sample, scores
from twotowers.fitting.alternating import EPSILON, ClickRates

PRINTED = {"plain": (0.580, 0.117), "merging": (0.975, 0.000), "intervention": (0.980, 0.023)}
HALF_A_DIGIT = 0.0005
STILL = 1e-10
"""What an examination changes in a step when a fit is over: at most 1e-5 in 100,000."""


# A reading maps clicks c [runs, factors, n], rows w [factors, n], examination o [runs, factors, 1]
# and relevance r [runs, 1, n] of the step before to the new relevance and that which o is
# computed from.


def code(c, w, o, r):
    """The published code: r = mean(c / o), and o from it before it is clipped."""
    fresh = _mean_rate(c, w, o)
    return fresh, fresh


def clipped(c, w, o, r):
    """As the code, but o from relevance that is clipped first."""
    fresh = jnp.clip(_mean_rate(c, w, o), 0, 1)
    return fresh, fresh


def paper(c, w, o, r):
    """Appendix C.3 as printed: EM proper, both from the step before."""
    relevant = c + (w - c) * (1 - o) * r / _not_zero(1 - o * r)
    return relevant.sum(1, keepdims=True) / w.sum(0), r


READINGS = {each.__name__: each for each in (code, clipped, paper)}


def _mean_rate(c, w, o):
    return (c / (o + EPSILON)).sum(1, keepdims=True) / (w.sum(0) + EPSILON)


def _not_zero(values):
    return jnp.where(values == 0, 1, values)


def by_factors(rates: ClickRates) -> dict[tuple[int, ...], tuple[np.ndarray, ...]]:
    """Documents by the factors they were seen under.

    Returns:
        From those factors to the documents [n], their clicks [runs, factors, n] and rows
        [factors, n].
    """
    key, cell = np.unique(rates.feature * rates.factors + rates.factor[0], return_inverse=True)
    weight = np.bincount(cell).astype(float)
    clicks = np.stack([np.bincount(cell, run) for run in rates.rate])
    feature, factor = np.divmod(key, rates.factors)
    cells: dict[tuple[int, ...], list] = {}
    for document, own in enumerate(
        np.split(np.arange(len(key)), np.flatnonzero(np.diff(feature)) + 1)
    ):
        cells.setdefault(tuple(factor[own]), []).append((document, own))
    return {
        factors: (
            np.array([document for document, _ in members]),
            clicks[:, (index := np.array([own for _, own in members]).T)],
            weight[index],
        )
        for factors, members in cells.items()
    }


@partial(jax.jit, static_argnames=("reading", "factors", "steps"))
def iterate(reading, factors, cells, shown, o, r, steps: int):
    """At most `steps` updates of o [runs, factors] and r, a [runs, 1, n] per entry of `factors`."""

    def step(state):
        number, o, r, _ = state
        change, relevance = jnp.zeros_like(o), []
        for index, (c, w), former in zip(map(np.array, factors), cells, r, strict=True):
            at = o[:, index, None]
            fresh, used = READINGS[reading](c, w, at, former)
            relevance.append(jnp.clip(fresh, 0, 1))
            surprise = (c - w * at * used) * (1 - at) / _not_zero(1 - at * used)
            change = change.at[:, index].add(surprise.sum(-1))
        new = jnp.clip(o + change / shown, 0, 1)
        return number + 1, new, relevance, jnp.abs(new - o).max()

    def unfinished(state):
        return (state[0] < steps) & (state[-1] > STILL)

    return jax.lax.while_loop(unfinished, step, (0, o, r, jnp.inf))[:3]


def agreement(mcc: np.ndarray, variant: str) -> float:
    """Share of sets of ten runs that agree with Table 1."""
    mean, deviation = PRINTED[variant]
    near = max(deviation, HALF_A_DIGIT)
    tens = np.random.default_rng(0).choice(mcc, (100_000, 10))
    agrees = (abs(tens.mean(1) - mean) <= near) & (abs(tens.std(1) - deviation) <= near)
    return agrees.mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--reading", nargs="+", choices=READINGS, default=list(READINGS))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=100_000)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print("| reading | variant | steps | stuck | MCC | nDCG@10 | MCC of the others | agree |")
    print("|---|---|---:|---:|---|---|---|---:|")
    for reading in arguments.reading:
        for variant in VARIANTS:
            lists, rates = sample(arguments.folder, variant, arguments.runs)
            groups = by_factors(rates)
            rng = np.random.default_rng(1)
            o = rng.random((arguments.runs, rates.factors))
            r = rng.random((arguments.runs, rates.features)) / 2
            shown = np.maximum(np.bincount(rates.factor[0], minlength=rates.factors), 1)
            number, o, found = iterate(
                reading,
                tuple(groups),
                [cells for _, *cells in groups.values()],
                shown.astype(float),
                o,
                [r[:, None, documents] for documents, *_ in groups.values()],
                arguments.steps,
            )
            for (documents, *_), relevance in zip(groups.values(), found, strict=True):
                r[:, documents] = relevance[:, 0]
            values = scores(lists, r)
            stuck = (np.asarray(o) == 1).any(1)
            texts = [
                f"{each.mean():.3f} ± {each.std():.3f}" if len(each) else "-"
                for each in (values[:, 0], values[:, -1], values[~stuck, 0])
            ]
            print(
                f"| {reading} | {variant} | {int(number):,} | {stuck.mean():.3f} "
                f"| {' | '.join(texts)} | {agreement(values[:, 0], variant):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
