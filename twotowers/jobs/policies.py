"""The relevance of documents to users, and the scores and ranks of a policy's ranker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.files.artefacts import atomic
from twotowers.files.rankings import Rankings
from twotowers.logs.policies import ranks
from twotowers.models.relevance import padding_of
from twotowers.models.relevance import relevance as relevance_of
from twotowers.rankers.training import train_ranker


def write_policy(
    path: str | Path,
    rankings: Mapping[str, Rankings],
    *,
    relevance: str,
    ranker: str,
    settings: Mapping[str, Any] | None,
    places: int | None = None,
    seed: int,
) -> None:
    """Score and rank the documents of all splits, and write them as one file.

    Relevance is "annotated", "linear" or "deep"; the ranker is trained on the documents of `train`.
    `places` of a list: its empty ones count in the percentiles of synthetic relevance; None if only
    documents do.
    """
    labels = {}
    for split, lists in rankings.items():
        drawn = {"seed": seed, "split": split, "padding": padding_of(lists.lengths, places)}
        labels[split] = relevance_of(relevance, lists.label, lists.features, **drawn)
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
    with atomic(path) as temporary:
        pq.write_table(pa.concat_tables(tables), temporary, compression="zstd")
