"""The E-step of chain models: users who read from top to bottom and stop somewhere.

Down to the last click of a page nothing is hidden (`twotowers.models.page.ChainModel`). So what is
known there is counted once. Hidden are whether the user went on after the last click, and where the
user stopped below it, on the page's suffix. With g the attraction, o and h = 1 - o the chances of
going on and of halting, the probability that nothing is clicked from k on, if k is examined, is

    n_k = (1 - g_k) (o_k n_{k+1} + h_k)

and behind the page it is 1. A user who examined k, and did not click below it, went on with
probability o_k n_{k+1} / (o_k n_{k+1} + h_k). The last click is the same with its own o, and
without the first factor. This needs a few operations for each place of a suffix. It gives the
likelihood, too: the logarithm of one number per page, and what is known.

    >>> from twotowers.fitting.statistics import Statistics, distinct_pages
    >>> from twotowers.models.dynamic_bayesian import DynamicBayesian
    >>> pages = distinct_pages(np.array([[0, 1, 2]]), np.array([[1, 0, 0]], bool),
    ...                        np.ones((1, 3), bool))
    >>> statistics = Statistics.of_pages(DynamicBayesian(), pages)
    >>> half = {part: np.full(size, 0.5) for part, size in statistics.sizes.items()}
    >>> totals = {part: np.zeros((2, len(values))) for part, values in half.items()}
    >>> chain = Chain.of(statistics)
    >>> round(chain.expect(half, totals), 3)  # ln(.75 + .25 .5 (.5 + .5 .5)); the click is known
    -0.17
    >>> totals["attraction"][1].round(3).tolist()  # P(examined)
    [1.0, 0.111, 0.037]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from twotowers.files.blocks import blocks, in_order
from twotowers.fitting.statistics import Statistics
from twotowers.models.chances import NEVER, TINY, Share
from twotowers.models.page import ChainModel
from twotowers.models.protocol import ONCE, PER_DOCUMENT, PER_POSITION

SMALL = 1e-280
"""A product of chances below this is found by logarithms."""


@dataclass(frozen=True)
class PageSuffixes:
    """Pages whose suffixes are equally long. All of them have a click, or none of them has.

    Attributes:
        pair: [places, pages] the pairs of the suffix: below the last click, or of the whole page.
        number: [pages] how often the log has the page.
        repeats: [pages] how many such pages of other pairs the page stands for.
        event: [pages] the entry of `Chain.events` of that click; None if there is no click.
    """

    pair: np.ndarray
    number: np.ndarray
    repeats: np.ndarray
    event: np.ndarray | None


class Chain:
    """The pages of a log for a chain model. What is known of them is counted.

    Attributes:
        known: [2, pairs] clicks, and how often a document above a click had none.
        events: the pairs of clicks with a document below, if going on after a click depends on
            documents; else their positions.
        repeats: how many pairs each event stands for (`twotowers.fitting.duplicates`).
        went_on: [events] clicks with another click below.
        skipped: documents without a click above a click.
        suffixes: the pages, by the length of their suffixes.
    """

    def __init__(self, statistics: Statistics, repeats: np.ndarray):
        self.model = statistics.model
        self.by_pair = _depends(self.model, PER_DOCUMENT)[0]
        pair, number = statistics.index["attraction"], statistics.number
        pairs, length = statistics.sizes["attraction"], pair.shape[1]
        repeated = repeats[pair[:, 0]]
        multiplicity = number * repeated
        ends, last = np.zeros((2, len(number)), np.int32)
        for place in range(length):
            ends += statistics.where[:, place]
            last[statistics.clicks[:, place] & statistics.where[:, place]] = place + 1

        self.known, self.skipped = np.zeros((2, pairs)), 0.0
        tried, went_on = np.zeros((2, pairs if self.by_pair else length))
        for place in range(length):
            clicked = statistics.clicks[:, place] & (place < last)
            skipped, followed = ~clicked & (place < last), clicked & (place + 1 < last)
            self.skipped += multiplicity[skipped].sum()
            of_pairs = [(self.known[0], clicked), (self.known[1], skipped)]
            behind = [(tried, clicked & (place + 1 < ends)), (went_on, followed)]
            for total, rows in of_pairs + behind * self.by_pair:
                np.add.at(total, pair[rows, place], number[rows])
            for total, rows in behind * (not self.by_pair):
                total[place] = multiplicity[rows].sum()
        self.events = np.flatnonzero(tried)
        self.repeats = repeats[self.events] if self.by_pair else 1.0
        self.went_on = went_on[self.events]
        entry = np.zeros(len(tried), np.int32)
        entry[self.events] = np.arange(len(self.events))

        below = ends - last
        kind = 2 * below + (last > 0)
        # Pages of a query lie side by side, so that the probabilities of its documents are near.
        order = np.lexsort((pair[:, 0], kind))
        order = order[below[order] > 0]
        self.suffixes = []
        for rows in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1) if len(order) else []:
            event = None
            if last[rows[0]]:
                place = last[rows] - 1
                event = entry[pair[rows, place] if self.by_pair else place]
            suffix = pair[rows, last[rows] + np.arange(below[rows[0]])[:, None]]
            self.suffixes.append(PageSuffixes(suffix, number[rows], repeated[rows], event))

    @classmethod
    def of(cls, statistics: Statistics, repeats: np.ndarray | None = None) -> Chain | None:
        """The pages of a log; `repeats` is once for each pair if None.

        None if the model is no chain with hidden events, or has an E-step of its own; or if its
        users go on by documents and by positions at once, or by either after no click.
        """
        model = statistics.model
        if not isinstance(model, ChainModel) or model.counts is not None:
            return None
        if type(model).expectations is not ChainModel.expectations:
            return None
        (click_pair, none_pair), (click_place, none_place) = (
            _depends(model, kind) for kind in (PER_DOCUMENT, PER_POSITION)
        )
        if none_pair or none_place or (click_pair and click_place):
            return None
        pairs = statistics.sizes["attraction"]
        return cls(statistics, np.ones(pairs) if repeats is None else repeats)

    def expect(self, values: Mapping[str, np.ndarray], totals: Mapping[str, np.ndarray]) -> float:
        """An E-step, and the log-likelihood of all but `known`.

        `values` has [size] probabilities by part; expected successes and trials are added to
        `totals`, [2, size].
        """
        shared = {part: values[part][0] for part in self._parts(ONCE)}
        own = {
            part: values[part][self.events]
            for part in self._parts(PER_DOCUMENT if self.by_pair else PER_POSITION)
        }
        after_click = _after(self.model, shared | own)[0].broadcast(self.events.shape)
        after_none = _after(self.model, shared)[1]
        clicked, skipped = np.zeros((2, len(self.events))), np.array([self.skipped, 0.0])
        clicked[0] = self.went_on
        with np.errstate(divide="ignore"):
            logs = (np.maximum(np.log(each.value), NEVER) for each in (after_click, after_none))
            counts = self.went_on * self.repeats, skipped[0]
            found = sum((n * log).sum() for n, log in zip(counts, logs, strict=True))

        examined, parts = totals["attraction"][1], []
        for some in self.suffixes:
            parts += [(some, block) for block in blocks(len(some.number), len(some.pair))]

        def of_part(part):
            return self._of_suffixes(*part, values["attraction"], after_click, after_none)

        # Blocks are added in their order, so sums do not depend on the threads.
        cells = sum(some.pair.size for some in self.suffixes)
        found_of = in_order(of_part, parts, cells=cells)
        for (some, block), each in zip(parts, found_of, strict=True):
            logs, masses, ends, halts = each
            found += logs
            np.add.at(examined, some.pair[:, block].ravel(), masses.ravel())
            if some.event is not None:
                for total, mass in zip(clicked, ends, strict=True):
                    np.add.at(total, some.event[block], mass)
            skipped += halts
        totals["attraction"][:] += self.known[0]
        examined += self.known[1]
        after = (
            (self.model.credit_clicked(shared | own, *clicked), self.events, self.repeats),
            (self.model.credit_skipped(shared, *skipped), slice(None), 1.0),
        )
        for credits, at, repeats in after:
            for part, credit in credits.items():
                for total, each in zip(totals[part], credit, strict=True):
                    if self.model.parts[part] == ONCE:
                        total += np.sum(each * repeats)
                    else:
                        total[at] += each
        return float(found)

    def _parts(self, kind: str) -> list[str]:
        return [part for part, own in self.model.parts.items() if own == kind]

    def _of_suffixes(
        self,
        some: PageSuffixes,
        block: slice,
        attraction: np.ndarray,
        after_click: Share,
        after_none: Share,
    ) -> tuple[float, np.ndarray, np.ndarray | None, np.ndarray]:
        """The E-step of some pages.

        Their log-likelihood; [places, pages] how often places of a suffix are examined; [2, pages]
        how often users go on and stop after the last click, if there is one; and [2] how often they
        do after no click.
        """
        pair, number, repeats = (
            each[..., block] for each in (some.pair, some.number, some.repeats)
        )
        goes_on, halts = after_none
        ignored = attraction[pair]
        np.subtract(1, ignored, out=ignored)
        further, silent = np.ones(pair.shape), ignored[-1]
        for place in reversed(range(len(pair) - 1)):
            silent = goes_on * silent
            if halts:
                total = silent + halts
                _divide(silent, total, out=further[place + 1])
                silent = total
            silent *= ignored[place]
        click = None if some.event is None else [each[some.event[block]] for each in after_click]
        if click is None:
            likelihood, ends, further[0] = silent, None, number
        else:
            on, off = click[0] * silent, click[1]
            likelihood, ends = on + off, np.empty((2, len(number)))
            _divide(on, likelihood, out=ends[0])
            np.divide(off, np.maximum(likelihood, TINY), out=ends[1])
            ends *= number
            further[0] = ends[0]
            if not self.by_pair:
                ends *= repeats
        for above, here in pairwise(further):
            here *= above
        examined = further
        with np.errstate(divide="ignore"):
            if likelihood.min() < SMALL:
                logs = _logs(ignored, goes_on, halts, click)
            else:
                logs = np.log(likelihood)
        found = (number * repeats * np.maximum(logs, NEVER)).sum()
        halted = np.array(
            [(examined[1:].sum(0) * repeats).sum(), ((examined[0] - examined[-1]) * repeats).sum()]
        )
        return found, examined, ends, halted


def _divide(one: np.ndarray, other: np.ndarray, out: np.ndarray) -> None:
    """one / other, and 1 where both are too small for a number."""
    with np.errstate(invalid="ignore"):
        np.divide(one, other, out=out)
    if not other.all():
        out[other == 0] = 1


def _logs(ignored: np.ndarray, goes_on, halts, click: list[np.ndarray] | None) -> np.ndarray:
    """[pages] ln P(no click on the suffix), or behind the last click, without small numbers."""
    log = np.log(ignored[-1])
    for place in reversed(range(len(ignored) - 1)):
        log = np.log(ignored[place]) + np.logaddexp(np.log(goes_on) + log, np.log(halts))
    return log if click is None else np.logaddexp(np.log(click[0]) + log, np.log(click[1]))


def _after(model: ChainModel, values: Mapping[str, np.ndarray]) -> tuple[Share, Share]:
    """after_click and after_none, from the probabilities of some parts; NaN if others matter."""
    parts = {part: Share.of(np.asarray(values.get(part, np.nan))) for part in model.parts}
    return model.continuation(parts)


def _depends(model: ChainModel, kind: str) -> tuple[bool, bool]:
    """Whether after_click and after_none depend on parts of a kind."""
    values = {part: 0.5 for part, own in model.parts.items() if own != kind}
    click, none = _after(model, values)
    return bool(np.isnan(click.value)), bool(np.isnan(none.value))
