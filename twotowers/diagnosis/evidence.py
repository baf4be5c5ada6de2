"""What a diagnosis measures on a log."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from twotowers.analysis.comparison import compare
from twotowers.analysis.feedback import Feedback, by_user, feedback_of, needed_columns
from twotowers.analysis.propensities import ESTIMATORS, FORMS, Propensities, reference_of
from twotowers.analysis.tower_tests import TowerTest, tower_test
from twotowers.errors import InputError
from twotowers.files.artefacts import files_of
from twotowers.files.batches import column_names, is_table
from twotowers.files.progress import doing
from twotowers.fits.defaults import BIAS, STRAY
from twotowers.fitting.conditional import conditional_influences, fit_conditional
from twotowers.fitting.curves import Curve
from twotowers.fitting.pair_counts import PairCounts
from twotowers.fitting.specification import odd_positions
from twotowers.identifiability.strength import Strength, strength_of_log
from twotowers.intervals import Tested, effective_clusters, interval, quantile
from twotowers.logs.click_log import ClickLog, check_clicks
from twotowers.logs.frames import PANDAS
from twotowers.logs.health import Health, clicks_above, health, pages_with_gaps
from twotowers.logs.layouts import first_rows, usual
from twotowers.logs.unusual import Unusual, unusual
from twotowers.randomness import some, stream

MODELS = ("rctr", "dctr", "pbm", "cm", "ubm", "dcm", "dbn", "sdbn")
"""Click models that are compared: the ten that have names but for the slowest and the simplest."""
ABOVE = ("cm", "ubm", "dcm", "dbn", "sdbn")
"""Of these, the ones whose clicks depend on clicks above."""
MOST_PAGES = 30_000
"""Click models are compared on whole queries, chosen at random, with so many pages at most."""
SAME = 0.05
"""Difference of log-ratios, about a twentieth of the ratio, that makes none in practice."""
CLIPS = (np.inf, 100.0, 20.0, 10.0, 5.0)
"""Largest weights that are tried."""
SWAPPED, FEWEST_PAGES = 0.01, 100
"""Pages of each arrangement of a proposed swap: a share of the log's, and at least so many."""
LAYOUT = (
    "spons|advert|badge|^(is_?)?ads?$|promo|module|widget|layout|placement|vertical|"
    "(result|block|card)_?type"
)
"""Names of columns that tell adverts, modules or layouts apart."""
FEW_VALUES = 10
"""A column with at most this many values may separate groups of users, or layouts."""
MOST_SWAPS = 12
"""Swaps that are planned at most."""
FEW_ALONE = 0.5
"""Factors without a link are exceptions if there are at most this many for each that is linked."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of a log.

    Attributes:
        log: as it was given.
        bias: columns that name the bias factor.
        health: counts.
        gaps, holes: pages on which positions are missing, and those on which some between others
            are; None if that is not known.
        product, odds: both curves.
        strength: how well clicks connect all factors.
        slopes: of both forms, "product" and "additive".
        above: whether clicks depend on clicks above; None for a counted log.
        models: click models on held-out pages (`twotowers.analysis.comparison`); None for a counted
            log, and for one of a single query or page.
        compared: pages that they were fitted to or predicted.
        tower: the test of a two-tower model; None without features.
        feedback: whether ranks follow clicks; None if the order of pages is not known.
        unusual: users, or pages, whose clicks are out of line; None for a counted log.
        people: the curve without them, if they have many clicks.
    """

    log: ClickLog
    bias: tuple[str, ...]
    health: Health
    gaps: int | None
    holes: int | None
    product: Propensities
    odds: Propensities
    strength: Strength
    slopes: dict[str, Tested]
    above: Tested | None
    models: pd.DataFrame | None
    compared: int
    tower: TowerTest | None = None
    feedback: Feedback | None = None
    unusual: Unusual | None = None
    people: Curve | None = None

    @property
    def bots(self) -> bool:
        """Whether those who are out of line have many clicks."""
        return self.unusual is not None and self.unusual.clicks > STRAY

    @cached_property
    def without_bots(self) -> tuple[str, float, float]:
        """The factor that bots change most, and examination there with and without them."""
        assert self.people is not None
        names = list(self.curve.names)
        both = self.curve.frame().merge(self.people.frame(), on=names, suffixes=("", "_people"))
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.log(both["estimate"] / both["estimate_people"]).abs()
        row = both.loc[off[np.isfinite(off)].idxmax()]
        label = ", ".join(str(row[name]) for name in names)
        return label, float(row["estimate"]), float(row["estimate_people"])

    @cached_property
    def odd(self) -> np.ndarray:
        """Numbers of the factors whose position breaks with its neighbours
        (`odd_positions`); none with bots, whose pages may have lengths of their own."""
        if "position" not in self.bias or self.bots:
            return np.zeros(0, int)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_estimate = np.where(self.reliable, np.log(self.curve.estimate), np.nan)
        freedom = np.where(np.isfinite(self.curve.queries), self.curve.queries, np.inf)
        return odd_positions(self.curve.names, log_estimate, self.curve.covariance, freedom)

    @cached_property
    def others(self) -> list[str]:
        """Columns of the file that are not read."""
        known = {*self.log.layout.columns.values(), *self.bias}
        first = files_of(self.log.source)[0]
        names = column_names(first) if is_table(first) else []
        return [name for name in names if name not in known]

    @property
    def page_option(self) -> str:
        """The option that makes a page of each user's query, if users have a usual name."""
        who = usual(self.others).get("user", "USER")
        return f"--page {shlex.join([who, self.log.layout.columns['query']])}"

    @property
    def layouts(self) -> list[str]:
        """Columns of the file that seem to tell adverts, modules or layouts apart."""
        return [name for name in self.others if re.search(LAYOUT, name, re.I)]

    @cached_property
    def groups(self) -> list[str]:
        """Columns of the file that are not read and have few values: devices, layouts, ..."""
        rows = first_rows(files_of(self.log.source)[0], self.others) if self.others else {}
        few = [name for name in self.others if 1 < rows[name].nunique() <= FEW_VALUES]
        return [*self.layouts, *(name for name in few if name not in self.layouts)]

    @cached_property
    def regret(self) -> tuple[float, float]:
        """Errors of weights of clicks: by the product if odds are right, and without weights.

        Right weights times examination are constant. An error is the standard deviation over clicks
        of the natural logarithm of weight times examination, so 0.1 is about 10 %. Clicks count
        where both curves can be compared. Without weights, examination is that of the curve with
        the larger error.
        """
        known = self.comparable
        clicks = self.product.counts.clicked[known]
        one, other = (np.log(each.estimate[known]) for each in (self.curve, self.odds.curve))

        def spread(left: np.ndarray) -> float:
            mean = np.average(left, weights=clicks)
            return float(np.sqrt(np.average((left - mean) ** 2, weights=clicks)))

        return spread(one - other), max(spread(one), spread(other))

    @property
    def follows_clicks(self) -> bool:
        """Whether ranks follow clicks, so that the curve of the product form is biased."""
        return self.feedback is not None and self.feedback.detected

    @cached_property
    def sequential(self) -> Curve:
        """The curve that allows ranks to follow clicks."""
        assert self.feedback is not None
        return self.feedback.curve(self.curve.reference)

    @property
    def curve(self) -> Curve:
        """The curve of the product form."""
        return self.product.curve

    @cached_property
    def reliable(self) -> np.ndarray:
        """[K] whether the factor has an estimate that nothing makes doubtful."""
        curve = self.curve
        reliable = np.isfinite(curve.estimate) & (curve.estimate > 0) & (curve.reason == "")
        reliable[curve.reference] = True
        return reliable

    @property
    def labels(self) -> list[str]:
        """[K] names of the factors."""
        return self.curve.labels

    @property
    def farthest(self) -> int:
        """The factor where both forms differ most, in errors; one of those that are comparable."""
        distance, error, _ = self.difference
        return int(np.nanargmax(np.abs(distance) / error))

    @property
    def flags(self) -> str:
        """The option that names the bias factor, such as " --bias position device"; '' if the
        position alone is one, as commands suppose."""
        return "" if self.bias == BIAS else f" --bias {shlex.join(self.bias)}"

    @property
    def pages(self) -> float:
        """Number of pages; of a counted log, impressions of its most shown factor."""
        return self.health.pages or float(self.product.counts.shown.max())

    @property
    def parts(self) -> np.ndarray:
        """[K] the part of the log that each factor is in: documents link the factors of a part."""
        return self.product.counts.component

    @cached_property
    def alone(self) -> np.ndarray:
        """Numbers of the few factors that documents link to no other, while the rest is linked."""
        sizes = np.bincount(self.parts)
        lone = np.flatnonzero(sizes[self.parts] == 1)
        return lone if len(lone) <= FEW_ALONE * sizes.max(initial=0) else lone[:0]

    @property
    def swap_pages(self) -> int:
        """Pages of each of both arrangements of a proposed swap."""
        return int(max(round(SWAPPED * self.pages), FEWEST_PAGES))

    @cached_property
    def swaps(self) -> pd.DataFrame:
        """Swaps to run, by the numbers of factors (`twotowers.identifiability.strength`)."""
        if self.curve.information.shape[0] < 2:
            return pd.DataFrame()
        # As many as join all parts of the log, and five at least.
        steps = min(max(5, len(np.unique(self.parts)) - 1), MOST_SWAPS)
        return self.product.swaps_by_number(pages=self.swap_pages, steps=steps)

    @property
    def weighed(self) -> np.ndarray:
        """[K] whether the factor has a weight: an estimate above 0, doubtful or not."""
        return np.isfinite(self.curve.estimate) & (self.curve.estimate > 0)

    @property
    def doubtful(self) -> np.ndarray:
        """[K] whether the factor has a weight that is not reliable."""
        return self.weighed & ~self.reliable

    @cached_property
    def weights(self) -> pd.DataFrame:
        """A row per largest weight: clip, share (effective number of clicks, as a share of the
        clicks), low and high (95 %), and clipped (share of clicks whose weight is cut).

        The error of a share follows from those of the curve by its gradient in the logarithms of
        examination. Each query moves it by a step, which gives the degrees of freedom. Intervals
        are symmetric in the log-odds of the share. On simulated logs 85 to 100 % of them held the
        truth, those of doubtful curves among them, where draws of the curve held it in 58 to 93 %:
        an error of the curve lowers the share, and does so twice in draws.
        """
        curve, known = self.curve, self.weighed
        clicks, full = self.product.counts.clicked[known], 1 / curve.estimate[known]
        covariance = curve.covariance[np.ix_(known, known)]
        steps = self.steps[1][:, known]
        rows: list[dict[str, float]] = []
        for clip in CLIPS:
            weight = np.minimum(full, clip)
            sums = clicks @ weight, clicks @ weight**2
            share = float(sums[0] ** 2 / sums[1] / clicks.sum())
            moved = -clicks * weight * (full < clip)
            slope = 2 * moved / sums[0] - 2 * moved * weight / sums[1]  # of the logarithm
            freedom = np.nan_to_num(effective_clusters(steps @ slope), nan=1)
            error = np.sqrt(max(slope @ covariance @ slope, 0)) / max(1 - share, 1e-12)
            low, high = expit(interval(logit(min(share, 1 - 1e-12)), error, max(freedom, 1)))
            cut = float(clicks[full > clip].sum() / clicks.sum())
            rows.append({"clip": clip, "share": share, "low": low, "high": high, "clipped": cut})
        return pd.DataFrame(rows)

    @cached_property
    def steps(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the queries that inform the curve, and their steps in it [queries, K]."""
        return conditional_influences(self.product.counts, self.curve)

    @cached_property
    def difference(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """[K] logarithm of examination less that of odds, its standard error, and the degrees of
        freedom of that; NaN where one of both curves has no estimate beyond doubt.

        Both curves follow from the same clicks, so that most of their errors is in common. Each
        query has a step in the difference, that in one curve less that in the other (jackknife).
        """
        one, other = self.curve, self.odds.curve
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.log(one.estimate / other.estimate)
        odds = conditional_influences(self.product.counts, other, form="additive")
        queries, steps = zip(self.steps, odds, strict=True)
        both, place = np.unique(np.concatenate(queries), return_inverse=True)
        moved = np.zeros((len(both), len(distance)))
        moved[place[: len(queries[0])]] += steps[0]
        moved[place[len(queries[0]) :]] -= steps[1]
        error = np.sqrt((moved**2).sum(0))
        reliable = self.reliable & np.isfinite(distance) & (other.reason == "") & (error > 0)
        freedom = effective_clusters(moved)
        distance, error, freedom = np.where(reliable, (distance, error, freedom), np.nan)
        return distance, error, freedom

    @cached_property
    def expected_several(self) -> float | None:
        """How many pages would have several clicks if clicks did not depend on clicks above.

        Each position keeps its click rate. None if pages or positions are not known.
        """
        counts = self.product.counts
        if not self.health.pages or "position" not in counts.names:
            return None
        clicked = pd.Series(counts.clicked).groupby(counts.names["position"].to_numpy()).sum()
        chance = np.minimum(clicked.to_numpy() / self.health.pages, 1 - 1e-9)
        none = np.prod(1 - chance)
        return float(self.health.pages * (1 - none - none * (chance / (1 - chance)).sum()))

    @property
    def comparable(self) -> np.ndarray:
        """[K] whether the two forms can be compared."""
        return np.isfinite(self.difference[1])

    @cached_property
    def differ(self) -> np.ndarray:
        """[K] whether the two forms differ by more than chance, all factors together at 5 %, and
        by more than `SAME`."""
        distance, error, freedom = self.difference
        far = quantile(freedom, level=1 - 0.05 / max(self.comparable.sum(), 1))
        return self.comparable & (np.abs(distance) > np.maximum(far * error, SAME))


def gather(
    log: ClickLog,
    bias: Sequence[str],
    *,
    models: Sequence[str] = MODELS,
    features: pd.DataFrame | None = None,
) -> Evidence:
    """Measure everything. The log is read once; `features` are of `read_features`."""
    further = [name for name in bias if name != "position"]
    gaps = holes = None
    if not log.counted:
        log.holding(needed_columns(log, bias))
        gaps, holes = pages_with_gaps(log)
    cells = log.count(["query", "document", "position", *further])
    check_clicks(log, cells.impressions.sum(), cells.clicks.sum())
    measured = health(cells, None if log.counted else log)
    counts = PairCounts.of_counts(cells, bias)
    reference = reference_of(counts)
    doing("fitting two forms of the curve")
    named = tuple(bias)
    given, odds = (
        Propensities(ESTIMATORS[name](counts, reference=reference), name, named, counts, log)
        for name in ("conditional", "odds")
    )
    product = replace(given, curve=by_user(given.curve, log, bias))
    table, compared = _compared(log, models)
    doing("comparing both forms, and testing them")
    tower, people = None, None
    unlike = None if log.counted else unusual(log.holding())
    if unlike is not None and unlike.clicks > STRAY:
        own = log.part(~unlike.rows).count(["query", "document", "position", *further])
        kept = PairCounts.of_counts(own, bias)
        people = fit_conditional(kept, reference=reference_of(kept))
    if features is not None:
        tower = tower_test(cells, counts, features, reference=reference)
    return Evidence(
        log=log,
        bias=named,
        health=measured,
        gaps=gaps,
        holes=holes,
        product=product,
        odds=odds,
        strength=strength_of_log(counts),
        slopes={FORMS[each.estimator]: slope for each in (product, odds) if (slope := each.slope)},
        above=None if log.counted or gaps else clicks_above(log),
        models=table,
        compared=compared,
        tower=tower,
        feedback=feedback_of(log, cells, bias),
        unusual=unlike,
        people=people,
    )


def _compared(log: ClickLog, models: Sequence[str]) -> tuple[pd.DataFrame | None, int]:
    """Click models on held-out pages of some queries, and the number of these queries' pages."""
    if log.counted or not models:
        return None, 0
    query = pd.factorize(log.flat("query"))[0]
    rng = stream("diagnosis, models")
    times = np.ones(len(query), int) if log.times is None else log.times
    # Of a single query that has more pages, some will do.
    chosen = times * some(np.bincount(query, times), MOST_PAGES, rng)[query]
    chosen = rng.binomial(chosen, min(MOST_PAGES / max(chosen.sum(), 1), 1))
    try:
        return compare(replace(log.part(chosen), kind=PANDAS), models), int(chosen.sum())
    except InputError:  # There is a single page, or some have no click.
        return None, 0
