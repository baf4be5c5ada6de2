"""Examination alone, conditional on each pair's clicks: where they fell tells of nothing else."""

from typing import Literal

import numpy as np

from twotowers.fitting.conditional import fit_conditional
from twotowers.methods.task import Fitted, Task, pair_counts

BIAS_ALONE = True
NEEDS = ("pairs",)


def fit(task: Task, *, form: Literal["product", "additive"] = "product") -> list[Fitted]:
    """Fit every lane's training log by `twotowers.fitting.conditional.fit_conditional`.

    There are no scores of documents. The bias of a position is the logarithm of its ratio to the
    first; NaN where no document links the two.

    Args:
        task: its tower must read numbers of pairs, so that a pair is known at all its positions.
        form: "product" for ratios of examination, "additive" for ratios of odds.
    """
    curves = [fit_conditional(pair_counts(task, log), form=form) for log, _ in task.lanes]
    return [
        Fitted(scores=None, bias=np.log(curve.estimate), bias_error=curve.error) for curve in curves
    ]
