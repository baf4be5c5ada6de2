"""The clicks of a simulated log: every lane of its policy, its user and its sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from twotowers.files.rankings import mask, pad
from twotowers.logs.cells import LaneLog
from twotowers.logs.counts import Cells, Counts, added
from twotowers.logs.policies import Policy, policy_scores, ranking_order
from twotowers.logs.simulation import Traffic, simulate_clicks
from twotowers.models.protocol import PER_DOCUMENT, CellModel
from twotowers.randomness import stream
from twotowers.running.registry import build_model
from twotowers.running.settling import listed


def simulate(
    split: str,
    policy: Policy,
    log: Mapping,
    *,
    positions: int,
    seed: int,
    paper: str | None = None,
) -> Iterator[LaneLog]:
    """Yield the log of each lane; lanes share their sessions, each has clicks of its own.

    Args:
        split: whose sessions.
        policy: the pairs, their relevance, and the ranker's scores.
        log: `lanes`, `sessions` and `user`, as `twotowers.running.settling` completes them.
        positions: positions on a page.
        seed: of all that is drawn.
        paper: whose users may be used, besides the library's.
    """
    lanes = log["lanes"]
    mixing, temperatures = next(iter(lanes)), lanes["temperature"]
    budgets = log["sessions"][split]
    traffics = [_traffic(policy, more, temperatures, positions, seed, split, budget)
                for budget, more in enumerate(np.diff([0, *budgets]).tolist())]  # fmt: skip
    users = list(_users(log["user"], lanes, paper))
    pairs = policy.pairs
    where = mask(pairs.lengths, positions)
    relevance = pad(policy.relevance, pairs.offsets, positions)
    for strength in lanes[mixing]:
        # Every strength draws the same noise and ties, so that strengths differ in nothing else.
        rng = stream("policy noise", seed, split)
        scores = pad(policy_scores(policy.score, strength, rng=rng), pairs.offsets, positions)
        order = ranking_order(scores, where, tiebreak=rng.random(scores.shape))
        for temperature, (own, user) in product(temperatures, users):
            total = None
            for budget, traffic in enumerate(traffics):
                shown = traffic.impressions(order, temperature)
                # The first log's clicks are named as a log of one budget names them.
                growth = () if budget == 0 else ("growth", budget)
                key = (strength, temperature, *own.values(), *growth)
                rng = stream("clicks", seed, split, *key)
                more = _clicked(shown, user, relevance, positions, rng)
                total = more if total is None else added(total, more)
                values = {mixing: strength, "temperature": temperature}
                if "sessions" in lanes:
                    values["sessions"] = lanes["sessions"][budget]
                yield LaneLog(split, {**values, **own}, total)


def _traffic(policy, sessions, temperatures, positions, seed, split, budget) -> Traffic:
    growth = () if budget == 0 else ("growth", budget)
    return Traffic(
        policy.pairs.lengths,
        sessions=sessions,
        temperatures=temperatures,
        length=positions,
        rng=stream("traffic", seed, split, *growth),
    )


def _users(user: Mapping, lanes: Mapping, paper: str | None) -> Iterator[tuple[dict, CellModel]]:
    """Each user of the lanes, with the values that tell it from the others."""
    constants = {key: value for key, value in user.items() if key != "kind"}
    swept = {key: listed(value) for key, value in constants.items() if key in lanes}
    for values in product(*swept.values()):
        own = {key: float(value) for key, value in zip(swept, values, strict=True)}
        yield own, build_model(user["kind"], paper, **{**constants, **own})


def _clicked(
    shown: np.ndarray | Cells,
    user: CellModel,
    relevance: np.ndarray,
    positions: int,
    rng: np.random.Generator,
) -> Counts | Cells:
    if isinstance(shown, np.ndarray):
        chance = user.chance(relevance, positions)
        return Counts(shown, simulate_clicks(shown, chance, rng=rng))
    truth = user.truth(relevance, positions)
    parts = {
        name: values[shown.query, shown.document]
        if user.parts[name] == PER_DOCUMENT
        else values[shown.position]
        for name, values in truth.items()
    }
    chance = user.click_probability(**parts)
    return replace(shown, clicks=simulate_clicks(shown.impressions, chance, rng=rng))
