"""Rankings of all splits -> relevance, and scores and ranks of the logging policy."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scripts.runner import run
from twotowers import SPLITS
from twotowers.files.artefacts import atomic
from twotowers.files.rankings import read_rankings
from twotowers.logs.policies import ranks
from twotowers.models.relevance import padding_of
from twotowers.models.relevance import relevance as relevance_of
from twotowers.rankers.training import train_ranker


def main(
    inputs,
    outputs,
    *,
    relevance: str,
    ranker: str,
    settings: dict | None,
    places: int | None = None,
    seed: int,
):
    """Score and rank the documents of all splits.

    Args:
        inputs: rankings, a parquet file per split.
        outputs: the parquet file of scores.
        relevance: what makes documents relevant.
        ranker, settings: who ranks them, and how it is trained.
        places: of a list, whose empty ones count in the percentiles of synthetic relevance; None
            if only documents do.
        seed: draws relevance, and the ranker.
    """
    rankings = {split: read_rankings(getattr(inputs, split)) for split in SPLITS}
    labels = {
        split: relevance_of(
            relevance,
            lists.label,
            lists.features,
            seed=seed,
            split=split,
            padding=padding_of(lists.lengths, places),
        )
        for split, lists in rankings.items()
    }
    score = train_ranker(ranker, rankings["train"], labels["train"], settings, seed=seed)
    tables = []
    for split, lists in rankings.items():
        scores = np.asarray(score(lists, labels[split]), np.float32)
        columns = {
            "split": pa.repeat(split, len(scores)),
            "query": lists.query,
            "document": lists.document,
            "relevance": labels[split],
            "score": scores,
            "rank": ranks(scores, lists.offsets),
        }
        tables.append(pa.table(columns))
    with atomic(outputs[0]) as path:
        pq.write_table(pa.concat_tables(tables), path, compression="zstd")


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
