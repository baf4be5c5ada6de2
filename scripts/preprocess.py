"""Prepare a raw data set as a paper does."""

from scripts.runner import run
from twotowers import SPLITS
from twotowers.datasets.preprocess import preprocess, preprocess_ultra
from twotowers.files.rankings import read_rankings, write_rankings


def main(inputs, outputs, *, steps: dict, label_max: float) -> None:
    """Read the raw splits and write the preprocessed ones.

    Args:
        inputs, outputs: a parquet file per split.
        steps: the kind of preparation, `prepare`, and its own settings.
        label_max: The highest label of the data set.
    """
    settings = {name: value for name, value in steps.items() if name != "prepare"}
    raw = {split: getattr(inputs, split) for split in SPLITS}
    for split, rankings in PREPARE[steps["prepare"]](raw, label_max, **settings):
        write_rankings(rankings, getattr(outputs, split))


def top_labels(raw: dict, label_max: float, *, top: int):
    """One split after the other: the largest does not fit into a small machine twice."""
    for split, path in raw.items():
        yield split, preprocess(read_rankings(path), top=top, label_max=label_max)


def ultra(raw: dict, label_max: float, *, log10: bool = False):
    splits = {split: read_rankings(path) for split, path in raw.items()}
    return preprocess_ultra(splits, logarithm=log10).items()


PREPARE = {"top_labels": top_labels, "ultra": ultra}


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
