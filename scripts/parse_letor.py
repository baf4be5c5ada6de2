"""Parse one LETOR text file into raw rankings (parquet)."""

from twotowers.datasets.letor import read_letor
from twotowers.rankings import write_rankings


def main(inputs, outputs, *, label_max: float, width: int) -> None:
    """Read the LETOR file inputs[0] and write rankings to outputs[0].

    Args:
        inputs: The text file.
        outputs: The parquet file.
        label_max: The highest label allowed.
        width: Number of features.
    """
    write_rankings(read_letor(inputs[0], width=width, label_max=label_max), outputs[0])


if "snakemake" in globals():
    from runner import run

    run(main, snakemake)  # noqa: F821
