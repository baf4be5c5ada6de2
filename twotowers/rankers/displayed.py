"""What users were shown: the first documents of each list, as a ranker sorts them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from twotowers.errors import InputError
from twotowers.files.rankings import Rankings, rank, read_rankings
from twotowers.logs.policies import read_scores


def displayed(rankings: str | Path, policy: str | Path, *, top: int) -> Rankings:
    """The first `top` documents of every training query, in the order shown."""
    lists = read_rankings(rankings)
    scored = read_scores(policy, "train")
    if not np.array_equal(lists.query, scored.pairs.query):
        raise InputError("its queries are not those of the policy", path=rankings, field="query")
    return rank(lists, scored.score, top=top)
