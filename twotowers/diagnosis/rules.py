"""What a diagnosis recommends: of each question, the first rule whose condition holds.

The sentence of a message is the macro of that name in `report/templates/diagnosis.words.j2`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from twotowers.diagnosis.evidence import ABOVE, Evidence
from twotowers.fits.defaults import STRAY, SURE
from twotowers.fitting.curves import ENOUGH_QUERIES, ENOUGH_SWAPS, number_of
from twotowers.intervals import quantile
from twotowers.logs.strays import left_out

GREEN, AMBER, RED = "green", "amber", "red"
PRECISE = 1.6
"""Largest factor, up or down at 95 %, to which a ratio is known for a green answer."""
MOST = 0.9
"""Share of the impressions at reliable positions, for an amber answer."""
DEPENDS = 0.9
"""Odds ratio of a click with a click above it, below which users are taken to stop."""
FLAT = (0.8, 1.25)
"""Ratios that are as good as 1: no weight would change a click's value by more than a quarter."""
FEWEST = 0.1
"""Effective clicks, as a share of the clicks, below which weights are to be clipped."""
ALL = 0.9
"""Share of the impressions that are clicked, above which others are taken to have been left out."""
COST = 0.15
"""Weights that are off by so much, a standard deviation over clicks, are worth another training."""
MOSTLY = 0.5
"""Share of the impressions that are clicked, above which many others may have been left out."""
DROPPED = 0.01
"""Share of pages without a click, below which they are taken to have been left out."""
SINGLE, FEWEST_SEVERAL = 0.1, 20
"""Users stop after a click, or the log keeps one click of a page, if fewer pages than this share of
those by chance have several clicks. The test needs at least so many by chance."""


@dataclass(frozen=True)
class Rule:
    """A message and its colour, of evidence for which `when` is true."""

    message: str
    colour: str
    when: Callable[[Evidence], object]


def reliable_share(e: Evidence) -> float:
    """The share of impressions at reliable positions."""
    shown = e.product.counts.shown
    return float(shown[e.reliable].sum() / shown.sum())


def widest(e: Evidence) -> float:
    """The factor to which the worst reliable ratio is known, up or down at 95 %."""
    return float((e.curve.high[e.reliable] / e.curve.estimate[e.reliable]).max(initial=1))


def precise(e: Evidence) -> bool:
    """Whether every position is reliable, and known to a factor of `PRECISE`."""
    return bool(e.reliable.all() and widest(e) <= PRECISE)


def lacking(e: Evidence) -> str:
    """What all doubts are due to that no swap mends: too few "queries" or "users", or ""."""
    curve, doubtful = e.curve, ~e.reliable
    users = np.array(["effective users" in each for each in curve.reason])
    with np.errstate(invalid="ignore"):
        few = {"queries": curve.queries < ENOUGH_QUERIES, "users": users}
        enough = curve.swaps >= ENOUGH_SWAPS
    holds = (name for name, each in few.items() if (enough & each)[doubtful].all())
    return next(holds, "") if doubtful.any() else ""


def fewest_queries(e: Evidence) -> str:
    """The effective number of queries behind the worst estimate."""
    return number_of(np.nanmin(e.curve.queries))


def dropped(e: Evidence) -> bool:
    """Whether pages without a click seem to have been left out of the log."""
    pages, without = e.health.pages, e.health.without
    return bool(pages) and without is not None and without < DROPPED * pages


def single(e: Evidence) -> bool:
    """Whether far fewer pages have several clicks than chance would give."""
    chance, several = e.expected_several, e.health.several
    return (
        chance is not None
        and several is not None
        and chance >= FEWEST_SEVERAL
        and several < SINGLE * chance
    )


def clicks_above(e: Evidence) -> str:
    """How a click changes the odds of clicks below it: "fewer", "more", "same", or "unknown"."""
    above = e.above
    if above is None:
        return "unknown"
    if above.p < SURE and above.value < DEPENDS:
        return "fewer"
    if above.p < SURE and above.value > 1 / DEPENDS:
        return "more"
    return "unknown" if above.reason else "same"


