"""LambdaMART on logged positions: boosted trees that imitate the policy (de Haan and Hager 2024).

Every session is a list, and a document at position k has the label max(10 - k, 0). Clicks are not
read. LambdaMART on relevance labels is `twotowers.rankers.trees`.
"""

import numpy as np

from twotowers.files.rankings import Rankings
from twotowers.methods.task import Fitted, Split, Task
from twotowers.rankers.trees import fit_lambdamart

NEEDS = ("sessions", "features")
TOP = 10
"""The first position with label 0."""


def fit(
    task: Task, *, trees: int = 500, leaves: int = 10, learning_rate: float = 0.01
) -> list[Fitted]:
    """Fit the training sessions of every lane's log.

    Args:
        task: its model and tower are not used. Its documents must have features.
        trees, leaves, learning_rate: see `twotowers.rankers.trees.fit_lambdamart`.
    """
    train = task.splits["train"]
    given = {"trees": trees, "leaves": leaves, "learning_rate": learning_rate}
    rankers = {
        log: fit_lambdamart(*lists_of(train, log), **given)
        for log in sorted({log for log, _ in task.lanes})
    }
    return [Fitted(scores=_scores(rankers[log])) for log, _ in task.lanes]


def lists_of(split: Split, log: int) -> tuple[Rankings, np.ndarray]:
    """The sessions of a log as lists with labels max(TOP - k, 0) at position k."""
    pages = split.sessions[log]
    session, place = np.nonzero(pages.where)
    features = split.table[split.rows(log)[session, place]]
    labels = np.maximum(TOP - 1 - place, 0).astype(np.float32)
    number = np.arange(len(session)) - np.searchsorted(session, session)
    return Rankings(session, number.astype(np.int32), labels, features), labels


def _scores(predict):
    return lambda inputs: predict(inputs.reshape(-1, inputs.shape[-1])).reshape(inputs.shape[:-1])
