"""Table 2.1: what a data set holds before it is prepared, and what cutting its lists changes."""

import numpy as np
import pandas as pd

from twotowers.datasets.preprocess import preprocess_stratified
from twotowers.files.rankings import read_rankings
from twotowers.splits import SPLITS


def run(inputs, *, seed: int, most: int) -> pd.DataFrame:
    """Count the features, queries and documents per query of raw lists, and the splits' shares.

    `share_moved` is the largest change of a label's share by the cut to `most` documents,
    `share_kept` the share of documents that stay.
    """
    lengths, before, after = [], np.zeros(5), np.zeros(5)
    queries, width = {}, 0
    for split in SPLITS:
        lists = read_rankings(getattr(inputs, split))
        width = lists.features.shape[1]
        bare = type(lists)(lists.query, lists.document, lists.label, lists.features[:, :1])
        highest = max(float(bare.label.max()), 1.0)
        cut = preprocess_stratified(bare, most=most, log1p=False, label_max=highest, seed=seed)
        queries[split] = len(lists.queries)
        lengths.append(lists.lengths)
        before += grades(bare.label * (4 / highest))
        after += grades(cut.label)
    lengths = np.concatenate(lengths)
    shares = [counts / counts.sum() for counts in (before, after)]
    values = {
        "features": width,
        "queries": len(lengths),
        **{f"percent_{split}": 100 * n / len(lengths) for split, n in queries.items()},
        "fewest": lengths.min(),
        "mean": lengths.mean(),
        "median": np.median(lengths),
        "p90": np.percentile(lengths, 90),
        "most": lengths.max(),
        "share_moved": np.abs(shares[0] - shares[1]).max(),
        "share_kept": after.sum() / before.sum(),
    }
    return pd.DataFrame({"metric": list(values), "value": list(values.values()), "position": None})


def grades(labels: np.ndarray) -> np.ndarray:
    """[5] how often each grade occurs."""
    return np.bincount(np.round(labels).astype(int), minlength=5)
