"""Logs of users who are simulated on the rankings of a policy.

Their clicks are drawn as counts of cells (`draw_cells`) or page by page (`draw_pages`). Both have
the same distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from twotowers.errors import nearest
from twotowers.experiment.fields import Config, Positive, Share, config_error
from twotowers.experiment.log import Files, Log, need_pages, tower_inputs
from twotowers.experiment.parts import UserField, truth_of
from twotowers.files.rankings import mask, pad, read_rankings
from twotowers.logs.cells import LaneLog, read_logs, write_logs
from twotowers.logs.counts import Cells, added
from twotowers.logs.policies import (
    NOISE_HIGH,
    NoisyOrder,
    ScoredPairs,
    policy_scores,
    ranking_order,
    read_scores,
)
from twotowers.logs.sessions import write_sessions
from twotowers.logs.simulated_sessions import (
    Sampler,
    counts_of,
    read_lane_sessions,
    stream_sessions,
)
from twotowers.logs.simulation import Traffic
from twotowers.methods.task import Split
from twotowers.models.chances import Chance
from twotowers.models.protocol import PER_DOCUMENT, PER_POSITION, CellModel, ClickModel
from twotowers.randomness import stream
from twotowers.splits import SPLITS
from twotowers.towers.lane import Lanes, values_of

ANNOTATED = "annotated"
"""The relevance of labels."""
EXPERT = "expert"
"""The ranker that sorts by relevance, and needs no training."""


def _declared(name: str, info: ValidationInfo) -> str:
    """Refuse a ranker that the paper does not declare."""
    known = (info.context or {}).get("rankers")
    if name != EXPERT and known is not None and name not in known:
        raise config_error(f"{name!r} is not declared", nearest(name, [EXPERT, *known]))
    return name


RankerName = Annotated[str, AfterValidator(_declared)]
"""A ranker of the paper's `rankers`, or EXPERT."""


class Policy(Config):
    """How the documents were ranked. Lists are lanes."""

    ranker: RankerName
    """The ranker, one of `rankers`, or 'expert', which sorts by relevance."""
    strength: Lanes[Annotated[float, Field(ge=-1, le=1)]] | None = None
    """Strength of the ranker, from -1 (reversed) to 1 (Eq. 25 of Hager et al. 2025); 1 if
    absent."""
    mixing_weight: Lanes[Share] | None = None
    """Instead of a strength: the weight w in score = w x ranker + (1 - w) x noise (Zhang et al.
    2023)."""
    temperature: Lanes[Share] = 0.0
    """Probability that a session's ranking is uniformly random."""
    noise: Literal["once", "session"] = "once"
    """Of a strength or mixing weight below 1 in size: drawn once per query and document, or anew in
    each session, so that rankings vary."""

    @model_validator(mode="after")
    def _one_mixing(self) -> Policy:
        if self.strength is not None and self.mixing_weight is not None:
            raise config_error(
                "a policy cannot have both a strength and a mixing weight",
                "one of 'strength' (-1 to 1) and 'mixing_weight' (0 to 1)",
            )
        return self

    @property
    def lanes(self) -> dict[str, list[float]]:
        """The values of the mixing and of the temperature."""
        mixing = "strength" if self.mixing_weight is None else "mixing_weight"
        strength = 1.0 if self.strength is None else self.strength
        given = strength if self.mixing_weight is None else self.mixing_weight
        return {mixing: values_of(given), "temperature": values_of(self.temperature)}


class Sessions(Config):
    """Sessions per split. Lists are lanes. Each log contains the smaller ones."""

    train: Lanes[Positive]
    """Training sessions."""
    validation: Lanes[Positive]
    """Validation sessions."""
    test: Lanes[Positive]
    """Test sessions."""

    @model_validator(mode="after")
    def _growing(self) -> Sessions:
        given = {split: self.of(split) for split in SPLITS}
        lengths = {split: len(values) for split, values in given.items()}
        many = [values for values in given.values() if len(values) > 1]
        if many and (len({*map(len, many)}) > 1 or lengths["train"] == 1):
            raise config_error(
                f"the splits have {lengths} numbers of sessions",
                "lists of one length, or single numbers",
            )
        if any(values != sorted(values) for values in many):
            raise config_error(
                "the numbers of sessions do not rise",
                "from few to many: each log contains the smaller ones",
            )
        return self

    def of(self, split: str) -> list[int]:
        """The numbers of a split."""
        return values_of(getattr(self, split))

    @property
    def lanes(self) -> dict[str, list[float]]:
        """The column of several numbers: those of the training split."""
        train = self.of("train")
        return {"sessions": [float(number) for number in train]} if len(train) > 1 else {}


class Queries(Config):
    """Which queries the sessions ask."""

    split: Literal["train"] | None = None
    """The split that they are from; if absent, each split has its own queries."""
    first: Positive | None = None
    """The number of its queries, from the first; all if absent."""
    ranked: Literal["per split", "once"] = "per split"
    """Whether the noise and ties of the policy are drawn per split, or once for all splits, as when
    one log is divided."""

    def of(self, split: str) -> tuple[str, int | None]:
        """The split that a split's queries are from, and how many (None: all)."""
        return self.split or split, self.first


