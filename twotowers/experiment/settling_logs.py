"""Logs of an experiment, completed: defaults filled in, lanes listed, all of it checked.

A list of values makes lanes: a policy's strength and temperature, a log's sessions, a user's
constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from twotowers.errors import InputError, check_range
from twotowers.experiment.parts import with_kind
from twotowers.experiment.registry import check_parameters, find

USER = "additive"
USER_LANE = "user_kind"
"""The column that tells users of several kinds apart."""
SIMULATION, DATASET, LISTS = "simulation", "dataset", "lists"
"""Where the clicks of a log come from."""
OWN = {
    SIMULATION: ("dataset", "relevance", "policy", "user", "sessions", "queries", "record"),
    DATASET: ("dataset", "split", "features", "bootstrap", "record"),
    LISTS: ("lists", "dataset", "policy", "contexts", "views", "repairs", "user"),
}
"""The keys of each kind of log, besides `from` and `positions`."""
NEAREST = "nearest"
"""What a repair merges, besides pairs that are told."""
ANNOTATED = "annotated"
"""The relevance of labels."""
WORDS = {SIMULATION: "simulated log", DATASET: "real log", LISTS: "log of lists"}


def settle_log(name: str, log: dict, sessions: dict, *, path: Path, paper: str) -> dict:
    """A log with its defaults and its lanes.

    Args:
        name: of the log.
        log: as in experiment.yaml.
        sessions: of the scale, per split.
        path, paper: the experiment that the log belongs to.

    Returns:
        The log with `lanes`: the values of each lane column. A simulated log also has `sessions`
        (a list per split), `ties` and `noise` (of its policy) and `user` (kind and constants,
        which may be lists).
    """
    field, source = f"logs.{name}", log.get("from", SIMULATION)
    if strange := [key for key in log if key not in ("from", "positions", *OWN[source])]:
        others = [f"'from: {other}'" for other, keys in OWN.items() if strange[0] in keys]
        raise InputError(
            f"a {WORDS[source]} has no {strange[0]!r}", path=path, field=field,
            expected=" or ".join(others),
        )  # fmt: skip
    if source == LISTS:
        return _settle_lists(log, path=path, field=field, paper=paper)
    if source == DATASET:
        if not abs(sum(log["split"].values()) - 1) <= 1e-9:
            raise InputError(
                f"the shares {log['split']} do not add up to 1", path=path,
                field=f"{field}.split", expected="a sum of 1",
            )  # fmt: skip
        if log.get("features"):
            need_pages(log, "a log of documents with features", path, field)
        return {**log, "lanes": {}}
    policy = dict(log["policy"])
    if "seed" in policy:
        raise InputError(
            "each run trains a ranker of its own", path=path, field=f"{field}.policy.seed",
            expected="no seed, or a log with 'from: lists'",
        )  # fmt: skip
    ranker = policy.pop("ranker")
    drawn = {"ties": policy.get("ties", "random"), "noise": policy.get("noise", "once")}
    queries = log.get("queries")
    if drawn["noise"] == "session" and isinstance(queries, Mapping) and "ranked" in queries:
        raise InputError(
            "noise in each session ranks anew each time", path=path, field=f"{field}.queries",
            expected="no 'ranked', or noise that is drawn once",
        )  # fmt: skip
    mixing = "mixing_weight" if "mixing_weight" in policy else "strength"
    if "mixing_weight" in policy and "strength" in policy:
        raise InputError(
            "a policy cannot have both a strength and a mixing weight", path=path,
            field=f"{field}.policy",
            expected="one of 'strength' (-1 to 1) and 'mixing_weight' (0 to 1)",
        )  # fmt: skip
    lanes = {
        mixing: [float(value) for value in listed(policy.get(mixing, 1.0))],
        "temperature": [float(value) for value in listed(policy.get("temperature", 0.0))],
    }
    sessions = {
        split: listed(number) for split, number in (log.get("sessions") or sessions).items()
    }
    lanes |= _budgets(sessions, path, field)
    user = _settle_user(log, path=path, field=f"{field}.user", paper=paper)
    if isinstance(user["kind"], list):
        lanes[USER_LANE] = user["kind"]
    lanes |= {
        key: [float(each) for each in value]
        for key, value in user.items()
        if key != "kind" and isinstance(value, list)
    }
    check_lanes(lanes, path, field)
    filled = {"ranker": ranker, **drawn, "sessions": sessions, "user": user, "lanes": lanes}
    return {**log, **filled}


def _settle_lists(log: dict, *, path: Path, field: str, paper: str) -> dict:
    """A log of given lists. It asks the same queries in all splits, of one user.

    Lists that a ranker sorted have its `ranker`, the `relevance` that it was trained on, and its
    seed, which all runs share.
    """
    ranked = "dataset" in log
    wanted = ("dataset", "policy", "contexts") if ranked else ("lists",)
    for key in ("dataset", "policy", "contexts", "lists"):
        if (key in log) != (key in wanted):
            state = "is missing" if key in wanted else "does not belong here"
            raise InputError(
                f"{key!r} {state}", path=path, field=field,
                expected="'lists', which are drawn; or 'dataset', 'policy' and 'contexts'",
            )  # fmt: skip
    user = _settle_user(log, path=path, field=f"{field}.user", paper=paper)
    for key, value in user.items():
        if isinstance(value, list):
            raise InputError(
                f"{key!r} is {value!r}", path=path, field=f"{field}.user", expected="one value"
            )
    lanes = {
        "repair": list(log["repairs"]),
        "views": [float(views) for views in listed(log["views"])],
    }
    check_lanes(lanes, path, field)
    for name, repair in log["repairs"].items():
        if ranked and ("swap" in repair or repair.get("merge", NEAREST) != NEAREST):
            possible = "'merge: nearest', or nothing, if a ranker sorts the lists"
        elif not ranked and "empty" in repair:
            possible = "no 'empty', since drawn lists have no empty places"
        elif {"merge", "swap"} <= repair.keys():
            possible = "one of 'merge' and 'swap'"
        else:
            continue
        raise InputError(
            f"is {repair!r}", path=path, field=f"{field}.repairs.{name}", expected=possible
        )
    if ranked:
        policy = log["policy"]
        if strange := [key for key in policy if key not in ("ranker", "seed")]:
            raise InputError(
                f"lists that are given have no {strange[0]!r}", path=path,
                field=f"{field}.policy", expected="'ranker' and 'seed'",
            )  # fmt: skip
        if "seed" not in policy:
            raise InputError(
                "'seed' is missing", path=path, field=f"{field}.policy",
                expected="the ranker's seed, which all runs share",
            )  # fmt: skip
        log = {**log, "ranker": policy["ranker"], "relevance": ANNOTATED}
    return {**log, "user": user, "lanes": lanes, "queries": "train"}


def _settle_user(log: Mapping, *, path: Path, field: str, paper: str) -> dict:
    """A log's user: its kind or kinds, and its constants, checked."""
    user = with_kind(log.get("user", USER))
    constants = {key: value for key, value in user.items() if key != "kind"}
    for name in listed(user["kind"]):
        kind = find("models", name, paper, path=path, field=field)
        if kind.pages:
            need_pages(log, f"user {kind.name!r}", path, field)
        check_parameters(kind, constants, path=path, field=field)
    check_numbers(constants, path, field)
    return user


