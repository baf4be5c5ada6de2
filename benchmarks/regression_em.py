"""Readings of regression EM on the authors' own lists: `python -m benchmarks.regression_em`.

Chen et al. (2024) and their code describe different updates. One run in ten of the code gets stuck
at an examination of 1. This fits many starts of each reading, in double precision as in the code,
to the lists that `table1_authors` reads. It prints what a run finds, the share of stuck runs, and
how often ten runs agree with Table 1: mean and deviation of MCC both within one printed deviation
(or half a printed digit) of the printed values. It takes more than an hour. `--runs 20 --steps
20000` shows the differences in minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.table1_authors import VARIANTS, sample, scores
from papers.chen2024.methods.rate_em import CollapsedEM
from twotowers.fitting.alternating import ExpectationMaximisation, alternate

PRINTED = {"plain": (0.580, 0.117), "merging": (0.975, 0.000), "intervention": (0.980, 0.023)}
HALF_A_DIGIT = 0.0005
STILL = 1e-10
"""The most change per step of a parameter at the end of a fit: 1e-5 in 100,000 steps."""


class Clipped(CollapsedEM):
    """The code's updates, but with o computed from clipped relevance."""

    def relevance(self, block, o, r):
        """The mean of c / (o + 1e-8), clipped."""
        return jnp.clip(super().relevance(block, o, r), 0, 1)


READINGS = {
    # The published code: r = mean(c / o), and o is computed from r before clipping.
    "code": CollapsedEM(),
    "clipped": Clipped(),
    # Appendix C.3 as printed: proper EM, with both updates from the previous step.
    "paper": ExpectationMaximisation(),
}


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
            rng = np.random.default_rng(1)
            o = rng.random((arguments.runs, rates.factors))
            r = rng.random((arguments.runs, rates.features)) / 2
            found = alternate(
                rates,
                o,
                READINGS[reading],
                steps=arguments.steps,
                relevance=r,
                still=STILL,
                dtype=np.float64,
            )
            values = scores(lists, found.relevance)
            stuck = (found.examination == 1).any(1)
            texts = [
                f"{each.mean():.3f} ± {each.std():.3f}" if len(each) else "-"
                for each in (values[:, 0], values[:, -1], values[~stuck, 0])
            ]
            print(
                f"| {reading} | {variant} | {found.steps:,} | {stuck.mean():.3f} "
                f"| {' | '.join(texts)} | {agreement(values[:, 0], variant):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