def _alone(key: str) -> Callable[[Any], Any]:
    """A validator that takes a text for the value of a key."""
    return lambda given: {key: given} if isinstance(given, str) else given


class SimulatedLog(Log):
    """Simulated users see the rankings of a policy."""

    has_features = True

    origin: Literal["simulation"] = Field("simulation", alias="from")
    """A simulation on the data set's rankings."""
    dataset: str
    """The data set with the documents."""
    relevance: Literal["annotated", "linear", "deep"]
    """What makes documents relevant to the user."""
    policy: Annotated[Policy, BeforeValidator(_alone("ranker"))]
    """How the documents were ranked."""
    user: UserField = Field(default="additive", validate_default=True)
    """The user: a click model of twotowers/models/ or of the paper's models/, and its constants.
    Lists are lanes, also of kinds (column `user_kind`)."""
    sessions: Sessions
    """Sessions per split, instead of those of the scale."""
    record: Literal["cells", "sessions"] = "cells"
    """Whether the log is kept as counts of cells, or as sessions."""
    queries: Annotated[
        Queries, BeforeValidator(_alone("split"), json_schema_input_type=Literal["train"] | Queries)
    ] = Queries()
    """The split that the queries of all sessions are from, or such settings."""

    @model_validator(mode="after")
    def _fits_together(self) -> SimulatedLog:
        if self.policy.noise == "session" and self.queries.ranked == "once":
            raise config_error(
                "noise in each session ranks anew each time",
                "no 'ranked', or noise that is drawn once",
                "queries",
            )
        for model in self.user.models:
            if model.has("PAGES"):
                need_pages(self, f"user {model.name!r}", "user")
        return self

    @property
    def lanes(self) -> dict[str, list]:
        return self.policy.lanes | self.sessions.lanes | self.user.lanes

    @property
    def datasets(self) -> list[str]:
        return [self.dataset]

    @property
    def has_pages(self) -> bool:
        return self.record == "sessions"

    @property
    def same_queries(self) -> bool:
        return len({self.queries.of(split) for split in SPLITS}) == 1

    def users(self, lanes: Sequence[Mapping]) -> list[ClickModel]:
        return [self.user.of(lane) for lane in lanes]

    def ranking(self, seed: int) -> dict[str, Any]:
        return {"relevance": self.relevance, "ranker": self.policy.ranker, "seed": seed}

    def clicks_inputs(self, files: Files, seed: int) -> dict[str, str]:
        return {"policy": files.path("policy", dataset=self.dataset, **self.ranking(seed))}

    def fit_inputs(self, files: Files, seed: int, setting: Any) -> dict[str, str]:
        rankings = {
            split: files.path("rankings", dataset=self.dataset, split=split) for split in SPLITS
        }
        return {**rankings, **self.clicks_inputs(files, seed), "clicks": self.clicks(files, seed)}

    def simulate(self, inputs: Mapping[str, str], output: str | Path, *, seed: int) -> None:
        policies = self._policies(inputs)
        draw = draw_pages if self.has_pages else draw_cells
        logs = (
            part
            for split, policy in policies.items()
            for part in draw(self, split, policy, seed=seed)
        )
        if self.has_pages:
            write_sessions(output, logs)
        else:
            write_logs(output, logs, {split: policy.pairs for split, policy in policies.items()})

    def splits(
        self, inputs: Mapping[str, str], lanes: Sequence[Mapping], *, seed: int, setting: Any
    ) -> dict[str, Split]:
        policies, positions = self._policies(inputs), self.positions
        pages = dict.fromkeys(SPLITS)
        if self.has_pages:
            every = {split: policy.pairs for split, policy in policies.items()}
            pages = read_lane_sessions(inputs["clicks"], lanes, pairs=every, length=positions)
        splits = {}
        for split, policy in policies.items():
            pairs, sessions = policy.pairs, pages[split]
            queries, first = self.queries.of(split)
            lists = read_rankings(inputs[queries])
            lists = lists if first is None else lists.first(first)
            where = mask(pairs.lengths, positions)
            counts = (
                read_logs(inputs["clicks"], lanes, split=split, pairs=pairs, length=positions)
                if sessions is None
                else counts_of(sessions, len(where), positions)
            )
            # Early stopping watches the weighted loss, as published; the test loss is plain.
            splits[split] = Split(
                inputs=tower_inputs(lists, where, setting.model.read),
                where=where,
                relevance=pad(policy.relevance, pairs.offsets, positions),
                counts=counts,
                sessions=sessions,
            )
        return splits

    def _policies(self, inputs: Mapping[str, str]) -> dict[str, ScoredPairs]:
        return {split: read_scores(inputs["policy"], *self.queries.of(split)) for split in SPLITS}


