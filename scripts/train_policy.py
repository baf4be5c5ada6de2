"""Rankings of all splits -> relevance and the logging policy's scores and ranks."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scripts.runner import run
from twotowers import SPLITS
from twotowers.files.artefacts import atomic
from twotowers.files.rankings import read_rankings
from twotowers.logs.policies import ranks
from twotowers.models.relevance import relevance as relevance_of
from twotowers.rankers.training import train_ranker


def main(inputs, outputs, *, relevance: str, ranker: str, settings: dict | None, seed: int):
    rankings = {split: read_rankings(getattr(inputs, split)) for split in SPLITS}
    labels = {
        split: relevance_of(relevance, lists.label, lists.features, seed=seed, split=split)
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
