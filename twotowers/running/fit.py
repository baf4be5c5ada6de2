"""A setting of an experiment: its lanes, fitted together, and what is measured of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from twotowers import SPLITS
from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, mask, pad, read_rankings
from twotowers.fitting.gradient import Fit, FitSettings, fit, mean_loss
from twotowers.logs.cells import read_logs
from twotowers.logs.policies import Policy, read_policy
from twotowers.logs.propensities import inverse_propensity
from twotowers.logs.simulation import Counts
from twotowers.models.towers import scores, two_towers
from twotowers.objectives.likelihood import CountLoss
from twotowers.results.metrics import mrr, ndcg


@dataclass(frozen=True)
class Split:
    """One split of a setting's data, laid out as rectangles.

    Attributes:
        relevance: [queries, documents] float32, what ranking metrics are measured against.
        where: [queries, documents] bool, False on padding.
        counts: arrays [logs, queries, documents, positions], unweighted.
        objective: the loss of each lane.
    """

    relevance: np.ndarray
    where: np.ndarray
    counts: Counts
    objective: CountLoss


def fit_setting(
    rankings: dict[str, str | Path],
    policy: str | Path,
    clicks: str | Path,
    *,
    tower: str,
    strengths: list[float],
    temperatures: list[float],
    weightings: list[str],
    training: dict,
    positions: int,
    seed: int,
    queries: str | None = None,
    features: float = 1.0,
) -> pd.DataFrame:
    """Fit every lane of a setting and measure it.

    Args:
        rankings: parquet file per split.
        policy: file of relevance and scores.
        clicks: file of click counts.
        tower: relevance tower, see `twotowers.models.towers.two_towers`.
        strengths, temperatures, weightings: their product are the lanes.
        training: see `FitSettings`.
        positions: positions on a page.
        seed: initialises and orders batches.
        queries: split whose queries the log is about; each split its own if None.
        features: share of the features, counted from the first, that the tower sees.

    Returns:
        long form: strength, temperature, weighting, metric, position, value.

    Raises:
        InputError: files that do not belong together, a setting out of range, or an embedding
            tower on a log whose splits have queries of their own.
    """
    if tower == "embedding" and queries is None:
        raise InputError(
            "an embedding per pair can be measured only on the pairs that it was trained on",
            field="queries",
            expected="'train': a log whose sessions are all about the training queries",
        )
    logs = list(product(map(float, strengths), map(float, temperatures)))
    splits = {
        split: load_split(
            rankings[queries or split],
            read_policy(policy, queries or split),
            partial(read_logs, clicks, logs, split=split, length=positions),
            embedded=tower == "embedding",
            features=features,
            positions=positions,
            # Early stopping watches the weighted loss, as published; the test loss is plain.
            weightings=weightings if split != "test" else ["none"],
        )
        for split in SPLITS
    }
    train = splits["train"]
    model = two_towers(
        tower,
        width=train.objective.inputs.shape[-1],
        pairs=train.where.size,
        positions=positions,
        seed=seed,
    )
    lanes = list(product(weightings, logs))
    result = fit(
        model,
        train.objective,
        splits["validation"].objective,
        FitSettings(**training),
        lanes=len(lanes),
        seed=seed,
    )
    rows = [
        (*measured, *log, weighting)
        for lane, (weighting, log) in enumerate(lanes)
        for measured in measure(result, lane, splits["test"], lane % len(logs))
    ]
    names = ["metric", "position", "value", "strength", "temperature", "weighting"]
    return pd.DataFrame(rows, columns=names).astype({"position": "Int64", "value": float})


def load_split(
    rankings, policy: Policy, read_counts, *, embedded, features, positions, weightings
) -> Split:
    """Lay out one split; `read_counts(pairs=)` gives its counts."""
    lists = read_rankings(rankings)
    pairs = policy.pairs
    if not np.array_equal(lists.query, pairs.query):
        raise InputError("its queries are not those of the policy", path=rankings, field="query")
    counts = read_counts(pairs=pairs)
    where = mask(pairs.lengths, positions)
    return Split(
        relevance=pad(policy.relevance, pairs.offsets, positions),
        where=where,
        counts=counts,
        objective=count_loss(
            tower_inputs(lists, where, embedded, features), counts, where, weightings
        ),
    )


def weighted(counts: Counts, weightings: Sequence[str]) -> Counts:
    """The counts of every log under the first weighting, then under the next."""
    if list(weightings) == ["none"]:
        return counts
    parts = [{"none": lambda c: c, "ips": inverse_propensity}[name](counts) for name in weightings]
    return Counts(
        *(
            # Weighted counts are fractions, and all lanes are of one type.
            np.concatenate([getattr(part, name) for part in parts], dtype=np.float32)
            for name in ("impressions", "clicks")
        )
    )


def tower_inputs(lists: Rankings, where: np.ndarray, embedded: bool, features: float):
    """What the relevance tower reads: pair numbers, or the first so many features."""
    if embedded:
        return np.arange(where.size, dtype=np.int32).reshape(where.shape)
    width = round(features * lists.features.shape[1])
    return pad(lists.features[:, :width], lists.offsets, where.shape[1])


def count_loss(
    inputs: np.ndarray,
    counts: Counts,
    where: np.ndarray,
    weightings: Sequence[str] = ("none",),
) -> CountLoss:
    """The objective of a log: mean over a session's documents, then over sessions.

    Args:
        inputs: [queries, documents, ...].
        counts: arrays [logs, queries, documents, positions], unweighted; all logs have as
            many sessions.
        where: [queries, documents] bool, False on padding.
        weightings: the lanes are the logs under the first of these, then under the next.
    """
    lanes = weighted(counts, weightings)
    queries = len(where)
    sessions = counts.impressions[0, :, :, 0].sum()
    weight = queries / (where.sum(-1) * sessions)
    return CountLoss(
        inputs=jnp.asarray(inputs),
        impressions=jnp.asarray(lanes.impressions),
        clicks=jnp.asarray(lanes.clicks),
        weight=jnp.asarray(weight, jnp.float32),
    )


def measure(result: Fit, lane: int, test: Split, log: int) -> list[tuple[str, int | None, float]]:
    """Metrics of one lane on its (unweighted) test log: metric, position if of one, value."""
    model = result.model(lane)
    bias = np.asarray(model.position_bias, float)
    logits = np.asarray(scores(model.relevance, test.objective.inputs))
    state = jax.tree.map(lambda leaf: leaf[lane], result.state)
    values = {
        "ndcg@10": ndcg(logits, test.relevance, where=test.where).mean(),
        "mrr@10": mrr(logits, test.relevance, where=test.where).mean(),
        "nll": _loss(result.graph, state, log, test.objective),
        "policy_ndcg@10": _policy_ndcg(test, log),
        "epochs": result.epochs[lane],
    }
    rows = [("position_bias", rank, value) for rank, value in enumerate(bias - bias[0], start=1)]
    return rows + [(metric, None, value) for metric, value in values.items()]


_loss = jax.jit(
    lambda graph, state, lane, objective: mean_loss(graph, state, lane, objective=objective),
    static_argnums=0,
)


def _policy_ndcg(test: Split, log: int) -> float:
    impressions = test.counts.impressions[log]
    visited = impressions.any((1, 2))
    return shown_ndcg(impressions, test.relevance, where=test.where)[visited].mean()


def shown_ndcg(
    impressions: np.ndarray, relevance: np.ndarray, *, where: np.ndarray, topn: int = 10
) -> np.ndarray:
    """nDCG of the rankings that a log showed, averaged over the sessions of each query.

    DCG is a sum over cells, so its mean over sessions follows from the counts exactly.

    Args:
        impressions: [queries, documents, positions].
        relevance: [queries, documents].
        where: [queries, documents] bool.
        topn: last position whose gain counts.

    Returns:
        [queries]; 0 for queries that no session was about.
    """
    gain = np.where(where, 2.0**relevance - 1, 0)
    discount = 1 / np.log2(2 + np.arange(topn))
    ideal = -np.sort(-gain, axis=-1)[:, :topn] @ discount[: gain.shape[1]]
    sessions = impressions[:, :, 0].sum(-1)
    seen = impressions[:, :, :topn].astype(float)
    shown = np.einsum("qdk,qd,k->q", seen, gain, discount[: seen.shape[-1]])
    possible = ideal * sessions
    return np.divide(shown, possible, out=np.zeros(len(gain)), where=possible > 0)
