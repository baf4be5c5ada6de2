"""Sections of a diagnosis about models and weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twotowers.diagnosis import recommendations as lights
from twotowers.diagnosis import soundness
from twotowers.diagnosis.evidence import Evidence
from twotowers.diagnosis.page import Column, Fact, Section, Table
from twotowers.fits.defaults import SURE
from twotowers.report.words import numbered


def percent(part: float | None, whole: float | None) -> float | None:
    """A share in percent; None if it is not known."""
    return None if part is None or not whole else 100 * part / whole


def swaps_or_features(found: Evidence) -> Section:
    """How much of the information comes from swaps."""
    counts = found.product.counts
    share = 100 * float(counts.clicks.sum() / counts.clicked.sum())
    facts = (
        Fact(
            "Clicks that tell of bias",
            share,
            "% of clicks",
            "Clicks on documents that were shown at several positions. All information of the "
            "curve above comes from these swaps.",
        ),
        Fact(
            "Other clicks",
            100 - share,
            "% of clicks",
            "They tell of bias only through features of documents: by assuming that similar "
            "documents attract alike.",
        ),
    )
    answer = [
        f"{share:.0f} % of the clicks fell on documents that were shown at several positions. "
        "These swaps need no features, and the curve of section 3 uses only them."
    ]
    tables: tuple[Table, ...] = ()
    if found.towers is None:
        answer.append("No features were given, so what they would add is not told.")
    else:
        near = found.towers.linear.overlap
        answer.append(
            "Without swaps, features tell bias and relevance apart only where neighbouring "
            "positions show documents of similar features (Hager et al. 2025, Theorem 4.1)."
        )
        rows = tuple(
            (
                f"{found.labels[int(row['one'])]} – {found.labels[int(row['other'])]}",
                *(_finite(row[name]) for name in ("auc", "low", "high", "distance", "bound")),
            )
            for row in near.to_dict("records")
        )
        columns = (
            Column("Neighbours"),
            Column(
                "AUC",
                "",
                "how well features tell the two positions apart, on queries not used to learn it: "
                "0.5 not at all, so they overlap; 1 completely.",
            ),
            Column("Low", "95 %"),
            Column("High", "95 %"),
            Column("Nearest documents", "standard deviations"),
            Column(
                "Bound",
                "log-odds",
                "by how much two models with the same clicks may differ between the two positions, "
                "if relevance is as smooth as the fitted tower: 0 where one document was at both.",
            ),
        )
        tables = (Table("Overlap of features", columns, rows),)
    return Section("swaps", "Swaps or features?", tuple(answer), facts, tables)


TESTS = {
    "hausman": "Curve against swaps",
    "residual and score": "Residuals and the policy's score",
    "calibration": "Calibration by position and score",
    "linear against deep": "Linear against deep",
}
"""Tests of `twotowers.identifiability.misfit`, in words."""
MISFIT = {
    (False, False): "No test says so: a linear tower of these features describes the clicks.",
    (False, True): "A deep one is, by a test that a linear one passes. Either its training ended "
    "in a local optimum, or the test of the linear one is too weak to see what it lacks.",
    (True, False): "A linear tower is. A deep one passes every test.",
    (True, True): "Yes, linear and deep: these features leave out something that users and the "
    "policy know. The bias tower takes up what relevance misses (Hager et al. 2025, Lemma 5.2).",
}
"""The answer, if tests alarm of a linear tower, and of a deep one."""


def misfit(found: Evidence) -> Section:
    """Tests of a two-tower model."""
    key, title = "misfit", "Is a two-tower model misspecified?"
    towers = found.towers
    if towers is None:
        return Section(key, title, ("Not tested: that needs features of documents.",))
    score = "minus a document's mean position as the policy's score"
    if towers.scored:
        score = f"'{towers.scored}' as the policy's score, which is none of the features"
    answer = (
        MISFIT[towers.alarms],
        f"Log-odds of {numbered(towers.width, 'feature')}, on "
        f"{numbered(towers.pairs, 'query-document pair')} of queries chosen at random, with "
        f"{score}. {towers.missing:.0%} of their impressions have no features and were left out. "
        "p-values are corrected for their number (Holm).",
    )
    rows = tuple(
        (
            TESTS.get(row["test"], row["test"]),
            kind,
            _finite(row["adjusted"]),
            "misspecified" if row["alarm"] else str(row["reason"]) or "passes",
            *(_finite(row[name]) for name in ("value", "low", "high")),
            row["unit"],
        )
        for kind, each in (("linear", towers.linear), ("deep", towers.deep))
        for row in each.tests.to_dict("records")
    )
    columns = (
        Column("Test"),
        Column("Tower"),
        Column("p", "", "chance of such a result if the tower is right; below 0.05 it is not."),
        Column("Says"),
        Column("Value"),
        Column("Low", "95 %"),
        Column("High", "95 %"),
        Column("Unit"),
    )
    both = tuple(
        (
            found.labels[int(row["factor"])],
            *(_finite(row[name]) for name in ("tower", "conditional", "difference", "low", "high")),
            str(row["reason"]),
        )
        for row in towers.linear.curve.to_dict("records")
    )
    named = (
        Column(", ".join(found.bias)),
        Column("Linear tower", "odds × the reference"),
        Column("Swaps", "odds × the reference", "given each pair's clicks, without features."),
        Column("Difference", "of logarithms", "0 if the tower is right."),
        Column("Low", "95 %"),
        Column("High", "95 %"),
        Column("Remark"),
    )
    tables = (Table("Tests", columns, rows), Table("The curve of the tower", named, both))
    return Section(key, title, answer, (), tables)


def policy(found: Evidence) -> Section:
    """How freely documents are placed, and what weights would leave."""
    placed, health = found.placement, found.health
    alone = "" if np.isfinite(placed.entropy.low) else "fewer than two queries"
    nothing = "no document was shown twice" if not placed.shown else alone
    moved = 2 ** np.nan_to_num(placed.entropy.value)
    facts = (
        Fact(
            "Entropy of position given document",
            _finite(placed.entropy.value),
            "bits",
            f"A document has about {moved:.1f} positions to be at. 0 bits: always the same place. "
            f"Whatever the document, a position has {placed.overall:.2f} bits.",
            _finite(placed.entropy.low),
            _finite(placed.entropy.high),
            nothing,
        ),
        Fact(
            "Same position again",
            _finite(100 * placed.same.value),
            "% of pairs of showings",
            "How often a document that is shown twice is at the same position both times.",
            _finite(100 * placed.same.low),
            _finite(100 * placed.same.high),
            nothing,
        ),
        Fact(
            "Always at one position",
            percent(health.one_position, health.pairs),
            "% of pairs",
            "Documents whose position never changed.",
        ),
    )
    rows = tuple(
        (
            "none" if not np.isfinite(row["clip"]) else f"{row['clip']:g}",
            *(100 * row[name] for name in ("share", "low", "high", "clipped")),
        )
        for row in found.weights.to_dict("records")
    )
    columns = (
        Column("Largest weight"),
        Column(
            "Effective clicks",
            "% of clicks",
            "clicks of equal weight that would be as precise: (sum w)² / sum w², with w = "
            "1 / examination.",
        ),
        Column("Low", "95 %"),
        Column("High", "95 %", "from the errors of the curve."),
        Column("Cut", "% of clicks", "clicks whose weight is cut, which biases a ranker."),
    )
    table = Table("Inverse propensity weights", columns, rows)
    free = f"{placed.same.value:.0%}" if np.isfinite(placed.same.value) else "no known share"
    answer = [f"A document that is shown again is at the same position in {free} of the cases."]
    if not found.weighed.all():
        answer.append("Positions without an estimate have no weight; the table leaves them out.")
    doubtful = found.weighed & ~found.sure
    if doubtful.any():
        answer.append(
            f"They also rest on {lights.named(found, doubtful)}, where the curve is doubtful "
            "(section 3): trust their intervals, and no share."
        )
    title = "How freely does the policy place documents?"
    return Section("policy", title, tuple(answer), facts, (table,))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def models(found: Evidence) -> Section:
    """Which click model, and which form of the curve."""
    answer = [*_told_of_models(found)]
    above, forms = found.above, found.forms
    unknown = "the log is counted, so its pages are not known"
    if found.gaps:
        unknown = "positions are missing, and clicks there may be too"
    facts = [
        Fact(
            "Odds of a click with a click above it",
            None if above is None else _finite(above.ratio),
            "× without",
            "The same document at the same position, on pages with and without a click above. 1 "
            "for a position-based model; below 1, users stop after a click; above 1, clicks come "
            "together.",
            None if above is None else _finite(above.low),
            None if above is None else _finite(above.high),
            unknown if above is None else above.reason,
        ),
        Fact(
            "Product form predicts better by",
            _finite(forms.gain),
            "nats per held-out click",
            "Where held-out clicks of a pair fell, by ratios of examination and by ratios of odds. "
            "Below 0, odds predict better.",
            _finite(forms.low),
            _finite(forms.high),
            "" if np.isfinite(forms.low) else "too few pairs tell",
        ),
    ]
    for form, name in (("product", "Examination"), ("additive", "Odds")):
        slope = found.slopes[form]
        known = np.isfinite(slope.value)
        facts.append(
            Fact(
                f"{name} changes with attraction by",
                _finite(slope.value),
                "of itself per e-fold",
                "If the form is right, the ratio is the same for attractive and unattractive "
                f"documents, and this is 0 (p = {slope.p:.2g}).",
                _finite(slope.low),
                _finite(slope.high),
                "" if known else "too few pairs tell",
            )
        )
    return Section(
        "models", "Which click model?", tuple(answer), tuple(facts), tuple(_model_tables(found))
    )


def _told_of_models(found: Evidence) -> Iterator[str]:
    above = found.above
    if lights.depends(found):
        assert above is not None
        yield (
            f"Not a position-based one: with a click above it, the odds of a click are "
            f"{above.ratio:.2g} times those without. Users stop after a click, as in cascades. "
            "The curve of section 3 is then the mean examination of a position over all pages. It "
            "is no propensity of a single page, where examination depends on what is above."
        )
    elif several := soundness.single(found):
        yield (
            f"Not a position-based one, if all clicks are logged: {several}. Users stop after a "
            "click, as in cascades, or the log keeps one click of a page."
        )
    elif above is not None and above.p < SURE and above.ratio > 1 / lights.DEPENDS:
        yield (
            f"Clicks of a page come together: with a click above, the odds are {above.ratio:.2g} "
            "times those without. Users differ in how readily they click, which does not bend the "
            "curve."
        )
    elif above is not None and not above.reason:
        yield "Clicks do not depend on clicks above to a degree that matters."
    others = len(found.sure) - 1 - int(found.both.sum())
    all_compared = not others
    differ = "Ratios of examination and of odds differ by more than their errors"
    yield {
        "none": "Ratios of examination and of odds cannot be compared: no position but the "
        "reference has both beyond doubt.",
        "either": "Ratios of examination and ratios of odds agree within their errors, so the form "
        f"of the model does not matter {'here' if all_compared else 'where both are known'}.",
        "product": f"{differ}, and the product of attraction and examination describes the log "
        "better. Use section 3.",
        "odds": f"{differ}, and odds describe the log better: an additive two-tower model fits "
        "these users. The intervals of section 3 are then wrong, however narrow they are.",
        "open": f"{differ}, and the log does not say which form is right. Do not trust an interval "
        "of either alone.",
    }[lights.form_of(found)]
    if found.both.any():
        compared = numbered(found.both.sum(), "ratio")
        yield f"Of {compared} compared they differ most {lights.farthest(found)}."
        if others:
            yield f"Of {numbered(others, 'other')} this log does not tell."
    if found.models is None:
        yield "Click models were not compared: that needs several pages that are known as pages."


def _model_tables(found: Evidence) -> Iterator[Table]:
    if found.models is not None:
        rows = tuple(
            (
                row["model"],
                row["perplexity"],
                *(
                    _finite(row[name + ending])
                    for ending in ("", "_known", "_unseen")
                    for name in ("behind", "error")
                ),
            )
            for row in found.models.to_dict("records")
        )
        nats = "nats per document"
        columns = (
            Column("Model"),
            Column("Perplexity", "", "of held-out clicks: 1 is perfect, 2 a coin."),
            Column("Behind", nats, "by how much the best model predicts held-out clicks better."),
            Column("Error", nats, "clustered by query; a difference of two errors is no chance."),
            Column("Behind, known pairs", nats),
            Column("Error, known pairs", nats),
            Column("Behind, unseen pairs", nats, "documents that no training page showed."),
            Column("Error, unseen pairs", nats),
        )
        title = f"Click models on held-out pages, a fifth of {found.compared:,}"
        yield Table(title, columns, rows)
    one, other = found.curve, found.odds.curve
    distance, error, _ = found.difference
    rows = tuple(
        (
            name,
            *(_finite(getattr(other, what)[k]) for what in ("estimate", "low", "high")),
            "they differ" if found.apart[k] else str(other.reason[k]),
            _finite(one.estimate[k]),
            _finite(distance[k]),
            _finite(error[k]),
        )
        for k, name in enumerate(found.labels)
    )
    columns = (
        Column(", ".join(found.bias)),
        Column("Odds", "× the reference", "of a click, as an additive two-tower model has them."),
        Column("Low", "95 %"),
        Column("High", "95 %"),
        Column("Remark"),
        Column("Examination", "× the reference", "as in section 3."),
        Column("Difference", "of logarithms", "examination less odds; 0.1 is about 10 %."),
        Column("Error", "of it", "smaller than either curve's, since both follow the same clicks."),
    )
    yield Table("Two forms of the curve", columns, rows, bars=(1, 2, 3))
