"""How much less a document is examined at one position than at another, from a raw click log."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd

from twotowers.analysis.feedback import Feedback, by_user, feedback_of, needed_columns
from twotowers.errors import InputError, check_choice, check_names, check_range
from twotowers.files.artefacts import atomic, check_target
from twotowers.files.tables import write_csv
from twotowers.fits.defaults import BIAS, SURE
from twotowers.fits.defaults import ESTIMATORS as NAMES
from twotowers.fitting.conditional import fit_conditional
from twotowers.fitting.curves import Curve
from twotowers.fitting.harvesting import harvest
from twotowers.fitting.pair_counts import PairCounts
from twotowers.fitting.specification import fit_slope
from twotowers.identifiability.strength import (
    Strength,
    best_swaps,
    growth_of,
    strength,
    strength_of_log,
    times_needed,
    weakest_link,
)
from twotowers.intervals import Tested
from twotowers.logs.click_log import ClickLog, as_log, check_clicks
from twotowers.logs.frames import Native, both_ends, native
from twotowers.logs.health import multiple
from twotowers.logs.strays import left_out
from twotowers.randomness import stream
from twotowers.report.shown import Drawn, Line, lines_of
from twotowers.report.words import ANYTHING, numbered

ESTIMATORS: dict[str, Callable[..., Curve]] = {
    "conditional": fit_conditional,
    "odds": partial(fit_conditional, form="additive"),
    "all_pairs": partial(harvest, estimator="all_pairs"),
    "adjacent_chain": partial(harvest, estimator="adjacent_chain"),
    "pivot_one": partial(harvest, estimator="pivot_one"),
}
"""Estimators from counts, by name. `conditional` is the default where ranks do not follow clicks,
because its intervals keep their promise (benchmarks/validate)."""
AUTOMATIC, CONDITIONAL, SEQUENTIAL = "automatic", "conditional", "sequential"
FORMS = {"conditional": "product", "odds": "additive"}
"""The form of examination and relevance that an estimator supposes, where a test of it is known."""
WITHOUT_GRAPH = ("all_pairs", "adjacent_chain", "pivot_one")
"""Of these, the information is no graph between bias factors. They also need pairs without a
click."""
TARGET = 0.1
"""The error of a log-ratio for which sessions are forecast: about a tenth of the ratio."""
UNLIKE = 1.5
"""An `inflation` above it is printed."""
ENDINGS = (".csv", ".parquet")
"""Of files that a curve is written to."""
WIDTH = 24
"""Characters of the printed curve."""


@dataclass(frozen=True, eq=False, repr=False)
class Propensities(Drawn):
    """Examination of each bias factor, relative to the first position. `propensities` makes one.

    `print` shows a table with a small curve, and what is weak about it: bars are full up to the low
    end of the interval. `plot` draws it, and so does a notebook.

    Attributes:
        curve: the estimates.
        estimator: by which they were made.
        bias: the columns that name a bias factor.
        counts: clicks and impressions of pairs that were shown at several positions.
        log: the log, which `write` does not replace.
        feedback: whether ranks follow clicks; None if that was not asked, or cannot be known.
        conditional: the conditional curve, where the sequential one is given instead.
    """

    curve: Curve
    estimator: str
    bias: tuple[str, ...]
    counts: PairCounts
    log: ClickLog
    feedback: Feedback | None = None
    conditional: Curve | None = None

    def frame(self) -> Native:
        """A row per bias factor.

        Returns:
            a frame: the bias columns; estimate (the ratio to the reference; of `odds` a ratio of
            odds), error (standard error of its logarithm), low and high (95 %), swaps (the
            effective number of clicks on swapped documents behind it), queries (the effective
            number of queries), and reason (why there is no estimate, or why to doubt it). Where the
            sequential curve was chosen, also `conditional`, the estimate that was not.
        """
        return native(self._table(), self.log.kind)

    def curves(self) -> tuple[list[Line], str]:
        """What `plot` draws."""
        measure = "odds of a click" if self.estimator == "odds" else "examination"
        return lines_of(self._table(), self.bias), measure

    def _table(self) -> pd.DataFrame:
        table = self.curve.frame()
        return (
            table
            if self.conditional is None
            else table.assign(conditional=self.conditional.estimate)
        )

    @cached_property
    def strength(self) -> Strength:
        """How well the log's bias factors hang together (`twotowers.identifiability.strength`).

        Raises:
            InputError: the estimator is one of harvesting, which weighs no links.
        """
        check_links(self.estimator)
        return strength(self.curve.information)

    @cached_property
    def growth(self) -> np.ndarray:
        """[K] the power of sessions by which information grows (`growth_of`)."""
        return growth_of(self.counts, self.curve)

    @cached_property
    def slope(self) -> Tested | None:
        """A test of the form that the estimator supposes (`twotowers.fitting.specification`).

        Under the product form, a position takes the same share of the clicks of every document;
        under odds, it changes the odds of every document alike. The test asks whether documents
        that attract more differ. It does not ask whether clicks depend on clicks above, as
        `twotowers.diagnose` does. None if the estimator supposes neither form.
        """
        if self.estimator not in FORMS:
            return None
        form, rng = FORMS[self.estimator], stream("diagnosis, slope")
        return fit_slope(self.counts, self.curve, form=form, rng=rng)

    @cached_property
    def inflation(self) -> float:
        """How many times as large as by the number of clicks the errors are, since queries differ.

        It is the median of error / sqrt(4 / swaps) over all bias factors, and at least 1. Links and
        forecasts of swaps know the number of clicks alone.
        """
        ratio = self.curve.error * np.sqrt(self.curve.swaps) / 2
        known = ratio[np.isfinite(ratio)]
        return max(1.0, float(np.median(known))) if len(known) else 1.0

    def warnings(self) -> Iterator[str]:
        """What speaks against the whole curve: clicks that were left out, copies, or the test
        `slope`."""
        yield from left_out(self.log.seen)
        counts = np.append(self.counts.impressions, self.counts.clicks)
        if (times := multiple(counts, (self.counts.clicks > 0).sum())) > 1:
            yield (
                f"every count of this log is a multiple of {times}: was each row written {times} "
                f"times? Then swaps and tests count each click {times} times"
            )
        if self.slope is not None and self.slope.p < SURE:
            yield (
                f"these clicks do not follow the {FORMS[self.estimator]} form that this curve "
                f"supposes (p = {self.slope.p:.1g}), so its intervals are too narrow: "
                "twotowers diagnose compares two forms"
            )

    def swaps(self, *, pages: float, steps: int = 5) -> Native:
        """Swaps to run: each the one that lowers the errors most, after those before it.

        A swap shows a list as it is, and with the documents of two places exchanged. The forecast
        supposes that its pages are drawn from those of the log.

        Args:
            pages: of each of both arrangements.
            steps: how many swaps.

        Returns:
            a frame: the bias columns of both places (the second ones with the ending `_with`),
            clicks that the swap adds, whether it joins parts of the log that nothing ties, and
            worst and mean: errors of the log-ratios afterwards.
        """
        proposed = self.swaps_by_number(pages=pages, steps=steps)
        ends = both_ends(self.curve.names, proposed["one"], proposed["other"])
        more = proposed[["clicks", "joins", "worst", "mean"]]
        return native(pd.concat([ends, more], axis=1), self.log.kind)

    def swaps_by_number(self, *, pages: float, steps: int = 5) -> pd.DataFrame:
        """The swaps as `twotowers.identifiability.strength.best_swaps` has them."""
        check_range(pages, field="pages", low=1, high=1e12)
        check_range(steps, field="steps", low=1, high=1000, whole=True)
        check_links(self.estimator)
        curve, counts = self.curve, self.counts
        rates = counts.clicked / np.maximum(counts.shown, 1)
        # Of a factor without an estimate, half of the fall of clicks is taken for examination.
        guess = np.sqrt(rates / max(rates[curve.reference], 1e-9))
        # A document on a page that is swapped is on others of them, too.
        own = 1 + pages * counts.repeats / np.maximum(counts.shown, 1)
        examination = np.where(np.isfinite(curve.estimate), curve.estimate, guess)
        examination = np.maximum(examination, 1e-3)
        return best_swaps(
            strength_of_log(counts).information,  # of all parts, not only the reference's
            examination,
            np.maximum(rates / examination, 1e-6),
            pages=pages,
            steps=steps,
            before=counts.repeats / own,
            reference=curve.reference,
        )

    def write(self, path: str | Path) -> None:
        """Write `frame` as csv or parquet, by the ending.

        Raises:
            InputError: another ending, there is no such folder, or the file is the log itself.
        """
        check_target(path, self.log, *ENDINGS)
        table = self._table()
        with atomic(path) as temporary:
            if Path(path).suffix == ".csv":
                write_csv(table, temporary, float_format="%.6g")
            else:
                table.to_parquet(temporary, index=False)

    def lines(self) -> Iterator[str]:
        """What is printed."""
        curve, names = self.curve, self.curve.names
        pairs = numbered(len(self.counts.cluster), "query-document pair")
        yield (
            f"only documents that changed places show bias: {pairs} with "
            f"{numbered(self.counts.clicks.sum(), 'click')}, at several of "
            f"{numbered(len(names), 'bias factor')}"
        )
        head, labels = ", ".join(self.bias), curve.labels
        width = max(len(head), *map(len, labels))
        yield f"{head:<{width}}  examination  interval of 95 %"
        top = np.nanmax(np.append(curve.estimate, 1.0))
        for k, label in enumerate(labels):
            if not np.isfinite(curve.estimate[k]):
                yield f"{label:<{width}}  {'-':>11}  {curve.reason[k]}"
                continue
            low, high = np.nan_to_num([curve.low[k], curve.high[k]], nan=curve.estimate[k])
            sure = max(round(WIDTH * min(low, top) / top), int(k == curve.reference))
            bar = "█" * sure + "░" * (round(WIDTH * min(high, top) / top) - sure)
            interval = "reference" if k == curve.reference else self._interval(k)
            doubt = f"  {curve.reason[k]}" if curve.reason[k] else ""
            yield f"{label:<{width}}  {curve.estimate[k]:>11.3f}  {interval:<20}{bar}{doubt}"
        yield from self._weak()
        yield from self._order()

    def _order(self) -> Iterator[str]:
        """Lines on what the order of pages shows."""
        if self.conditional is not None and self.feedback is not None and self.feedback.detected:
            test, last = self.feedback.test, int(np.nanargmin(self.conditional.estimate))
            yield (
                f"ranks follow clicks in this log: after a click a document stands "
                f"{abs(test.value):.2g} positions {'higher' if test.value > 0 else 'lower'} "
                f"(p = {test.p:.1g}). So this is the sequential curve, which allows for that. The "
                f"conditional one is biased here: {self.conditional.estimate[last]:.3f} at "
                f"{self.curve.labels[last]}"
            )
        untested = []
        if self.feedback is None and self.estimator == CONDITIONAL:
            untested.append("whether ranks follow clicks (the pages and their order are not known)")
        elif self.feedback is not None and self.feedback.order == "file":
            untested.append(
                "whether pages are in the order of time (no column of times): only then does the "
                "test see ranks that follow clicks"
            )
        if self.log.counted or "user" not in self.log.ids:
            untested.append("whether users differ (no column of users): then errors are too small")
        if untested:
            yield f"not known: {'; '.join(untested)}"

    def _interval(self, k: int) -> str:
        low, high = self.curve.low[k], self.curve.high[k]
        return "anything" if low * ANYTHING < high else f"{low:.3f} to {high:.3f}"

    def _weak(self) -> Iterator[str]:
        """Lines on the weakest link, on how many more sessions are needed, and on a wrong form."""
        if self.estimator not in WITHOUT_GRAPH and len(self.strength.links):
            yield weakest_link(self.strength, self.curve.labels.__getitem__)
            if self.inflation > UNLIKE:
                yield (
                    f"that is by the clicks alone; queries differ, so the errors above are about "
                    f"{self.inflation:.1f} times as large"
                )
        times = times_needed(self.curve, TARGET, self.growth)
        finite = times[np.isfinite(times)]
        if (times == np.inf).any():
            yield (
                "no amount of such logs gives the others an estimate; swaps would"
                if np.unique(self.counts.component).size > 1
                else "too few documents link those without an estimate; swaps would link them"
            )
        if finite.max(initial=0) > 1:
            yield (
                f"{finite.max():.2g} times this log would know every other ratio to a tenth "
                f"(error {TARGET:g})"
            )
        yield from self.warnings()


def check_links(estimator: str) -> None:
    """Raise InputError for an estimator that weighs no links between bias factors."""
    if estimator in WITHOUT_GRAPH:
        raise InputError(
            f"{estimator!r} weighs no links", field="estimator", expected="'conditional'"
        )


def propensities(
    log: object, *, bias: Sequence[str] = BIAS, estimator: str = AUTOMATIC
) -> Propensities:
    """How much less a document is examined at each position than at the first.

    The conditional estimate takes each pair's number of clicks as given, and asks where they fell.
    That depends on examination and on nothing else, whatever documents attract and however rankings
    follow it, as long as a click's chance is a product of both (Chamberlain 1980; Wooldridge 1999).
    It needs pairs that were shown at several positions, and ranks that do not follow the pair's own
    clicks. A log of pages is tested for that, in the order of time. Where ranks follow clicks, the
    sequential estimate is given instead (`twotowers.fitting.sequential`).

    Args:
        log: a log of `read_log`, or what `read_log` takes.
        bias: columns that together name the bias factor, such as ["position", "device"].
        estimator: "automatic", which chooses between "conditional" and "sequential"; "odds" (the
            conditional logit: ratios of odds, for users whose log-odds add up); "all_pairs",
            "adjacent_chain" or "pivot_one" (intervention harvesting).

    Returns:
        estimates with intervals. A factor without an estimate has a reason instead.

    Raises:
        InputError: an argument is unknown, a row of the log is wrong, or the log has no click.

    Example:
        >>> import pyarrow as pa
        >>> rows = {"query": ["q"] * 4, "document": ["a", "a", "b", "b"],
        ...         "position": [1, 2, 1, 2], "impressions": [100] * 4, "clicks": [40, 20, 20, 10]}
        >>> propensities(pa.table(rows)).frame()["estimate"].to_numpy().round(6).tolist()
        [1.0, 0.5]
    """
    check_choice(estimator, NAMES, field="estimator")
    bias = check_names(bias, field="bias")
    log = as_log(log)
    ordered = estimator in (AUTOMATIC, SEQUENTIAL)
    log.holding(needed_columns(log, bias) if ordered else set(bias) - {"position"})
    cells = log.count(["query", "document", *bias])
    counts = PairCounts.of_counts(cells, bias, clicked=estimator not in WITHOUT_GRAPH)
    check_clicks(log, cells.impressions.sum(), cells.clicks.sum())
    reference = reference_of(counts)
    feedback = feedback_of(log, cells, bias) if ordered else None
    if estimator == SEQUENTIAL and feedback is None:
        raise InputError(
            "the order of its pages is not known",
            path=log.source,
            field="estimator",
            expected="a log of pages with positions, or 'conditional'",
        )
    name = CONDITIONAL if ordered else estimator
    curve = ESTIMATORS[name](counts, reference=reference)
    if name == CONDITIONAL:
        curve = by_user(curve, log, bias)
    answer = Propensities(curve, name, tuple(bias), counts, log, feedback)
    if feedback is None or not (estimator == SEQUENTIAL or feedback.detected):
        return answer
    chosen = feedback.curve(reference)
    return replace(answer, curve=chosen, estimator=SEQUENTIAL, conditional=curve)


def reference_of(counts: PairCounts) -> int:
    """The factor that others are compared with: the most shown of the first position."""
    first = np.ones(counts.factors, bool)
    if "position" in counts.names:
        first = (counts.names["position"] == counts.names["position"].min()).to_numpy()
    return int(np.argmax(np.where(first, counts.shown, -1)))
