"""Is a click log sound? The first light of a diagnosis, and what a user should know of a log."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from twotowers.diagnosis.evidence import Evidence
from twotowers.diagnosis.page import AMBER, GREEN, RED, Light
from twotowers.fits.defaults import STRAY
from twotowers.report.words import numbered

DROPPED = 0.01
"""Share of pages without a click, below which they are taken to have been left out."""
SINGLE, FEWEST_SEVERAL = 0.1, 20
"""Users stop after a click, or the log keeps one click of a page, if fewer pages than this share of
those by chance have several clicks. The test needs at least so many by chance."""
SOUND = partial(Light, "Is the log sound?")


def soundness(found: Evidence) -> Light:
    """The first light."""
    health = found.health
    if health.copied:
        return SOUND(
            RED,
            f"No. {health.copied}: the log was appended, or written, more than once.",
            "Remove the copies. Until then, tests and forecasts on this page count them, too.",
        )
    if told := list(warnings(found)):
        first, others = told[0], len(told) - 1
        more = f", and {others} more (section 1)" if others else ""
        return SOUND(AMBER, f"Mostly: {first[0]}{more}.", first[1])
    what = numbered(health.impressions, "impression")
    if health.pages:
        what = numbered(health.pages, "page")
    return SOUND(
        GREEN,
        f"Yes: {what}, {numbered(health.clicks, 'click')}, and nothing that looks wrong.",
        "Nothing to do.",
    )


def warnings(found: Evidence) -> Iterator[tuple[str, str]]:
    """What is wrong with a log but does not forbid its use: each with what to do."""
    health, seen = found.health, found.seen
    clicks = max(seen.get("clicks", health.clicks), 1)
    if rule := found.log.settings.get("seen"):
        yield (
            f"documents were left out by clicks (seen: {rule}), which biases propensities",
            "Diagnose the log without this rule.",
        )
    if found.gaps:
        yield (
            f"positions are missing on {numbered(found.gaps, 'page')}",
            "Find out why rows are missing; if only some documents are logged, clicks on the "
            "others are lost.",
        )
    if found.log.settings.get("gaps") == "close" and not found.gaps:
        yield (
            "gaps of positions were closed, so documents below one count as higher than users saw "
            "them",
            "Read their own positions: --column shown_at=POSITION --bias shown_at",
        )
    if dropped(found):
        yield (
            "hardly any page is without a click, so those were probably left out",
            "Log pages without a click, too: else clicks seem to depend on each other.",
        )
    if several := single(found):
        yield (
            f"{several}: users stop after a click, or the log keeps one click of a page",
            "Find out whether all clicks of a page are logged.",
        )
    if "position" not in found.bias:
        yield (
            "position is no bias factor, so its effect is mixed into the others'",
            f"Add it: --bias position {' '.join(found.bias)}",
        )
    if health.first > 1:
        yield (
            f"the first position is {health.first}",
            "Check whether the places above are logged elsewhere.",
        )
    if health.repeats and health.pages and health.repeats > STRAY * health.pages:
        yield (
            f"a document is there twice on {numbered(health.repeats, 'page')}",
            "Drop one of both rows, or give them different ids.",
        )
    strays = seen.get("clicks_off_page", 0)
    if strays > STRAY * clicks:
        yield (
            f"{strays / clicks:.0%} of the clicks are on documents that are not on their page",
            "Check how clicks are joined to pages.",
        )
    if seen.get("pages_left_out", 0) > STRAY * (health.pages or 1):
        yield (
            f"a document is there twice on {numbered(seen['pages_left_out'], 'page')}, "
            "left out here",
            "Check how pages are logged.",
        )
    if health.queries == 1:
        yield ("it has a single query", "Add queries: errors are estimated from their differences.")
    if found.log.layout.format == "rows" and "position" not in found.log.layout.columns:
        yield (
            "it has no column of positions, so the order of rows was taken for them",
            "Check that the rows of a page are in the order in which it was shown.",
        )


def single(found: Evidence) -> str:
    """How many pages have several clicks, if far fewer than chance would give; else ''."""
    chance, several = found.several, found.health.several
    if chance is None or several is None:
        return ""
    if chance < FEWEST_SEVERAL or several >= SINGLE * chance:
        return ""
    return f"{numbered(several, 'page')} have several clicks, where chance would give {chance:,.0f}"


def dropped(found: Evidence) -> bool:
    """Whether pages without a click seem to have been left out of the log."""
    health = found.health
    return (
        bool(health.pages)
        and health.without is not None
        and (health.without < DROPPED * health.pages)
    )
