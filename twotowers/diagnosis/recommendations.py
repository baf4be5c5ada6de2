"""Three answers at a glance, from what a diagnosis measured. The rules, and nothing else.

1. *Is the log sound?* `twotowers.diagnosis.soundness` says. Red: much of it is there twice. Amber:
   something that a reader left out or a user should know changes what the log means.
2. *Can it give propensities?* Green: every position has an estimate beyond doubt, and the widest
   interval reaches to `PRECISE` times the estimate. Amber: those beyond doubt have at least `MOST`
   of what is shown, or all are beyond doubt but some are imprecise, or the log speaks for odds.
   Red: less.
3. *What to do?* The first of these that holds: mend the log; run swaps; use a click model instead
   of weights, since clicks depend on clicks above, or hardly a page has several;
   use another form; do not debias, since
   examination does not fall; use weights where they are known; use weights.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import stdtrit

from twotowers.diagnosis.evidence import ABOVE, Evidence
from twotowers.diagnosis.page import AMBER, GREEN, RED, Light
from twotowers.diagnosis.soundness import SOUND, dropped, single, soundness
from twotowers.fits.defaults import SURE
from twotowers.fitting.curves import ENOUGH_QUERIES, ENOUGH_SWAPS, number_of

PRECISE = 1.6
"""Largest factor, up or down at 95 %, to which a ratio is known for a green light."""
MOST = 0.9
"""Share of the impressions at positions beyond doubt, for an amber light."""
DEPENDS = 0.9
"""Odds ratio of a click with a click above it, below which users are taken to stop."""
FLAT = (0.8, 1.25)
"""Ratios that are as good as 1: no weight would change a click's value by more than a quarter."""
FEWEST = 0.1
"""Effective clicks, as a share of the clicks, below which weights are to be clipped."""
MORE_QUERIES = "Collect pages of more queries: the clicks would do, but too few queries have them."
"""The action if enough clicks tell, but too few queries tell how sure they are."""
LISTED = 6
"""Factors that are named, of many."""
ABLE, ADVICE = (
    partial(Light, question) for question in ("Can it give propensities?", "What should you do?")
)


def lights(found: Evidence) -> tuple[Light, Light, Light]:
    """The three lights of a log."""
    sound, able = soundness(found), _able(found)
    return sound, able, _of_towers(found, _advice(found, sound, able))


def unreadable(message: str) -> tuple[Light, Light, Light]:
    """The three lights of a log that its reader refuses."""
    nothing = "Unknown until the log can be read."
    return (
        SOUND(RED, f"No. {message}", "Mend this row, or tell the reader about it."),
        ABLE(RED, nothing, "Mend the log first."),
        ADVICE(RED, "Mend the log, then diagnose it again.", "Mend the log first."),
    )


def _able(found: Evidence) -> Light:
    sure, shown = found.sure, found.product.counts.shown
    share = float(shown[sure].sum() / shown.sum())
    number, kinds = int(sure.sum()), len(sure)
    worst = _widest(found)
    some = f"{number} of {kinds} {_plural(found)}, with {share:.0%} of the impressions,"
    if kinds == 1:
        return ABLE(
            RED,
            "No: everything was shown at one position.",
            "With one position there is no position bias to learn.",
        )
    known = f"each is known to a factor of {worst:.2g} or better"
    if number == kinds and worst <= PRECISE and form_of(found) == "odds":
        return ABLE(
            AMBER,
            f"As odds, at all {kinds} {_plural(found)}: the product curve, of which {known}, "
            "differs from that of odds, and the log speaks for odds.",
            "Read both curves in section 7.",
        )
    if number == kinds and worst <= PRECISE:
        more = ", if its form is right: odds differ" if form_of(found) == "open" else ""
        return ABLE(
            GREEN,
            f"Yes, at all {kinds} {_plural(found)}: {known}{more}.",
            "Read the curve in section 3.",
        )
    if number == kinds:
        times = (np.log(worst) / np.log(PRECISE)) ** 2
        return ABLE(
            AMBER,
            f"Roughly: all {kinds} {_plural(found)} have an estimate, the worst known only to a "
            f"factor of {worst:.2g}.",
            f"Collect {times:.1f} times as much, or run the swaps of section 8.",
        )
    if number > 1 and share >= MOST:
        return ABLE(
            AMBER,
            f"For most: {some} have an estimate beyond doubt. {_why_not(found)}",
            "Use those of section 3 that have no remark; leave the others out.",
        )
    if number == 1:
        return ABLE(
            RED,
            f"No: no other position can be compared with the first. {_why_not(found)}",
            "No model and no amount of such traffic mends this. Swaps do: section 8."
            if np.unique(found.curve_components).size > 1
            else MORE_QUERIES
            if few_queries(found)
            else "Collect more pages and queries, or run the swaps of section 8.",
        )
    return ABLE(
        RED,
        f"Only in part: {some} can be compared beyond doubt. {_why_not(found)}",
        MORE_QUERIES
        if few_queries(found)
        else "Run the swaps of section 8 before you use a curve.",
    )


