"""A generated stand-in for one split of a data set -> raw rankings."""

from twotowers.datasets.standin import generate
from twotowers.rankings import write_rankings


def main(inputs, outputs, *, name: str, split: str, queries: int, seed: int):
    write_rankings(generate(name, split, queries=queries, seed=seed), outputs[0])


if "snakemake" in globals():
    from runner import run

    run(main, snakemake)  # noqa: F821
