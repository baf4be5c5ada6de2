"""The sections of a diagnosis: what was measured, in plain words, each number with its meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from twotowers.analysis.propensities import TARGET, UNLIKE
from twotowers.diagnosis import recommendations as lights
from twotowers.diagnosis import soundness
from twotowers.diagnosis.evidence import Evidence
from twotowers.diagnosis.model_sections import misfit, models, percent, policy, swaps_or_features
from twotowers.diagnosis.page import Column, Fact, Section, Table
from twotowers.fitting.curves import ENOUGH_SWAPS
from twotowers.identifiability.strength import sessions_needed
from twotowers.logs.health import LATER
from twotowers.report.words import numbered

LINKS = 6
"""Links that are listed."""
WITHOUT_PAGES = (
    "So clicks per page, missing positions, repeats, and what later pages bring are not told."
)
FEW = 20
"""Bias factors that are listed by component."""


def sections(found: Evidence) -> tuple[Section, ...]:
    """All sections, in order."""
    return (
        _health(found),
        _connected(found),
        _curve(found),
        swaps_or_features(found),
        misfit(found),
        policy(found),
        models(found),
        _what_to_do(found),
    )


def _health(found: Evidence) -> Section:
    health, seen = found.health, found.seen
    told = [f"{what[0].upper()}{what[1:]}. {action}" for what, action in soundness.warnings(found)]
    if health.copied:
        told.insert(0, f"{health.copied}: the log was appended, or written, more than once.")
    first = "Nothing looks wrong." if not told else told[0]
    pages = "% of pages"
    counted = "the log is counted, so its pages are not known" if health.pages is None else ""
    facts = [
        Fact(
            "Result pages",
            health.pages,
            "pages",
            "Rankings that were shown." if not counted else WITHOUT_PAGES,
            reason=counted,
        ),
        Fact("Documents shown", health.impressions, "impressions", "Rows of the log."),
        Fact(
            "Click rate",
            health.clicks / health.impressions,
            "clicks per impression",
            f"{numbered(health.clicks, 'click')} in all.",
        ),
        Fact(
            "Query-document pairs",
            health.pairs,
            "pairs",
            f"Of {numbered(health.queries, 'query', 'queries')}.",
        ),
        Fact(
            "Shown at most three times",
            percent(health.thrice, health.pairs),
            "% of pairs",
            "What such a pair attracts cannot be known from its own clicks.",
        ),
        Fact(
            "Shown at one position only",
            percent(health.one_position, health.pairs),
            "% of pairs",
            "These say nothing about position bias.",
        ),
        Fact(
            "Never clicked",
            percent(health.unclicked, health.pairs),
            "% of pairs",
            "These say nothing about position bias either.",
        ),
        Fact(
            "Without a click",
            percent(health.without, health.pages),
            pages,
            "Usual values are 30 to 70 %; near 0 means that such pages were dropped from the log.",
            reason=counted,
        ),
        Fact(
            "With several clicks",
            percent(health.several, health.pages),
            pages,
            "Only such pages tell whether users stop after a click.",
            reason=counted,
        ),
        Fact(
            "Pages with missing positions",
            found.gaps,
            "pages",
            "Positions of a page should be 1, 2, 3 and so on.",
            reason=counted,
        ),
        Fact("First position", health.first, "", "The smallest position of the log."),
        Fact(
            "Pages that show a document twice",
            health.repeats,
            "pages",
            "A click on such a document may be counted at the wrong place.",
            reason=counted,
        ),
        Fact(
            "Repeated stretches",
            health.repeated,
            "pages",
            f"They are there again, exactly {numbered(health.lag, 'page')} further on."
            if health.lag
            else "Pages that are there again at one distance, beyond chance: a log appended twice "
            "repeats all of them.",
            reason=counted,
        ),
        Fact(
            "Rankings shown twice and clicked alike",
            percent(health.alike, health.twins),
            "% of rankings",
            f"Of {numbered(health.twins, 'ranking')} that came twice, with several clicks at least "
            "once. Users hardly agree so far; copies do."
            if health.twins
            else "",
            reason=counted,
        ),
        Fact(
            "Queries not seen before",
            percent(health.unseen_queries, health.later),
            "% of impressions",
            f"Of the last {LATER:.0%} of the pages, in the order of the file: how much is of "
            "queries that earlier pages do not have.",
            reason=counted,
        ),
        Fact(
            "Pairs not seen before",
            percent(health.unseen_pairs, health.later),
            "% of impressions",
            "The same for pairs. A model with a parameter per pair knows nothing of these.",
            reason=counted,
        ),
    ]
    # Of a counted log, one line says for all of them why they are not there.
    facts = [each for each in facts if each.value is not None or each.name == "Result pages"]
    names = {
        "clicks_off_page": "Clicks off the page",
        "repeated_clicks": "Further clicks on a document",
        "pages_left_out": "Pages left out",
    }
    facts += [
        Fact(title, seen[name], name.split("_")[0], "The reader left these out.")
        for name, title in names.items()
        if seen.get(name)
    ]
    return Section("health", "Is the log sound?", (first, *told[1:]), tuple(facts))


def _connected(found: Evidence) -> Section:
    whole, names = found.whole, found.labels
    parts = found.curve_components
    number = np.unique(parts).size
    answer: list[str] = []
    links = numbered(len(whole.links), "link")
    if number > 1:
        answer.append(
            f"No. The log falls into {number} parts: no document was shown in two of them, so "
            "nothing in this log compares them."
        )
    elif whole.components > 1:
        answer.append(
            "Documents link all of it, but clicks do not: the documents between "
            f"{whole.components} parts were not clicked, or on one side only."
        )
    elif len(whole.links) and whole.links["swaps"].iloc[0] < ENOUGH_SWAPS:
        few = int((whole.links["swaps"] < ENOUGH_SWAPS).sum())
        answer.append(
            f"Connected, but not well: {few} of {links} rest on fewer than {ENOUGH_SWAPS:g} "
            "effective swaps. What lies beyond them is compared by hardly any click."
        )
    elif len(names) == 1:
        answer.append("There is one position only, so there is nothing to connect.")
    else:
        answer.append(f"Yes: {links}, and each rests on {ENOUGH_SWAPS:g} effective swaps or more.")
    groups = parts if number > 1 else whole.component
    if len(names) <= FEW and np.unique(groups).size > 1:
        parts_of = [lights.named(found, groups == each) for each in np.unique(groups)]
        answer.append("; ".join(f"Part {k}: {one}" for k, one in enumerate(parts_of, 1)) + ".")
    facts = (
        Fact(
            "Parts that documents link",
            int(number),
            "",
            "Two positions are linked if both showed the same document of the same query. With one "
            "part, position bias can be learned in principle (Chen et al. 2024, Theorem 1).",
        ),
        Fact(
            "Parts that clicks tie",
            whole.components,
            "",
            "Links whose documents were clicked on both sides. Only these carry information.",
        ),
        Fact(
            "Error between the two halves",
            whole.between if np.isfinite(whole.between) else None,
            "of a log-ratio",
            "How well the two parts that are tied the least can be compared: 0.1 is about 10 %.",
            reason="" if np.isfinite(whole.between) else "nothing ties them",
        ),
    )
    rows = tuple(
        (
            f"{names[int(link['one'])]} – {names[int(link['other'])]}",
            float(link["swaps"]),
            float(link["error"]),
            "nothing else ties the two" if link["share"] > 0.999 else "",
        )
        for link in whole.links.head(LINKS).to_dict("records")
    )
    tables: tuple[Table, ...] = ()
    if rows:
        columns = (
            Column("Link"),
            Column(
                "Effective swaps",
                "clicks",
                "clicks on documents shown at both places in turn that would tell as much; below "
                f"{ENOUGH_SWAPS:g} an interval is not to be trusted.",
            ),
            Column("Error", "of the log-ratio", "0.1 is about 10 % of the ratio, one sigma."),
            Column("Remark"),
        )
        tables = (Table("The weakest links between positions", columns, rows),)
    return Section("connected", "Is it connected, and how well?", tuple(answer), facts, tables)


def _curve(found: Evidence) -> Section:
    curve, counts = found.curve, found.product.counts
    times = sessions_needed(curve, 1.0, TARGET, found.product.growth)
    rows: list[tuple[Any, ...]] = []
    for k, name in enumerate(found.labels):
        known = bool(np.isfinite(curve.estimate[k]))
        reference = k == curve.reference
        rows.append(
            (
                name,
                float(curve.estimate[k]) if known else None,
                float(curve.low[k]) if known else None,
                float(curve.high[k]) if known else None,
                "reference" if reference else str(curve.reason[k]),
                None
                if reference or not np.isfinite(times[k])
                else float(np.ceil(times[k] * found.pages)),
                int(counts.shown[k]),
                int(counts.clicked[k]),
            )
        )
    unit = "pages" if found.health.pages else "impressions at the first position"
    columns = (
        Column(", ".join(found.bias)),
        Column(
            "Examination",
            "× the reference",
            "how often a document is looked at here, as a share of how often it would be at the "
            "reference.",
        ),
        Column("Low", "95 %"),
        Column("High", "95 %"),
        Column("Remark"),
        Column(
            "A tenth takes",
            unit,
            f"such a log of that size would know it to {TARGET:.0%}, one sigma. This log has "
            f"{found.pages:,.0f}.",
        ),
        Column("Shown", "impressions"),
        Column("Clicked", "clicks"),
    )
    sure, number = int(found.sure.sum()), len(found.sure)
    told = int(counts.clicks.sum())
    answer = (
        f"{sure} of {number} have an estimate beyond doubt (the reference among them). Where there "
        "is none, the remark says why.",
        f"The estimate asks, given how many clicks a pair had, at which position they fell. So it "
        f"rests on {numbered(told, 'click')} of "
        f"{numbered(len(counts.cluster), 'pair')} shown at several positions, and on no assumption "
        "of what attracts users.",
    )
    table = Table("Examination by position", columns, tuple(rows), bars=(1, 2, 3))
    return Section("curve", "How much less is examined further down?", answer, (), (table,))


def _what_to_do(found: Evidence) -> Section:
    names, swaps, pages = found.labels, found.swaps, found.swap_pages
    now = np.delete(found.whole.resistance[found.curve.reference], found.curve.reference)
    now = np.sqrt(np.maximum(now, 0))  # by the information; infinite where apart
    rows: list[tuple[Any, ...]] = []
    if len(now):
        rows.append(("Nothing: this log", None, float(now.max()), float(now.mean())))
        rows.append(
            (
                "Twice as much of the same",
                found.pages,
                float(now.max() / 2**0.5),
                float(now.mean() / 2**0.5),
            )
        )
    before = ""
    for count, swap in enumerate(swaps.to_dict("records"), start=1):
        this = f"swap {names[int(swap['one'])]} and {names[int(swap['other'])]}"
        what = "the same again" if this == before else this
        before = this
        rows.append(
            (
                ("S" + what[1:] if count == 1 else f"and {what}")
                + (" (joins two parts)" if swap["joins"] else ""),
                2.0 * count * pages,
                float(swap["worst"]),
                float(swap["mean"]),
            )
        )
    columns = (
        Column("What"),
        Column(
            "Traffic",
            "pages",
            f"each swap shows {pages:,} pages as they are, and as many with the two documents "
            "exchanged.",
        ),
        Column("Worst error", "of a log-ratio", "afterwards; ∞: nothing compares them."),
        Column("Mean error", "of a log-ratio", "0.1 is about 10 % of the ratio, one sigma."),
    )
    light = lights.lights(found)[2]
    answer = [light.answer, light.action]
    if found.product.inflation > UNLIKE:
        answer.append(
            "The errors below follow from the clicks alone. Queries differ, so that those of "
            f"section 3 are about {found.product.inflation:.1f} times as large."
        )
    return Section(
        "do",
        "What to do, and what would it change?",
        tuple(answer),
        (),
        (Table("More data: the same again, or swaps", columns, tuple(rows)),),
    )