def _widest(found: Evidence) -> float:
    """The factor to which the worst ratio beyond doubt is known, up or down at 95 %."""
    curve, sure = found.curve, found.sure
    return float((curve.high[sure] / curve.estimate[sure]).max(initial=1))


def _why_not(found: Evidence) -> str:
    """Why some factors are not sure."""
    parts = np.unique(found.curve_components).size
    if parts == len(found.sure):
        return "No document was shown at two positions."
    if parts > 1:
        return f"The log falls into {parts} parts that no document links."
    if found.whole.components > 1:
        return (
            f"Clicks tie only {found.whole.components} separate parts: the documents that link "
            "them were not clicked."
        )
    if (swaps := found.whole.swaps) < ENOUGH_SWAPS:
        halves = found.whole.halves
        half = named(found, halves != halves[found.curve.reference])
        return (
            f"Only {swaps:.2g} effective swaps tie {half} to the others, where {ENOUGH_SWAPS:g} "
            "are enough."
        )
    if few_queries(found):
        few = number_of(np.nanmin(found.curve.queries))
        queries = f"{few} {'query' if few == '1' else 'queries'}"
        return (
            f"Errors of the others rest on {queries} in effect, where {ENOUGH_QUERIES:g} are "
            "needed."
        )
    return "The reasons are in section 3."


def few_queries(found: Evidence) -> bool:
    """Whether all doubts are due to too few queries, which no swap mends."""
    curve, doubtful = found.curve, ~found.sure
    with np.errstate(invalid="ignore"):
        queries = (curve.swaps >= ENOUGH_SWAPS) & (curve.queries < ENOUGH_QUERIES)
    return bool(doubtful.any() and queries[doubtful].all())


def named(found: Evidence, which: np.ndarray) -> str:
    """Some factors [K] in words, such as "positions 1, 2"."""
    names = [found.labels[k] for k in np.flatnonzero(which)]
    what = _plural(found).removesuffix("s" if len(names) == 1 else "")
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{what} {', '.join(names[:LISTED])}{more}"


def _plural(found: Evidence) -> str:
    return "positions" if found.bias == ("position",) else "bias factors"


def _advice(found: Evidence, sound: Light, able: Light) -> Light:
    if sound.colour == RED:
        return ADVICE(
            RED,
            "Nothing with this log yet: copies count as further clicks.",
            "Remove the copies, then diagnose it again.",
        )
    if able.colour == RED:
        return ADVICE(
            RED,
            "Do not debias with propensities of this log yet. Any fit will give you some, but "
            "where the log does not tell they are the fit's own prior.",
            MORE_QUERIES if few_queries(found) else _first_swap(found),
        )
    if dropped(found):
        return ADVICE(
            AMBER,
            "Nothing that rests on whole pages: a log of pages with clicks only says that users "
            "stop after a click, whether they do or not.",
            "Log pages without a click, and diagnose that log.",
        )
    if depends(found):
        assert found.above is not None
        return ADVICE(
            AMBER,
            "Do not weigh clicks by the curve: users stop after a click. The curve is only the "
            "mean examination of each position.",
            "Fit a model that knows of clicks above: "
            f"twotowers fit LOG --model {best_above(found)}",
        )
    if single(found):
        return ADVICE(
            AMBER,
            "Do not weigh clicks by the curve: hardly a page has several clicks. Either users stop "
            "after a click, and the curve is only the mean examination of each position; or the "
            "log keeps one click of a page.",
            "If all clicks are logged, fit a model that knows of clicks above: "
            f"twotowers fit LOG --model {best_above(found)}",
        )
    form = form_of(found)
    if form == "odds":
        return ADVICE(
            AMBER,
            "Do not divide clicks by the product curve: odds describe these users better, and the "
            f"two curves differ by more than their errors, most {farthest(found)}.",
            "Use the odds of section 7 as the bias of an additive two-tower model, or train one: "
            f"twotowers propensities LOG{found.flags} --estimator odds",
        )
    if flat(found):
        return ADVICE(
            GREEN,
            f"Do not debias: all {_plural(found)} are examined alike, to within a quarter.",
            "Train on clicks as they are.",
        )
    if form == "open":
        return ADVICE(
            AMBER,
            "Weights may help, but two forms of the curve differ by more than their errors, and "
            f"the log does not say which is right. They differ most {farthest(found)}.",
            "Collect more, or train twice and keep what holds both times: with clicks weighed by "
            f"the product (twotowers weights LOG{found.flags} --out weights.csv), and with the "
            f"odds as the bias of an additive model (twotowers propensities LOG{found.flags} "
            "--estimator odds --out odds.csv).",
        )
    share = float(found.weights["share"].iloc[0])
    clip = ""
    if share < FEWEST:
        clip = " Clip the weights: without that, they leave few effective clicks (section 6)."
    if able.colour == AMBER:
        return ADVICE(
            AMBER,
            "Debias with care: use the curve where it has no remark." + clip,
            f"Weigh clicks at those positions (twotowers weights LOG{found.flags} --out "
            "weights.csv), and run the swaps of section 8 for the others.",
        )
    return ADVICE(
        AMBER if clip else GREEN,
        f"Debias: weigh each click by 1 / examination. {share:.0%} of the clicks are left in "
        f"effect.{clip}",
        f"twotowers weights LOG{found.flags} --out weights.csv",
    )


