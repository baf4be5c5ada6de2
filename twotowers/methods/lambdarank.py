"""LambdaRank on result pages: the clicked documents should be above the others.

The loss is `twotowers.losses.pairwise.lambda_rank_loss` (Hager 2026, Section 3.4). The scores
do not predict clicks.
"""

from twotowers.losses.pages import lambda_rank
from twotowers.methods.descent import fitted_of, relevance_of, train
from twotowers.methods.task import Fitted, Task

TRAINS = True
NEEDS = ("sessions",)


def fit(task: Task) -> list[Fitted]:
    """Fit the relevance tower of every lane by gradient descent.

    Args:
        task: its model's click probability is not used.
    """
    result = train(task, relevance_of(task), lambda_rank)
    return [fitted_of(result, lane) for lane in range(len(task.lanes))]
