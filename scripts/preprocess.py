"""Raw splits of a data set -> splits prepared as a paper does."""

from collections.abc import Callable
from functools import partial

from scripts.runner import job
from twotowers.datasets.preprocess import preprocess, preprocess_stratified, preprocess_ultra
from twotowers.files.rankings import read_rankings, write_rankings
from twotowers.splits import SPLITS


def by_split(prepare: Callable, raw: dict, **settings):
    """One split after the other, since a small machine cannot hold the largest one twice."""
    for split, path in raw.items():
        yield split, prepare(read_rankings(path), **settings)


def ultra(raw: dict, *, label_max: float, log10: bool = False):
    splits = {split: read_rankings(path) for split, path in raw.items()}
    return preprocess_ultra(splits, logarithm=log10).items()


PREPARE = {
    "top_labels": partial(by_split, preprocess),
    "ultra": ultra,
    "stratified": partial(by_split, partial(preprocess_stratified, log1p=True)),
}


@job
def main(inputs, outputs, *, steps: dict, label_max: float) -> None:
    """Read the raw splits and write the preprocessed ones: `prepare` of `steps`, with settings."""
    # Percentiles are taken where relevance is made, of what is prepared here.
    settings = {key: steps[key] for key in steps if key not in ("prepare", "percentiles")}
    raw = {split: getattr(inputs, split) for split in SPLITS}
    for split, rankings in PREPARE[steps["prepare"]](raw, label_max=label_max, **settings):
        write_rankings(rankings, getattr(outputs, split))
