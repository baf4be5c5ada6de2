"""A world on disk: rankings and a policy of three splits, and simulated logs."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twotowers.experiment import fields
from twotowers.experiment.paper import AnyLog
from twotowers.experiment.simulated import SimulatedLog
from twotowers.files.rankings import Rankings, write_rankings
from twotowers.logs.policies import read_scores
from twotowers.logs.simulated_sessions import read_lane_sessions
from twotowers.splits import SPLITS

POSITIONS, QUERIES, WIDTH = 5, 8, 3
LOG = {
    "dataset": "any",
    "positions": POSITIONS,
    "relevance": "annotated",
    "policy": {"ranker": "expert", "strength": [0, 1], "temperature": [0, 0.5]},
    "queries": {"split": "train", "first": 6, "ranked": "once"},
    "sessions": {"train": 900, "validation": 400, "test": 300},
}


def write_world(folder):
    """8 queries of 2 to 5 documents in each split. The ranker knows the relevance."""
    tables = []
    for number, split in enumerate(SPLITS):
        rng = np.random.default_rng(number)
        lengths = rng.integers(2, POSITIONS + 1, QUERIES)
        query = np.repeat(100 * number + np.arange(QUERIES), lengths)
        document = np.concatenate([rng.permutation(n) for n in lengths]).astype(np.int32)
        features = rng.normal(size=(len(query), WIDTH)).astype(np.float32)
        relevance = (features[:, 0] + 2).clip(0, 4).astype(np.float32)
        write_rankings(Rankings(query, document, relevance, features), folder / f"{split}.parquet")
        columns = {"query": query, "document": document, "relevance": relevance}
        tables.append(
            pa.table({"split": pa.repeat(split, len(query)), **columns, "score": relevance})
        )
    pq.write_table(pa.concat_tables(tables), folder / "policy.parquet")
    return folder


def settled(**changes) -> SimulatedLog:
    return fields.read(AnyLog, {**LOG, **changes})


def simulated(folder, name: str, **changes):
    path = folder / f"{name}.parquet"
    if not path.exists():
        settled(**changes).simulate({"policy": folder / "policy.parquet"}, path, seed=3)
    return path


def policies(folder, **changes) -> dict:
    queries = settled(**changes).queries
    return {split: read_scores(folder / "policy.parquet", *queries.of(split)) for split in SPLITS}


def read(folder, path, lanes=None):
    pairs = {split: policy.pairs for split, policy in policies(folder).items()}
    lanes = lanes or [{"strength": s, "temperature": t} for s in (0.0, 1.0) for t in (0.0, 0.5)]
    return read_lane_sessions(path, lanes, pairs=pairs, length=POSITIONS)
