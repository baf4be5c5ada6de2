"""The numbers of a diagnosis by section; `report/templates/diagnosis.words.j2` has their words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from twotowers.analysis.propensities import TARGET
from twotowers.analysis.tower_tests import TowerTest
from twotowers.diagnosis.evidence import Evidence
from twotowers.identifiability.strength import times_needed
from twotowers.logs.strays import LEFT_OUT

LINKS = 6
"""Links that are listed."""


@dataclass(frozen=True)
class Fact:
    """A number.

    Attributes:
        name: what was measured.
        value: None if there is none.
        low, high: 95 % interval of an estimate; None for a count of the log, which has no error.
        unit: such as "pages" or "% of pages"; "" for a pure number.
        reason: why there is no value, or no interval.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    reason: str = ""


def facts_of(e: Evidence) -> dict[str, list[Fact]]:
    """The single numbers of each section."""
    swaps = 100 * float(e.product.counts.clicks.sum() / e.product.counts.clicked.sum())
    between = e.strength.between
    return {
        "health": [*_health(e)],
        "connected": [
            Fact("document_parts", int(np.unique(e.parts).size)),
            Fact("click_parts", e.strength.components),
            _fact(
                "halves_error",
                (between,),
                "of a log-ratio",
                "" if np.isfinite(between) else "untied",
            ),
        ],
        "swaps": [
            Fact("clicks_on_swaps", swaps, unit="% of clicks"),
            Fact("other_clicks", 100 - swaps, unit="% of clicks"),
        ],
        "models": [*_models(e)],
    }


def tables_of(e: Evidence) -> dict[str, dict[str, pd.DataFrame]]:
    """The tables of each section by name, without empty ones."""
    tables: dict[str, dict[str, pd.DataFrame]] = {
        "connected": {"links": _links(e)},
        "curve": {"curve": _curve(e)},
        "policy": {"weights": _weights(e)},
        "plan": {"plan": _plan(e)},
    }
    if e.models is not None:
        compared = e.models[["model", "perplexity", "behind", "error"]]
        tables["models"] = {"models": compared}
    if e.tower is not None:
        tables["misfit"] = {"test": _test(e.tower), "tower_curve": _tower_curve(e, e.tower)}
    return {
        section: {name: table for name, table in own.items() if len(table)}
        for section, own in tables.items()
    }


def _fact(name: str, numbers: Iterable[float], unit: str, reason: str = "") -> Fact:
    """A fact of a value, or of a value and its interval; NaN and infinity are no numbers."""
    known = [float(each) if np.isfinite(each) else None for each in numbers]
    return Fact(name, *known, unit=unit, reason=reason)


def _share(name: str, part: float | None, whole: float | None, of: str, reason: str = "") -> Fact:
    value = None if part is None or not whole else 100 * part / whole
    return Fact(name, value, unit=f"% of {of}", reason=reason)


def _health(e: Evidence) -> list[Fact]:
    health, why = e.health, "counted" if e.health.pages is None else ""
    pages, pairs, later = health.pages, health.pairs, health.later
    facts = [
        Fact("pages", pages, unit="pages", reason=why),
        Fact("impressions", health.impressions, unit="impressions"),
        Fact("click_rate", health.clicks / health.impressions, unit="clicks per impression"),
        Fact("pairs", pairs, unit="pairs"),
        _share("shown_rarely", health.thrice, pairs, "pairs"),
        _share("one_position", health.one_position, pairs, "pairs"),
        _share("never_clicked", health.unclicked, pairs, "pairs"),
        _share("without_clicks", health.without, pages, "pages", why),
        _share("several_clicks", health.several, pages, "pages", why),
        Fact("gaps", e.gaps, unit="pages", reason=why),
        Fact("first_position", health.first),
        Fact("repeated_documents", health.repeats, unit="pages", reason=why),
        Fact("repeated_pages", health.repeated, unit="pages", reason=why),
        _share("clicked_alike", health.alike, health.twins, "rankings", why),
        _share("unseen_queries", health.unseen_queries, later, "impressions", why),
        _share("unseen_pairs", health.unseen_pairs, later, "impressions", why),
    ]
    if (some := e.unusual) is not None:
        shares = {"unusual_pages": ("pages", some.pages), "unusual_clicks": ("clicks", some.clicks)}
        shares["largest_pages"] = "pages", some.largest_pages
        shares["largest_clicks"] = "clicks", some.largest_clicks
        facts += [
            Fact(name, 100 * share, unit=f"% of {of}")
            for name, (of, share) in shares.items()
            if some.known or not name.startswith("largest")
        ]
    left_out = [
        Fact(name, e.log.seen[name], unit="pages" if name.startswith("pages") else "clicks")
        for name in LEFT_OUT
        if e.log.seen.get(name)
    ]
    # Of a counted log, one line says for all of them why they are not there.
    return [each for each in facts if each.value is not None or each.name == "pages"] + left_out