def best_above(e: Evidence) -> str:
    """The best click model whose clicks depend on clicks above."""
    models = () if e.models is None else e.models["model"]
    return next((name for name in models if name in ABOVE), "ubm")


def form_of(e: Evidence) -> str:
    """Which form fits: "either" if both curves agree within their errors, "product", "odds", or
    "open" if they differ and the log does not show which is right; "none" if nothing can be
    compared."""
    if not e.comparable.any():
        return "none"
    if not e.differ.any():
        return "either"
    product, additive = (e.slopes[name].p < SURE for name in ("product", "additive"))
    return "open" if product == additive else "odds" if product else "product"


def flat(e: Evidence) -> bool:
    """Whether position hardly matters: all are reliable, with intervals within `FLAT`."""
    others = np.arange(len(e.reliable)) != e.curve.reference
    with np.errstate(invalid="ignore"):
        inside = (e.curve.low > FLAT[0]) & (e.curve.high < FLAT[1])
    return bool("position" in e.bias and e.reliable.all() and inside[others].all())


def to_clip(e: Evidence) -> bool:
    """Whether weights leave few effective clicks."""
    return bool(e.weights["share"].iloc[0] < FEWEST)


def swaps_needed(e: Evidence) -> tuple[int, float]:
    """How many of the planned swaps make every ratio known to a factor of `PRECISE`, or all; and
    the factor to which they make it known."""
    # As sure as intervals are now, by Student's t.
    freedom = np.nanmin(np.append(e.curve.queries[e.reliable], e.health.queries))
    with np.errstate(over="ignore"):
        error = e.product.inflation * e.swaps["worst"].to_numpy()
        worst = np.exp(quantile(max(freedom, 1)) * error)
    enough = np.flatnonzero(worst <= PRECISE)
    number = int(enough[0]) + 1 if len(enough) else len(worst)
    return number, float(worst[number - 1])


def lost(e: Evidence) -> list[str]:
    """What the reader left out of the log, or doubts, and is worth a warning."""
    return [*left_out(e.log.seen, STRAY)]


def _mostly_clicked(e: Evidence) -> bool:
    share = e.health.clicks / e.health.impressions
    return not e.bots and MOSTLY < share <= ALL


def _holes(e: Evidence) -> bool:
    return bool(e.holes and e.health.pages and e.holes > STRAY * e.health.pages)


def selected(e: Evidence) -> list[str]:
    """The warnings by which clicks may decide which rows and pages a log has."""
    return [name for name in warnings(e) if name in SELECTED]


def _order_of_rows(e: Evidence) -> bool:
    return e.log.layout.format == "rows" and "position" not in e.log.layout.columns


def _repeats(e: Evidence) -> bool:
    health = e.health
    return bool(health.repeats and health.pages and health.repeats > STRAY * health.pages)


def no_pages(e: Evidence) -> bool:
    """Whether the log has a row per document shown, and nothing that makes pages of rows."""
    layout = e.log.layout
    return layout.format == "cells" and "impressions" not in layout.columns


def off_form(e: Evidence) -> bool:
    """Whether clicks do not follow the product form, so that errors are larger than they seem."""
    return e.slopes["product"].p < SURE


