"""Examination alone, conditional on each pair's clicks: where they fell tells of nothing else."""

from __future__ import annotations

from typing import Literal

import numpy as np

from twotowers.errors import InputError
from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.pair_counts import PairCounts
from twotowers.methods.task import Fitted, Task, cells

BIAS_ALONE = True


def fit(task: Task, *, form: Literal["product", "additive"] = "product") -> list[Fitted]:
    """Fit every lane's training log by `twotowers.fitting.conditional.fit_conditional`.

    There are no scores of documents. The bias of a position is the logarithm of its ratio to the
    first; NaN where no document links the two.

    Args:
        task: its tower must read numbers of pairs, so that a pair is known at all its positions.
        form: "product" for ratios of examination, "additive" for ratios of odds.

    Raises:
        InputError: the tower reads features, or no document was clicked.
    """
    train = task.splits["train"]
    if train.inputs.ndim != 2:
        raise InputError(
            "the conditional estimate compares pairs with themselves",
            field="model.tower",
            expected="'embedding': a parameter per query-document pair",
        )
    found = []
    for log, _ in task.lanes:
        pair, position, shown, clicked = cells(train, log)
        counts = PairCounts.of_arrays(
            pair, position, shown, clicked, query=train.queries_of(pair), factors=task.positions
        )
        curve = fit_conditional(counts, form=form)
        found.append(Fitted(scores=None, bias=np.log(curve.estimate), bias_error=curve.error))
    return found