TOWERS = {
    (False, True): "Of two-tower models of these features a linear one passes every test and a "
    "deep one does not (section 5): use a linear one, or learn the curve first and keep it fixed.",
    (True, False): "A two-tower model of these features needs a deep tower; a linear one is wrong.",
    (True, True): "A two-tower model of these features is misspecified (section 5): learn the "
    "curve first, and keep it fixed while the ranker is trained.",
}
"""What follows if tests alarm of a linear tower, and of a deep one."""


def _of_towers(found: Evidence, light: Light) -> Light:
    """The advice, with what tests of two-tower models add."""
    more = TOWERS.get(found.towers.alarms) if found.towers else None
    if more is None or light.colour == RED:  # There is no curve to keep fixed.
        return light
    colour = AMBER if light.colour == GREEN else light.colour
    return replace(light, colour=colour, answer=f"{light.answer} {more}")


def depends(found: Evidence) -> bool:
    """Whether clicks make others below them rarer."""
    above = found.above
    return above is not None and above.p < SURE and above.ratio < DEPENDS


def best_above(found: Evidence) -> str:
    """The best click model whose clicks depend on clicks above."""
    if found.models is None:
        return "ubm"
    return next((name for name in found.models["model"] if name in ABOVE), "ubm")


def form_of(found: Evidence) -> str:
    """Which form fits: "either" if both curves agree within their errors, "product", "odds", or
    "open" if they differ and the log does not tell which is right; "none" if nothing can be
    compared."""
    if not found.both.any():
        return "none"
    if not found.apart.any():
        return "either"
    product, additive = (found.slopes[name].p < SURE for name in ("product", "additive"))
    votes = int(found.forms.low > 0) - int(found.forms.high < 0) + int(additive) - int(product)
    return "product" if votes > 0 else "odds" if votes < 0 else "open"


def farthest(found: Evidence) -> str:
    """Where the two forms differ most, in errors, with numbers; some factor is compared."""
    distance, error, _ = found.difference
    k = int(np.nanargmax(np.abs(distance) / error))
    one, other = (
        f"{curve.estimate[k]:.2g} ({curve.low[k]:.2g} to {curve.high[k]:.2g})"
        for curve in (found.curve, found.odds.curve)
    )
    return (
        f"at {named(found, np.arange(len(found.sure)) == k)}: examination {one}, odds {other}, "
        f"{np.expm1(abs(distance[k])):.0%} apart, error {error[k]:.1%}"
    )


def flat(found: Evidence) -> bool:
    """Whether every interval is within `FLAT`."""
    curve = found.curve
    other = np.arange(len(curve.estimate)) != curve.reference
    with np.errstate(invalid="ignore"):
        inside = (curve.low > FLAT[0]) & (curve.high < FLAT[1])
    return bool("position" in found.bias and found.sure.all() and inside[other].all())


def _first_swap(found: Evidence) -> str:
    swaps = found.swaps
    if not len(swaps):
        return "Show documents at other positions."
    one, other = (found.labels[int(swaps[end].iloc[0])] for end in ("one", "other"))
    # As sure as intervals are now, by Student's t.
    queries = found.curve.queries[found.sure]
    freedom = np.nanmin(np.append(queries, found.health.queries))
    with np.errstate(over="ignore"):
        error = found.product.inflation * swaps["worst"].to_numpy()
        worst = np.exp(stdtrit(max(freedom, 1), 0.975) * error)
    enough = np.flatnonzero(worst <= PRECISE)
    number = int(enough[0]) + 1 if len(enough) else len(swaps)
    first = (
        f"Exchange the documents of {_plural(found)} {one} and {other} on every second of "
        f"{2 * found.swap_pages:,} pages."
    )
    if not np.isfinite(worst[number - 1]):
        return f"{first} More swaps are needed than the {number} of section 8, which are the first."
    what = "this swap" if number == 1 else f"the first {number} swaps of section 8"
    factor = f"{worst[number - 1]:.2g}"
    return f"{first} With {what} every ratio would be known to a factor of {factor}."
