"""Simulated clicks: users who see a policy's rankings; the objects of a paper's `logs`."""

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from twotowers.errors import InputError, check_choice, check_range
from twotowers.experiment.fields import Config, Positive, read
from twotowers.experiment.simulated import SimulatedLog
from twotowers.experiment.training import SVM, LambdaMART, TowerRanker
from twotowers.files.rankings import write_rankings
from twotowers.jobs.policies import write_policy
from twotowers.logs.click_log import ClickLog, Trained, read_log
from twotowers.logs.frames import PANDAS
from twotowers.models.protocol import ClickModel
from twotowers.simulations.rankings import RankingSet
from twotowers.splits import SPLITS
from twotowers.towers.lane import Lane, Lanes, values_of

HELD_OUT = 0.5
"""Sessions of validation and of test, as a share of those to train on."""
_Sessions = dict[str, Lanes[Positive]]
TOWER = {
    "learning_rate": 0.003, "batch": 64, "steps": 32, "epochs": 40, "patience": 2,
    "min_delta": 5e-4,
}  # fmt: skip
RANKERS: Mapping[str, tuple[type[Config], Mapping[str, Any]]] = {
    "linear": (TowerRanker, TOWER),
    "deep": (TowerRanker, TOWER),
    "lambdamart": (LambdaMART, {"queries": 20}),
    "svm": (SVM, {"share": 0.1, "cost": 200.0}),
}
"""Rankers that are trained on labels: the class of their settings, and their defaults."""


