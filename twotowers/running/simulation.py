"""The clicks of a simulated log: every lane of its policy, its user and its sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from twotowers.files.rankings import mask, pad
from twotowers.logs.cells import LaneLog
from twotowers.logs.counts import LONGEST_DENSE, Cells, Counts, added
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
    pairs = policy.pairs
    traffics = [
        Traffic(
            pairs.lengths,
            sessions=more,
            temperatures=temperatures,
            length=positions,
            rng=stream("traffic", seed, split, *_growth(number)),
        )
        for number, more in enumerate(np.diff([0, *budgets]).tolist())
    ]
    where = mask(pairs.lengths, positions)
    relevance = pad(policy.relevance, pairs.offsets, positions)
    users = [
        (own, _chances(user, relevance, positions))
        for own, user in _users(log["user"], lanes, paper)
    ]
    for strength in lanes[mixing]:
        # Every strength draws the same noise and ties, so that strengths differ in nothing else.
        rng = stream("policy noise", seed, split)
        scores = pad(policy_scores(policy.score, strength, rng=rng), pairs.offsets, positions)
        order = ranking_order(scores, where, tiebreak=rng.random(scores.shape))
        for temperature, (own, chances) in product(temperatures, users):
            grown = []
            for number, traffic in enumerate(traffics):
                shown = traffic.impressions(order, temperature)
                key = (strength, temperature, *own.values(), *_growth(number))
                more = _clicked(shown, chances, stream("clicks", seed, split, *key))
                grown.append(added(grown[-1], more) if grown else more)
            values = {mixing: strength, "temperature": temperature}
            if "sessions" not in lanes:
                yield LaneLog(split, {**values, **own}, grown[0])
                continue
            for number, sessions in enumerate(lanes["sessions"]):
                # A split of one size is the same for all.
                counts = grown[min(number, len(grown) - 1)]
                yield LaneLog(split, {**values, "sessions": sessions, **own}, counts)


def _growth(number: int) -> tuple:
    """What names the draws that a log grows by; the first log's are those of a log of its own."""
    return ("growth", number) if number else ()


def _users(user: Mapping, lanes: Mapping, paper: str | None) -> Iterator[tuple[dict, CellModel]]:
    """Each user of the lanes, with the values that tell it from the others."""
    constants = {key: value for key, value in user.items() if key != "kind"}
    swept = {key: listed(value) for key, value in constants.items() if key in lanes}
    for values in product(*swept.values()):
        own = {key: float(value) for key, value in zip(swept, values, strict=True)}
        yield own, build_model(user["kind"], paper, **{**constants, **own})


def _chances(user: CellModel, relevance: np.ndarray, positions: int) -> Callable:
    """From impressions to the click probability of each of their cells."""
    if positions <= LONGEST_DENSE:
        chance = user.chance(relevance, positions)
        return lambda shown: chance
    truth = user.truth(relevance, positions)

    def of_cells(shown: Cells) -> np.ndarray:
        parts = {
            name: values[shown.query, shown.document]
            if user.parts[name] == PER_DOCUMENT
            else values[shown.position]
            for name, values in truth.items()
        }
        return user.click_probability(**parts)

    return of_cells


def _clicked(shown: np.ndarray | Cells, chances: Callable, rng: np.random.Generator):
    if isinstance(shown, Cells):
        return replace(shown, clicks=simulate_clicks(shown.impressions, chances(shown), rng=rng))
    return Counts(shown, simulate_clicks(shown, chances(shown), rng=rng))