def draw_cells(
    log: SimulatedLog, split: str, policy: ScoredPairs, *, seed: int
) -> Iterator[LaneLog]:
    """Yield the counts of each lane. Lanes share their sessions; clicks are drawn for each."""
    traffics = [
        Traffic(
            policy.pairs.lengths,
            sessions=more,
            temperatures=log.lanes["temperature"],
            length=log.positions,
            rng=stream("traffic", seed, split, *_growth(number)),
        )
        for number, more in enumerate(_pieces(log, split))
    ]
    for order, lane, chances in _displays(log, split, policy, _chances, seed=seed):
        strength, temperature, *own = lane.values()
        grown = []
        for number, traffic in enumerate(traffics):
            drawn = ("session noise", seed, split, strength, temperature, *_growth(number))
            shown = traffic.impressions(order, temperature, stream(*drawn))
            rng = stream("clicks", seed, split, strength, temperature, *own, *_growth(number))
            more = replace(shown, clicks=rng.binomial(shown.impressions, chances(shown)))
            grown.append(added(grown[-1], more) if grown else more)
        for number, sized in _by_size(log, lane):
            # If a split has one size only, the lanes of all sizes have the same log.
            yield LaneLog(split, sized, grown[min(number, len(grown) - 1)])


def draw_pages(
    log: SimulatedLog, split: str, policy: ScoredPairs, *, seed: int
) -> Iterator[pa.RecordBatch]:
    """Yield the pages of each lane, some thousands at a time. Each lane has its own sessions.

    Memory does not grow with the number of sessions. A larger log of the same lane begins with
    the pages of the smaller one.
    """
    pairs, pieces = policy.pairs, _pieces(log, split)
    ids = {
        "queries": pairs.query[pairs.offsets[:-1]],
        "documents": pad(pairs.document, pairs.offsets, log.positions),
    }
    for order, lane, clicker in _displays(log, split, policy, _clicker, seed=seed):
        for number, sized in _by_size(log, lane):
            # If a split has one size only, the lanes of all sizes have the same pages.
            for piece, sessions in enumerate(pieces[: number + 1]):
                yield from stream_sessions(
                    order,
                    clicker,
                    pairs.lengths,
                    sessions=sessions,
                    temperature=lane["temperature"],
                    rng=stream("pages", seed, split, *lane.values(), *_growth(piece)),
                    split=split,
                    lanes=sized,
                    **ids,
                )


def _pieces(log: SimulatedLog, split: str) -> list[int]:
    """The sessions of the smallest log of a split, and those that each larger one has besides."""
    return np.diff([0, *log.sessions.of(split)]).tolist()


def _by_size(log: SimulatedLog, lane: Mapping) -> Iterator[tuple[int, dict]]:
    """Yield the lanes that differ only in their number of sessions: the number of each lane, and
    its columns in the log's order."""
    for number, size in enumerate(log.lanes.get("sessions", [None])):
        sized = {**lane, "sessions": size}
        yield number, {column: sized[column] for column in log.lanes}


def _displays(
    log: SimulatedLog, split: str, policy: ScoredPairs, function: Callable, *, seed: int
) -> Iterator[tuple[np.ndarray | NoisyOrder, dict[str, Any], Callable]]:
    """Yield what is shown and who clicks, for each strength, temperature and user.

    These are the ranking of the policy, [queries, positions]; the columns of the lane; and
    `function` of the user, the relevance [queries, positions] and the number of positions. Logs of
    all sizes share them. A policy with noise in
    each session draws its rankings later. Without noise it ranks once.
    """
    pairs, positions = policy.pairs, log.positions
    where = mask(pairs.lengths, positions)
    relevance = pad(policy.relevance, pairs.offsets, positions)
    users = [(own, function(user, relevance, positions)) for own, user in log.user.each()]
    about = log.queries.of(split)[0] if log.queries.ranked == "once" else split
    (mixing, strengths), (_, temperatures) = log.policy.lanes.items()
    for strength in strengths:
        if log.policy.noise == "session" and abs(strength) < 1:
            scores = pad(strength * policy.score, pairs.offsets, positions)
            noise = (1 - abs(strength)) * NOISE_HIGH
            order = NoisyOrder(np.where(where, scores, -np.inf), noise)
        else:
            # All strengths draw the same noise and ties, so that they differ in nothing else.
            rng = stream("policy noise", seed, about)
            scores = pad(policy_scores(policy.score, strength, rng=rng), pairs.offsets, positions)
            order = ranking_order(scores, where, tiebreak=rng.random(scores.shape))
        for temperature, (own, of_user) in product(temperatures, users):
            yield order, {mixing: strength, "temperature": temperature, **own}, of_user


def _growth(number: int) -> tuple:
    """The name of the draws by which a log grows. A first log has none, like a single log."""
    return ("growth", number) if number else ()


def _chances(user: CellModel, relevance: np.ndarray, positions: int) -> Callable:
    """A function from impressions to the click probability of each cell."""
    truth = truth_of(user, relevance, positions)

    def of_cells(shown: Cells) -> np.ndarray:
        at = {PER_DOCUMENT: (shown.query, shown.document), PER_POSITION: shown.position}
        parts = {name: values[at.get(user.parts[name], ...)] for name, values in truth.items()}
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