class Folder:
    """A folder for temporary files, which is removed with the last object that uses it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="twotowers-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class SimulatedClicks(Trained):
    """Clicks of simulated users, in files that are removed with it. `simulate` makes one.

    Attributes:
        settings: how they came about.
        rankings: the documents.
        seed: of the ranker, of what users see, and of their clicks.
        folder: where the files are.
    """

    settings: SimulatedLog
    rankings: RankingSet
    seed: int
    folder: Folder

    def __repr__(self) -> str:
        sessions = self.settings.sessions.of("train")[-1]
        user = ", ".join(each.name for each in self.settings.user.models)
        return f"<{sessions:,} sessions of {user} users on {self.rankings.name}>"

    @property
    def files(self) -> dict[str, str]:
        """What a fit of towers reads. They are gone with these clicks; `log` outlives them."""
        return {
            name: str(self.folder.path / f"{name}.parquet")
            for name in (*SPLITS, "policy", "clicks")
        }

    def log(self, split: str = "train", **lanes: Any) -> ClickLog:
        """The clicks of one split and lane as a log, for all that logs are asked.

        It is of pages if `simulate` has recorded "sessions", else it is counted.

        Args:
            split: "train", "validation" or "test".
            lanes: the value of each column that has several, such as `strength=1`.

        Raises:
            InputError: the split, a column or a value is unknown, or several lanes are left.

        Example:
            >>> from twotowers.simulations.rankings import stand_in
            >>> clicks = simulate(stand_in(queries=30), policy=policy(strength=[0, 1]), sessions=9)
            >>> clicks.log(strength=1)
            <click log of the frame: format 'cells'>
        """
        check_choice(split, SPLITS, field="split")
        known = self.settings.lanes
        for name in lanes:
            check_choice(name, known, field="lanes")
        for name, values in known.items():
            if (value := lanes.get(name, values[0] if len(values) == 1 else None)) not in values:
                expected = f"`log({name}=...)`, one of {', '.join(map(repr, values))}"
                raise InputError(f"{value!r} is none of the lanes", field=name, expected=expected)
        wanted = [("split", "==", split), *((name, "==", value) for name, value in lanes.items())]
        table = pq.read_table(self.files["clicks"], filters=wanted)
        # In memory, since the files are removed with these clicks.
        log = read_log(table.drop_columns(["split", *known]).replace_schema_metadata())
        log.kind = PANDAS
        return log


def policy(ranker: str = "expert", **options: Any) -> dict[str, Any]:
    """How documents are ranked, for `simulate`.

    Args:
        ranker: "expert" sorts by relevance; "linear", "deep", "lambdamart" and "svm" are trained
            on the labels.
        options: `strength` (-1 to 1; default 1), `mixing_weight`, `temperature` (the share of
            sessions that are shuffled; default 0), `noise`: see docs/settings.md,
            Policy. A list is lanes.

    Example:
        >>> policy(strength=[0, 1], temperature=0.5)
        {'ranker': 'expert', 'strength': [0, 1], 'temperature': 0.5}
    """
    return {"ranker": ranker, **options}


def simulate(
    rankings: RankingSet,
    *,
    policy: str | Mapping[str, Any] = "expert",
    user: str | Mapping[str, Any] | ClickModel = "additive",
    sessions: int | Sequence[int] | Mapping[str, int | Sequence[int]] = 100_000,
    relevance: str = "annotated",
    positions: int | None = None,
    record: str = "cells",
    queries: str | Mapping[str, Any] | None = None,
    seed: int = 0,
) -> SimulatedClicks:
    """Draw the clicks of simulated users on rankings.

    Arguments are those of a paper's log (docs/settings.md, SimulatedLog); lists are lanes.

    Args:
        rankings: from `load_rankings` or `stand_in`.
        policy: who ranked: a name, or `policy(...)`.
        user: who clicks: a click model, its name, or {"kind": name, constants}.
        sessions: to train on, from few to many if they are lanes; validation and test have half as
            many each. Or a number per split.
        relevance: what makes documents relevant: "annotated" (the labels), "linear" or "deep".
        positions: on a page, as many as the longest list or more; as many if None.
        record: "cells" keeps counts, "sessions" keeps pages, as models of pages need.
        queries: "train" lets all splits ask the training queries, as a parameter per pair needs.
        seed: of the ranker, of what users see, and of their clicks.

    Raises:
        InputError: an argument is unknown or out of range.

    Example:
        >>> from twotowers.simulations.rankings import stand_in
        >>> simulate(stand_in(queries=30), sessions=2_000)
        <2,000 sessions of additive users on stand-in for mslr30k>
    """
    check_range(seed, field="seed", low=0, high=2**31 - 1, whole=True)
    if not isinstance(sessions, Mapping):
        own = read(_Sessions, {"sessions": sessions})["sessions"]
        halves = [max(round(number * HELD_OUT), 1) for number in values_of(own)]
        held_out = halves if isinstance(own, Lane) else halves[0]
        sessions = {"train": sessions, "validation": held_out, "test": held_out}
    longest = max(int(lists.lengths.max()) for lists in rankings.splits.values())
    positions = longest if positions is None else positions
    check_range(positions, field="positions", low=longest, high=1000, whole=True)
    given = {
        "name": "clicks", "dataset": rankings.name, "relevance": relevance, "policy": policy,
        "user": user, "sessions": dict(sessions), "record": record, "positions": positions,
        **({} if queries is None else {"queries": queries}),
    }  # fmt: skip
    log = read(SimulatedLog, given, context={"rankers": RANKERS})
    longest_split = max(len(rankings.splits[log.queries.of(each)[0]].queries) for each in SPLITS)
    if (first := log.queries.first) is not None:
        check_range(first, field="queries.first", low=1, high=longest_split, whole=True)
    settings = None  # An expert needs no training.
    if log.policy.ranker in RANKERS:
        kind, own = RANKERS[log.policy.ranker]
        settings = kind(**{"kind": log.policy.ranker, **own}).plain()
    clicks = SimulatedClicks(log, rankings, seed, Folder())
    for split, lists in rankings.splits.items():
        write_rankings(lists, Path(clicks.files[split]))
    write_policy(
        clicks.files["policy"],
        rankings.splits,
        relevance=relevance,
        ranker=log.policy.ranker,
        settings=settings,
        seed=seed,
    )
    log.simulate(clicks.files, clicks.files["clicks"], seed=seed)
    return clicks
