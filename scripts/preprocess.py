"""Raw splits of a data set -> splits prepared as a paper does."""

from scripts.runner import job
from twotowers.datasets.preprocess import preprocess, preprocess_stratified, preprocess_ultra
from twotowers.files.rankings import read_rankings, write_rankings
from twotowers.splits import SPLITS


def top_labels(raw: dict, label_max: float, *, top: int):
    """One split after the other, since a small machine cannot hold the largest one twice."""
    for split, path in raw.items():
        yield split, preprocess(read_rankings(path), top=top, label_max=label_max)


def ultra(raw: dict, label_max: float, *, log10: bool = False):
    splits = {split: read_rankings(path) for split, path in raw.items()}
    return preprocess_ultra(splits, logarithm=log10).items()


def stratified(raw: dict, label_max: float, *, most: int, log1p: bool = True):
    how = {"most": most, "log1p": log1p, "label_max": label_max}
    for split, path in raw.items():
        yield split, preprocess_stratified(read_rankings(path), **how)


PREPARE = {"top_labels": top_labels, "ultra": ultra, "stratified": stratified}


@job
def main(inputs, outputs, *, steps: dict, label_max: float) -> None:
    """Read the raw splits and write the preprocessed ones: `prepare` of `steps`, with settings."""
    # Percentiles are taken where relevance is made, of what is prepared here.
    unused = "prepare", "percentiles"
    settings = {name: value for name, value in steps.items() if name not in unused}
    raw = {split: getattr(inputs, split) for split in SPLITS}
    for split, rankings in PREPARE[steps["prepare"]](raw, label_max, **settings):
        write_rankings(rankings, getattr(outputs, split))
