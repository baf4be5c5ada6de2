"""A log as shops have them: mixed devices, bots, adverts, rows of results in view only, visits.

200,000 rows on 13,000 pages of 10 to 40 results. Results are examined with rank^-1/2 on desktops
and with rank^-1 on phones, and clicked by their attraction. `python -m benchmarks.validate
realistic` diagnoses each log as it is, and again with the options that the first diagnosis is
expected to propose. Counted, over draws: the share of intervals without doubt that hold the truth,
the doubtful ones, how often each light is green, and how often the page names the cause.

Thresholds, committed before the first run: where fewer than `HELD` of the intervals hold the truth,
no log has a green light of propensities (the second); with the options that are proposed, at least
`PROPOSED` of them hold it.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.pages import table, yes
from benchmarks.validate.study import Study, held
from twotowers.analysis.propensities import Propensities
from twotowers.diagnosis import rules
from twotowers.diagnosis.evidence import gather
from twotowers.diagnosis.page import Words, recommendations
from twotowers.errors import InputError
from twotowers.logs.click_log import read_log
from twotowers.randomness import stream
from twotowers.root import ROOT

HELD, PROPOSED = 0.85, 0.9
PAGES, QUERIES, CANDIDATES, USERS = 13_000, 800, 60, 3_000
LENGTHS, SHARES = (10, 20, 40), (0.7, 0.2, 0.1)
DEVICES = ("desktop", "mobile")
EXPONENT = {"desktop": 0.5, "mobile": 1.0}
BOTS = 0.02
"""Their share of the rows."""
ADVERTS, BLINDNESS = (1, 4), 0.5
"""Ranks of adverts on half of the pages, and how often an advert is examined beside a result."""
VISIT = 0.4
"""The chance that a page goes on with the visit of its user."""
LIGHTS = ("sound", "able", "advice")
PAGE = ROOT / "docs" / "diagnosis.md"
CASES = {
    "clean": ({}, {}),
    "devices": ({}, {"bias": ["position", "device"]}),
    "bots": ({"bots": 1.0}, {"bots": "drop"}),
    "bots that click half": ({"bots": 0.5}, {"bots": "drop"}),
    "bots, users not logged": ({"bots": 1.0, "users": False}, {"bots": "drop"}),
    "adverts": ({"adverts": True}, {"bias": ["position", "sponsored"]}),
    "results in view": ({"view": True}, {}),
    "visits": ({"visits": True}, {"page": ["session_id", "query"]}),
    "all": (
        {"bots": 1.0, "adverts": True, "view": True, "visits": True},
        {
            "bots": "drop",
            "bias": ["position", "device", "sponsored"],
            "page": ["session_id", "query"],
        },
    ),
}
"""Case -> options of the log, and options of reading it that are proposed."""
NAMES = {"bots": "bots", "adverts": "advert"}
"""Option -> a word of the page that names it."""


def simulate(
    rng: np.random.Generator, *, bots: float = 0.0, users: bool = True, adverts: bool = False,
    view: bool = False, visits: bool = False,
) -> pd.DataFrame:  # fmt: skip
    """The rows of a log in the order of time.

    Args:
        bots: the chance with which two bots click what they are shown, which is 2 % of the rows; 0
            for none.
        users: whether users are logged.
        adverts: half of the pages have results of their query at ranks 1 and 4 that are sponsored.
        view: only results that came into view are logged, up to a depth, with gaps.
        visits: pages have no id, but visits have.

    Returns:
        session (or session_id), query, sku, rank, device, click, and perhaps user, sponsored.
    """
    automatic = round(PAGES * BOTS * 15 / LENGTHS[-1]) if bots else 0
    traffic = 1 / np.arange(1, QUERIES + 1) ** 0.7
    query = rng.choice(QUERIES, PAGES, p=traffic / traffic.sum())
    active = 1 / np.arange(1, USERS + 1) ** 0.6
    user = rng.choice(USERS, PAGES, p=active / active.sum())
    mobile = rng.random(PAGES) < 0.5
    length = rng.choice(LENGTHS, PAGES, p=SHARES)
    bot = np.zeros(PAGES, bool)
    bot[rng.choice(PAGES, automatic, replace=False)] = True
    user[bot] = USERS + rng.integers(2, size=automatic)
    length[bot], mobile[bot] = LENGTHS[-1], False
    attraction = rng.beta(0.6, 3.4, (QUERIES, CANDIDATES))
    noisy = attraction[query] + rng.normal(0, 0.15, (PAGES, CANDIDATES))
    order = np.argsort(-noisy, 1)
    places, shows = np.arange(1, LENGTHS[-1] + 1), np.zeros(PAGES, bool)
    if adverts:
        shows = (rng.random(PAGES) < 0.5) & ~bot
        for rank in ADVERTS:  # A result from further down moves up.
            taken = rng.integers(rank, LENGTHS[0] + 5, PAGES)
            for page in np.flatnonzero(shows):
                own = order[page]
                own[rank - 1 : taken[page] + 1] = np.roll(own[rank - 1 : taken[page] + 1], 1)
    order = order[:, : LENGTHS[-1]]
    sponsored = shows[:, None] & np.isin(places, ADVERTS)
    exponent = np.where(mobile, EXPONENT["mobile"], EXPONENT["desktop"])
    examined = places ** -exponent[:, None] * np.where(sponsored, BLINDNESS, 1)
    chance = np.where(bot[:, None], bots, examined * attraction[query[:, None], order])
    click = rng.random(chance.shape) < chance
    logged = places <= length[:, None]
    if view:
        depth = np.where(bot, length, 4 + rng.geometric(0.15, PAGES))
        logged &= (places <= depth[:, None]) & (rng.random(logged.shape) < 0.9)
        logged[:, 0] |= ~logged.any(1)
    page, place = np.nonzero(logged)
    goes_on = (user[1:] == user[:-1]) & (rng.random(PAGES - 1) < VISIT)
    visit = np.append(0, np.cumsum(~goes_on))
    columns = {
        "session_id" if visits else "session": (visit if visits else np.arange(PAGES))[page],
        "query": query[page],
        "sku": order[page, place],
        "rank": place + 1,
        "device": np.array(DEVICES)[mobile.astype(int)][page],
        "click": click[page, place].astype(int),
    }
    if users:
        columns["user"] = user[page]
    if adverts:
        columns["sponsored"] = sponsored[page, place].astype(int)
    return pd.DataFrame(columns).assign(bot=bot[page])


def truth_of(rows: pd.DataFrame, names: pd.DataFrame, reference: int) -> np.ndarray:
    """[K] examination of each bias factor by people, relative to the reference.

    Without the device it is the mean of both, by the rows of each; without `sponsored`, that of
    results that are not.
    """
    rows = rows[~rows["bot"]].rename(columns={"rank": "position"})
    rows = rows.assign(truth=rows["position"] ** -rows["device"].map(EXPONENT).astype(float))
    if "sponsored" in names:
        rows["truth"] *= np.where(rows["sponsored"] == 1, BLINDNESS, 1)
    truth = rows.groupby(list(names.columns))["truth"].mean()
    values = names.merge(truth.reset_index(), how="left", on=list(names.columns))["truth"]
    return values.to_numpy() / values[reference]


def one_draw(case: str, seed: int) -> list[dict]:
    """A row for the log as it is, and one with the options that are proposed."""
    options, proposed = CASES[case]
    rows = simulate(stream("benchmark of realistic logs", case, seed), **options)
    named = [word for option, word in NAMES.items() if options.get(option)]
    return [
        {"case": case, "read": name, "seed": seed, **judged(rows, dict(how), () if how else named)}
        for name, how in (("as it is", {}), ("as proposed", proposed))
        if how or name == "as it is"
    ]


def judged(rows: pd.DataFrame, how: dict, named: Sequence[str]) -> dict:
    """How many intervals hold the truth, the colours of the three lights, and the causes named."""
    bias = how.pop("bias", ["position"])
    try:
        log = read_log(rows.drop(columns="bot"), columns={"position": "rank"}, **how)
        evidence = gather(log, bias, models=())
    except InputError as error:
        return {"refused": 1, "why": error.message}
    words = Words(evidence)
    lights = recommendations(evidence, words)
    answer: Propensities = evidence.product
    curve = answer.curve
    text = " ".join(f"{each.answer} {each.action}" for each in lights)
    text += " ".join(" ".join(words.say(each)) for each in rules.warnings(evidence))
    return {
        "refused": 0,
        **held(curve, truth_of(rows, curve.names, curve.reference)),
        **dict(zip(LIGHTS, (each.colour for each in lights), strict=True)),
        "names": float(all(word in text for word in named)) if named else np.nan,
    }


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    tables = []
    for (case, read), own in rows.groupby(["case", "read"], sort=False):
        row = {"case": case, "read": read, "draws": len(own), "refused": own["refused"].mean()}
        if "sure" in own and own["sure"].sum():
            row["held"] = own["inside"].sum() / own["sure"].sum()
            row["doubtful"] = 1 - own["sure"].sum() / own["factors"].sum()
            for light in LIGHTS:
                row[light] = (own[light] == rules.GREEN).mean()
            row["names"] = own["names"].mean()
        tables.append(row)
    return pd.DataFrame(tables)


STUDIES = {"realistic": Study("realistic", "case", CASES, one_draw, summary, draws=20)}


def tables() -> dict[Path, dict[str, str]]:
    rows = [
        row | {"verdict": verdict(row)} for row in STUDIES["realistic"].table().to_dict("records")
    ]
    columns = "case | read | intervals that hold = held : .2f | doubtful : .2f | "
    columns += "second light green = able : .2f | names the cause = names : .2f | "
    columns += "meets the thresholds = verdict"
    return {PAGE: {"realistic": table(rows, columns)}}


def verdict(row: dict) -> str:
    """Whether a row meets the thresholds, or why it has none."""
    if np.isnan(row["held"]):
        return "refused"
    enough = row["held"] >= PROPOSED or row["read"] != "as proposed"
    return yes(bool(enough and not (row["held"] < HELD and row["able"] > 0)))
