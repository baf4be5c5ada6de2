"""Prepare raw rankings as the papers do: truncated, relevant queries only, squashed features."""

from twotowers.datasets.preprocess import preprocess
from twotowers.rankings import read_rankings, write_rankings


def main(inputs, outputs, *, top: int, label_max: float) -> None:
    """Read raw rankings from inputs[0] and write preprocessed ones to outputs[0].

    Args:
        inputs: The raw parquet file.
        outputs: The preprocessed parquet file.
        top: List length: documents kept per query.
        label_max: The highest label of the data set.
    """
    rankings = preprocess(read_rankings(inputs[0]), top=top, label_max=label_max)
    write_rankings(rankings, outputs[0])


if "snakemake" in globals():
    from runner import run

    run(main, snakemake)  # noqa: F821
