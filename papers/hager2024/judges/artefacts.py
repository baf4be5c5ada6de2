"""Ours: which conclusions are artefacts of the published code."""

from __future__ import annotations

from papers.hager2024.judges.common import effects
from papers.hager2024.names import POINTWISE
from twotowers.claims.claims import OURS, Claims
from twotowers.claims.conditions import at_most, below

CLAIMS = Claims()


@CLAIMS.add(
    "38", "joined", "the published join",
    "On the pages that the published NLL is of, unbiased methods gain what they gain on all",
    below("NLL of joined pages less that of the naive model", 0),
    at_most("what this difference is off that on all test pages", 0.1, "times that on all"),
    origin=OURS,
)  # fmt: skip
def join_changes_little(results):
    joined, whole = (
        effects(results, POINTWISE[1:], metric=of).stack() for of in ("joined_nll", "held_out_loss")
    )
    return joined, ((joined - whole).abs(), whole.abs())