def _models(e: Evidence) -> list[Fact]:
    above = e.above
    if above is None:
        why = "missing_positions" if e.gaps else "counted"
        odds = _fact("odds_above", (np.nan,), "× without", why)
    else:
        odds = _fact("odds_above", (above.value, above.low, above.high), "× without", above.reason)
    facts = [odds]
    for form, slope in e.slopes.items():
        numbers = slope.value, slope.low, slope.high
        why = "" if np.isfinite(slope.value) else "few_pairs"
        facts.append(_fact(f"{form}_slope", numbers, "of itself per e-fold", why))
    return facts


def _pairs_of_factors(e: Evidence, table: pd.DataFrame) -> list[str]:
    ends = zip(table["one"].astype(int), table["other"].astype(int), strict=True)
    return [f"{e.labels[one]} – {e.labels[other]}" for one, other in ends]


def _links(e: Evidence) -> pd.DataFrame:
    links = e.strength.links.head(LINKS)
    table = links[["swaps", "error"]].assign(
        remark=np.where(links["share"] > 0.999, "only_tie", "")
    )
    return _named(table, link=_pairs_of_factors(e, links))


def _curve(e: Evidence) -> pd.DataFrame:
    curve, counts = e.curve, e.product.counts
    times = times_needed(curve, TARGET, e.product.growth)
    known, reference = np.isfinite(curve.estimate), np.arange(len(times)) == curve.reference
    needed = np.where(reference | ~np.isfinite(times), np.nan, np.ceil(times * e.pages))
    columns = {
        "factor": e.labels,
        **{
            name: np.where(known, getattr(curve, name), np.nan)
            for name in ("estimate", "low", "high")
        },
        "remark": np.where(reference, "reference", curve.reason),
        "needed": needed,
        "shown": counts.shown.astype(int),
        "clicked": counts.clicked.astype(int),
    }
    return pd.DataFrame(columns)


def _test(tower: TowerTest) -> pd.DataFrame:
    test = tower.test
    result = "misspecified" if tower.alarm else test.reason or "passes"
    row = {"p": test.p, "result": result, "value": test.value, "low": test.low, "high": test.high}
    return pd.DataFrame([row])


def _tower_curve(e: Evidence, tower: TowerTest) -> pd.DataFrame:
    curve = tower.curve
    table = curve[["tower", "conditional", "difference", "low", "high"]]
    table = table.assign(remark=curve["reason"])
    return _named(table, factor=[e.labels[int(k)] for k in curve["factor"]])


def _weights(e: Evidence) -> pd.DataFrame:
    shares = 100 * e.weights.drop(columns="clip")
    clip = [f"{each:g}" if np.isfinite(each) else "none" for each in e.weights["clip"]]
    return _named(shares, largest=clip)


def _plan(e: Evidence) -> pd.DataFrame:
    now = np.delete(e.strength.resistance[e.curve.reference], e.curve.reference)
    now = np.sqrt(np.maximum(now, 0))  # by the information; infinite between separate parts
    rows = []
    if len(now):
        worst, mean = float(now.max()), float(now.mean())
        rows.append(("nothing", "", np.nan, worst, mean))
        rows.append(("twice", "", e.pages, worst / 2**0.5, mean / 2**0.5))
    for number, swap in enumerate(e.swaps.to_dict("records"), start=1):
        what = f"Swap {e.labels[int(swap['one'])]} and {e.labels[int(swap['other'])]}"
        traffic, errors = 2.0 * number * e.swap_pages, (float(swap["worst"]), float(swap["mean"]))
        rows.append((what, "joins" if swap["joins"] else "", traffic, *errors))
    return pd.DataFrame(rows, columns=["step", "remark", "pages", "worst", "mean"])


def _named(table: pd.DataFrame, **column: Sequence[str]) -> pd.DataFrame:
    """The table with a first column of names."""
    (name,) = column
    return table.assign(**column)[[name, *table.columns]].reset_index(drop=True)