SOUND = (
    Rule("clicked_rows_only", RED, lambda e: e.health.clicks > ALL * e.health.impressions),
    Rule("copies", RED, lambda e: e.health.copied),
    Rule("lost", AMBER, lost),
    Rule("no_pages", AMBER, no_pages),
    Rule("left_out_by_clicks", AMBER, lambda e: e.log.settings.get("seen")),
    Rule("bots", AMBER, lambda e: e.bots),
    Rule("mostly_clicked", AMBER, _mostly_clicked),
    Rule("gaps", AMBER, _holes),
    Rule("begins_below", AMBER, lambda e: e.gaps and not _holes(e)),
    Rule("gaps_closed", AMBER, lambda e: e.log.settings.get("gaps") == "close" and not e.gaps),
    Rule("clicked_pages_only", AMBER, dropped),
    Rule("one_click_a_page", AMBER, single),
    Rule("odd_positions", AMBER, lambda e: len(e.odd)),
    Rule("no_position", AMBER, lambda e: "position" not in e.bias),
    Rule("first_position", AMBER, lambda e: e.health.first > 1),
    Rule("repeated_documents", AMBER, _repeats),
    Rule("one_query", AMBER, lambda e: e.health.queries == 1),
    Rule("order_of_rows", AMBER, _order_of_rows),
    Rule("sound", GREEN, lambda e: True),
)
"""Is the log sound? The amber rules that hold are its warnings."""
SELECTED = ("left_out_by_clicks", "mostly_clicked", "gaps", "gaps_closed", "clicked_pages_only")
"""Those of them by which clicks may decide which rows and pages a log has."""
ABLE = (
    Rule("one_position", RED, lambda e: len(e.reliable) == 1),
    Rule("ranks_follow_clicks", AMBER, lambda e: e.follows_clicks),
    Rule("known_of_bots", AMBER, lambda e: e.bots and precise(e)),
    Rule("known_of_layouts", AMBER, lambda e: len(e.odd) and precise(e)),
    Rule("known_if_whole", AMBER, lambda e: selected(e) and precise(e)),
    Rule("known_as_odds", AMBER, lambda e: precise(e) and form_of(e) == "odds"),
    Rule("known_unless_bots", AMBER, lambda e: no_pages(e) and precise(e)),
    Rule("known_of_a_mixture", AMBER, lambda e: off_form(e) and precise(e)),
    Rule("known", GREEN, precise),
    Rule("known_roughly", AMBER, lambda e: e.reliable.all()),
    Rule("known_mostly", AMBER, lambda e: e.reliable.sum() > 1 and reliable_share(e) >= MOST),
    Rule("none_known", RED, lambda e: e.reliable.sum() == 1),
    Rule("known_in_part", RED, lambda e: True),
)
"""Can it give propensities?"""
ADVICE = (
    Rule("remove_copies", RED, lambda e: e.health.copied),
    Rule("do_not_debias_yet", RED, lambda e: first(ABLE, e).colour == RED),
    Rule("leave_out_bots", AMBER, lambda e: e.bots),
    Rule("log_all_pages", AMBER, dropped),
    Rule("users_stop", AMBER, lambda e: clicks_above(e) == "fewer"),
    Rule("users_may_stop", AMBER, single),
    Rule("name_layouts", AMBER, lambda e: len(e.odd)),
    Rule("use_sequential", AMBER, lambda e: e.follows_clicks),
    Rule("debias_if_whole", AMBER, selected),
    Rule("use_odds", AMBER, lambda e: form_of(e) == "odds"),
    Rule("do_not_debias", GREEN, flat),
    Rule("two_forms", AMBER, lambda e: form_of(e) == "open" and e.regret[0] > COST),
    Rule("name_pages", AMBER, lambda e: no_pages(e) and precise(e)),
    Rule("name_groups", AMBER, lambda e: off_form(e) and precise(e)),
    Rule("debias_in_part", AMBER, lambda e: first(ABLE, e).colour == AMBER),
    Rule("debias_clipped", AMBER, to_clip),
    Rule("debias", GREEN, lambda e: True),
)
"""What should you do? With features, `misspecified` may add to it."""


def first(rules: tuple[Rule, ...], e: Evidence) -> Rule:
    """The first rule that holds. The last of `rules` always does."""
    return next(rule for rule in rules if rule.when(e))


def warnings(e: Evidence) -> list[str]:
    """What is wrong with a log but does not forbid its use: messages of amber rules."""
    return [rule.message for rule in SOUND if rule.colour == AMBER and rule.when(e)]


def misspecified(e: Evidence) -> bool:
    """Whether a linear two-tower model of the given features is wrong."""
    return e.tower is not None and e.tower.alarm