def _budgets(sessions: Mapping[str, list], path: Path, field: str) -> dict[str, list]:
    """The lanes of several numbers of sessions. Their values are those of the training split."""
    lengths = {split: len(values) for split, values in sessions.items()}
    if set(lengths.values()) <= {1}:
        return {}
    several = [values for values in sessions.values() if len(values) > 1]
    if len({len(values) for values in several}) > 1 or len(sessions.get("train", [0])) == 1:
        raise InputError(
            f"the splits have {lengths} numbers of sessions", path=path,
            field=f"{field}.sessions", expected="lists of one length, or single numbers",
        )  # fmt: skip
    if any(list(values) != sorted(set(values)) for values in several):
        raise InputError(
            "the numbers of sessions do not rise", path=path, field=f"{field}.sessions",
            expected="from few to many: each log contains the smaller ones",
        )  # fmt: skip
    return {"sessions": [float(number) for number in sessions["train"]]}


def need_pages(log: Mapping, what: str, path: Path, field: str) -> None:
    """Raise InputError unless a log keeps what shared a page."""
    if log.get("record") != "sessions":
        raise InputError(
            f"{what} needs the clicks of whole pages", path=path, field=field,
            expected="a log with 'record: sessions'",
        )  # fmt: skip


def check_lanes(lanes: Mapping[str, list], path: Path, field: str) -> None:
    """Raise InputError for a column without values, or with the same value twice."""
    for column, values in lanes.items():
        if not values or any(value in values[:place] for place, value in enumerate(values)):
            raise InputError(
                f"{column!r} is {values!r}", path=path, field=field,
                expected="one value, or a list of different values",
            )  # fmt: skip


def check_numbers(constants: Mapping, path: Path, field: str) -> None:
    """Constants of click models are numbers. The model itself checks their range."""
    for key, value in constants.items():
        for number in listed(value):
            check_range(number, field=f"{field}.{key}", low=-1e9, high=1e9, path=path)


def listed(value) -> list:
    """A list as it is; any other value as a list of one."""
    return list(value) if isinstance(value, list) else [value]


def queries_of(log: Mapping, split: str) -> tuple[str, int | None]:
    """The queries of a split's sessions: the split that they are from, and how many (None: all)."""
    queries = log.get("queries") or {}
    if isinstance(queries, str):
        queries = {"split": queries}
    return queries.get("split", split), queries.get("first")
