"""The clicks of simulated users on the rankings of a policy.

They are drawn as counts of cells (`draw_cells`) or page by page (`draw_pages`). Both have the same
distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from twotowers.errors import InputError
from twotowers.files.rankings import mask, pad
from twotowers.logs.cells import LaneLog
from twotowers.logs.counts import Cells, added
from twotowers.logs.policies import (
    NOISE_HIGH,
    NoisyOrder,
    ScoredPairs,
    policy_scores,
    ranking_order,
)
from twotowers.logs.simulated_sessions import Sampler, stream_sessions
from twotowers.logs.simulation import Traffic
from twotowers.models.chances import Chance
from twotowers.models.protocol import PER_DOCUMENT, PER_POSITION, CellModel, ClickModel
from twotowers.randomness import stream

if TYPE_CHECKING:
    from twotowers.experiment.simulated import SimulatedLog


def draw_cells(
    log: SimulatedLog, split: str, policy: ScoredPairs, *, seed: int
) -> Iterator[LaneLog]:
    """Yield the counts of each lane. Lanes share their sessions; clicks are drawn for each."""
    lanes, pairs, positions = log.lanes, policy.pairs, log.positions
    temperatures = lanes["temperature"]
    traffics = [
        Traffic(
            pairs.lengths,
            sessions=more,
            temperatures=temperatures,
            length=positions,
            rng=stream("traffic", seed, split, *_growth(number)),
        )
        for number, more in enumerate(np.diff([0, *log.sessions.of(split)]).tolist())
    ]
    where = mask(pairs.lengths, positions)
    relevance = pad(policy.relevance, pairs.offsets, positions)
    users = [(own, _chances(user, relevance, positions)) for own, user in log.user.each()]
    for strength, order in _orders(log, split, policy, where, seed):
        for temperature, (own, chances) in product(temperatures, users):
            grown = []
            for number, traffic in enumerate(traffics):
                drawn = ("session noise", seed, split, strength, temperature, *_growth(number))
                shown = traffic.impressions(order, temperature, stream(*drawn))
                key = (strength, temperature, *own.values(), *_growth(number))
                rng = stream("clicks", seed, split, *key)
                more = replace(shown, clicks=rng.binomial(shown.impressions, chances(shown)))
                grown.append(added(grown[-1], more) if grown else more)
            for number, lane in _by_size(lanes, strength, temperature, own):
                # If a split has one size only, the lanes of all sizes have the same log.
                yield LaneLog(split, lane, grown[min(number, len(grown) - 1)])


def _by_size(
    lanes: Mapping, strength: float, temperature: float, own: Mapping
) -> Iterator[tuple[int, dict]]:
    """Number and columns of the lanes that differ in their sessions only."""
    values = {next(iter(lanes)): strength, "temperature": temperature}
    for number, size in enumerate(lanes.get("sessions", [None])):
        yield number, values | ({} if size is None else {"sessions": size}) | dict(own)


def draw_pages(
    log: SimulatedLog, split: str, policy: ScoredPairs, *, seed: int
) -> Iterator[pa.RecordBatch]:
    """Yield the pages of each lane, some thousands at a time. Each lane has its own sessions.

    Memory does not grow with the number of sessions. A larger log of the same lane begins with
    the pages of the smaller one.
    """
    lanes, pairs, positions = log.lanes, policy.pairs, log.positions
    pieces = np.diff([0, *log.sessions.of(split)]).tolist()
    where = mask(pairs.lengths, positions)
    relevance = pad(policy.relevance, pairs.offsets, positions)
    ids = {
        "queries": pairs.query[pairs.offsets[:-1]],
        "documents": pad(pairs.document, pairs.offsets, positions),
    }
    users = [(own, _clicker(user, relevance, positions)) for own, user in log.user.each()]
    for strength, order in _orders(log, split, policy, where, seed):
        for temperature, (own, clicker) in product(lanes["temperature"], users):
            for number, lane in _by_size(lanes, strength, temperature, own):
                # If a split has one size only, the lanes of all sizes have the same pages.
                for piece, sessions in enumerate(pieces[: number + 1]):
                    key = (strength, temperature, *own.values(), *_growth(piece))
                    yield from stream_sessions(
                        order,
                        clicker,
                        pairs.lengths,
                        sessions=sessions,
                        temperature=temperature,
                        rng=stream("pages", seed, split, *key),
                        split=split,
                        lanes=lane,
                        **ids,
                    )


def _orders(
    log: SimulatedLog, split: str, policy: ScoredPairs, where: np.ndarray, seed: int
) -> Iterator[tuple[float, np.ndarray | NoisyOrder]]:
    """Each strength, and the ranking of the policy of that strength, [queries, positions].

    A policy with noise in each session draws its rankings later. Without noise it ranks once.
    """
    about = log.queries.of(split)[0] if log.queries.ranked == "once" else split
    for strength in next(iter(log.policy.lanes.values())):
        if log.policy.noise == "session" and abs(strength) < 1:
            scores = pad(strength * policy.score, policy.pairs.offsets, where.shape[1])
            noise = (1 - abs(strength)) * NOISE_HIGH
            yield strength, NoisyOrder(np.where(where, scores, -np.inf), noise)
            continue
        # All strengths draw the same noise and ties, so that they differ in nothing else.
        rng = stream("policy noise", seed, about)
        scores = policy_scores(policy.score, strength, rng=rng)
        scores = pad(scores, policy.pairs.offsets, where.shape[1])
        yield strength, ranking_order(scores, where, tiebreak=rng.random(scores.shape))


def _growth(number: int) -> tuple:
    """The name of the draws by which a log grows. A first log has none, like a single log."""
    return ("growth", number) if number else ()


def truth_of(user: ClickModel, relevance: np.ndarray, positions: int) -> dict[str, np.ndarray]:
    """The logits of each part of a user, as its `truth` has them."""
    try:
        return user.truth(relevance, positions)
    except NotImplementedError as error:
        expected = "a model with a method `truth`, which tells how such users click"
        name = type(user).__name__
        raise InputError(f"{name} is no user", field="user", expected=expected) from error


def _chances(user: CellModel, relevance: np.ndarray, positions: int) -> Callable:
    """A function from impressions to the click probability of each cell."""
    truth = truth_of(user, relevance, positions)

    def of_cells(shown: Cells) -> np.ndarray:
        parts = {
            name: values[shown.query, shown.document]
            if user.parts[name] == PER_DOCUMENT
            else values[shown.position]
            if user.parts[name] == PER_POSITION
            else values
            for name, values in truth.items()
        }
        return np.asarray(user.click_probability(**parts))

    return of_cells


def _clicker(user: ClickModel, relevance: np.ndarray, positions: int) -> Sampler:
    """The sampler of clicks on pages, for `stream_sessions`."""
    truth = truth_of(user, relevance, positions)

    def sample(query, documents, where, *, rng):
        parts = {
            name: values[query[:, None], documents] if user.parts[name] == PER_DOCUMENT else values
            for name, values in truth.items()
        }
        chances = {name: Chance.from_logits(logits) for name, logits in parts.items()}
        return user.sample(chances, where, rng=rng)["clicks"]

    return sample
