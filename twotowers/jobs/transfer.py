"""Test queries, ranked by boosted trees that learn from click rates without position bias.

A log of given lists says nothing of other documents. So trees learn from features what the click
rate of each place is after division by its estimated examination (Chen et al. 2024, Appendix C.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from twotowers.claims.metrics import ndcg
from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, read_rankings
from twotowers.logs.policies import displayed
from twotowers.methods.task import Fitted, Task
from twotowers.rankers.trees import fit_trees

FLOOR = 1e-5
"""The published code divides a click rate by examination plus this."""


@dataclass(frozen=True)
class Transfer:
    """Test queries, which `trees` (`fit_trees`) rank, and [places, width] features to fit."""

    features: np.ndarray
    test: Rankings
    trees: Mapping[str, int]

    def measure(self, fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
        """nDCG@5 and @10 of the test queries as the trees of one lane rank them."""
        if fitted.examined is None:
            raise InputError(
                "the method does not estimate the examination of places",
                field="transfer",
                expected="a method such as 'alternation'",
            )
        train = task.splits["train"]
        counts, where = train.counts.of_log(log), train.where
        rate = counts.clicks[where] / counts.impressions[where]
        target = rate / (fitted.examined[where] + FLOOR)
        predict = fit_trees(self.features, target, **self.trees)
        for metric, value in gains(predict(self.test.features), self.test).items():
            yield {"metric": f"test_{metric}", "value": value}


def read_transfer(files: Mapping[str, str], task: Task, trees: Mapping[str, int]) -> Transfer:
    """Features of the lists shown, from `policy` and `train`, and the `test` queries."""
    shown = displayed(files["train"], files["policy"], top=task.positions)
    return Transfer(shown.features, read_rankings(files["test"]), trees)


def gains(scores: np.ndarray, lists: Rankings) -> dict[str, float]:
    """Mean nDCG@5 and @10 of the documents sorted by the scores [rows]."""
    scores, labels, where = lists.padded(scores.astype(np.float32), lists.label)
    return {f"ndcg@{top}": ndcg(scores, labels, where=where, topn=top).mean() for top in (5, 10)}
