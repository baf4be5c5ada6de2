"""Test queries, ranked by boosted trees that learn from click rates without position bias.

A log of given lists says nothing of other documents. So trees learn from features what the click
rate of each place is after division by its estimated examination (Chen et al. 2024, Appendix C.3).
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from twotowers.claims.metrics import ndcg
from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, read_rankings
from twotowers.logs.policies import displayed
from twotowers.methods.task import Fitted, Task
from twotowers.rankers.trees import fit_trees

FLOOR = 1e-5
"""The published code divides a click rate by examination plus this."""


def transfer(files: Mapping[str, str], task: Task, trees: Mapping[str, int]) -> Callable:
    """A measurement of fits: nDCG@5 and @10 of test queries as trees rank them (`fit_trees`).

    The trees learn from the features of the lists shown, of `policy` and `train`, and rank `test`.
    """
    shown = displayed(files["train"], files["policy"], top=task.positions)
    test = read_rankings(files["test"])

    def measure(fitted: Fitted, task: Task, log: int) -> Iterator[dict]:
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
        predict = fit_trees(shown.features, target, **trees)
        for metric, value in gains(predict(test.features), test).items():
            yield {"metric": f"test_{metric}", "value": value}

    return measure


def gains(scores: np.ndarray, lists: Rankings) -> dict[str, float]:
    """Mean nDCG@5 and @10 of the documents sorted by the scores [rows]."""
    scores, labels, where = lists.padded(scores.astype(np.float32), lists.label)
    return {f"ndcg@{top}": ndcg(scores, labels, where=where, topn=top).mean() for top in (5, 10)}
