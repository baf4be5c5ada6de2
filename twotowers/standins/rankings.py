"""Generated rankings: they have the columns of a real data set, and statistics close to its own.

Queries are drawn in blocks, each with a random stream of its own. A block fits into the cache, and
the first n queries do not depend on the number of queries. A law is a module: `mslr`, `lists` or
`vectors`, the last two with numbers for several data sets (`POPULATIONS`).
"""

from pathlib import Path

import numpy as np

from twotowers.files.rankings import Rankings, write_rankings
from twotowers.splits import SPLITS
from twotowers.standins import lists, mslr, vectors

NAMES = ("mslr30k", *vectors.POPULATIONS, *lists.POPULATIONS)
QUERIES_PER_SPLIT = 1_000_000


def generate(name: str, split: str, *, queries: int, seed: int) -> Rankings:
    """Draw a stand-in as raw as the real files: no truncation, no transformation of features.

    The draw depends on (name, split, seed) only. All splits come from one population. A query has
    about 120 documents in "mslr30k"; 24 in "yahoo" and "yahoo_ltr"; 26 in "istella_s", whose
    vectors recur as those of "yahoo" do, and 103 in "istella_s_ltr": the endings are of full width
    and length. Features are [rows, 136] in the column order of MSLR-WEB30K, or [rows, 50], [rows,
    699] or [rows, 220] of no real set's order, labels 0 to 4, query ids from 1 (train), 1,000,001
    (validation) or 2,000,001 (test).
    """
    part = SPLITS.index(split)
    key, law, width, of = (), mslr, mslr.WIDTH, {}
    if name in vectors.POPULATIONS:
        key, law, width = (list(vectors.POPULATIONS).index(name),), vectors, vectors.WIDTH
        of = {"population": vectors.POPULATIONS[name]}
    elif name in lists.POPULATIONS:
        key, law, width = name.encode(), lists, lists.POPULATIONS[name].width
        of = {"population": lists.POPULATIONS[name]}
    streams = [
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*key, part, block)))
        for block in range(-(-queries // law.BLOCK))
    ]
    # Lists are each stream's first draw, so that the whole table can be allocated once.
    drawn = [law.lists(rng, block, **of) for block, rng in enumerate(streams)]
    lengths = np.concatenate([first for first, *_ in drawn])[:queries]
    features = np.empty((lengths.sum(), width), np.float32)
    label = np.empty(len(features), np.float32)
    start = 0
    for rng, own in zip(streams, drawn, strict=True):
        values, labels = law.documents(rng, *own, **of)
        stop = min(start + len(labels), len(label))
        features[start:stop], label[start:stop] = values[: stop - start], labels[: stop - start]
        start = stop
    ids = part * QUERIES_PER_SPLIT + 1 + np.arange(queries, dtype=np.int64)
    return Rankings.of_lists(lengths, label, features, ids)


def write(path: str | Path, part: str, *, name: str, size: int, seed: int) -> None:
    """Write a split of `size` queries."""
    write_rankings(generate(name, part, queries=size, seed=seed), path)
