"""Generate one split of a stand-in data set, as raw as the real files."""

from twotowers.datasets.standin import generate
from twotowers.rankings import write_rankings


def main(inputs, outputs, *, name: str, split: str, queries: int, seed: int) -> None:
    """Write the split to parquet.

    Args:
        inputs: none.
        outputs: one path, the rankings.
        name, split, queries, seed: see `twotowers.datasets.standin.generate`.
    """
    write_rankings(generate(name, split, queries=queries, seed=seed), outputs[0])


if "snakemake" in globals():
    from runner import run

    run(main, snakemake)  # noqa: F821
