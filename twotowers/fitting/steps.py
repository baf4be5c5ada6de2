"""EM of a click model on one vector, which holds the probabilities of all parts.

`EMState` has the log's E-step, the M-step and the objective. `fitting.em` runs it, and
`fitting.information` asks it what an estimate expects of the log.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from twotowers.files.blocks import blocks, in_order
from twotowers.fitting.chains import Chain
from twotowers.fitting.prior import NOTHING, Prior, shares_of
from twotowers.fitting.statistics import Statistics
from twotowers.models.chances import Chance, Share
from twotowers.models.protocol import PAGES, PER_DOCUMENT, ClickModel, Credits, losses, of_documents

START = 0.5
"""The start of every probability except examination of the first position."""


def credits_of(
    model: ClickModel, chances: Mapping[str, np.ndarray], clicks: np.ndarray, where: np.ndarray
) -> Credits:
    """Part -> [rows, K] successes and trials, counted or expected.

    `chances` has by part the probability that applies at each position of some rows.
    """
    if model.counts is not None:
        return model.counts(clicks, where)
    return model.expectations(chances, clicks, where)


def slices_of(sizes: Mapping[str, int]) -> dict[str, slice]:
    """Part -> its place in the vector."""
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return {part: slice(*each) for part, each in zip(sizes, pairwise(ends), strict=True)}


class EMState:
    """EM on one vector. It holds the probabilities of the first part, then those of the next.

    `repeats` [pairs] says how many pairs each pair stands for (`twotowers.fitting.duplicates`);
    None if each stands for itself.

    Attributes:
        often: [size] how many probabilities each entry of the vector stands for.
        weights: part -> [rows] how often a row counts in the totals of a probability.
        multiplicity: [rows] how often a row counts in the log-likelihood.
        blocks: the rows that are worked on at a time.
        chain: the pages, if the model is a chain, whose E-step is of its own; else None.
    """

    def __init__(
        self, statistics: Statistics, prior: Prior = NOTHING, repeats: np.ndarray | None = None
    ):
        model, self.statistics, self.prior = statistics.model, statistics, prior
        self.blocks = blocks(*statistics.clicks.shape)
        self.slices, self.size = slices_of(statistics.sizes), sum(statistics.sizes.values())
        self.often, self.multiplicity = np.broadcast_to(1.0, self.size), statistics.number
        self.weights = dict.fromkeys(self.slices, statistics.number)
        self.chain = Chain.of(statistics, repeats)
        self.latest = None, None  # a vector and its totals
        if repeats is not None:
            own, self.often = of_documents(model.parts), np.ones(self.size)
            for part in own:
                self.often[self.slices[part]] = repeats
            self.multiplicity = statistics.number * repeats[statistics.index[own[0]][:, 0]]
            self.weights |= {part: self.multiplicity for part in self.slices if part not in own}

    def start(self, given: Mapping) -> np.ndarray:
        """The first vector; see `fit_em`."""
        vector, kinds = np.full(self.size, START), self.statistics.model.parts
        if kinds.get("examination", PER_DOCUMENT) != PER_DOCUMENT:
            successes, trials = self.prior.of("examination")
            if successes == trials:
                vector[self.slices["examination"].start] = 1
        for part, values in given.items():
            vector[self.slices[part]] = values
        return vector

    def split(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """[..., size] values by part, without a copy."""
        return {part: values[..., place] for part, place in self.slices.items()}

    def objective(self, vector: np.ndarray) -> float:
        """Log-likelihood plus log prior. NaN parameters have no trials, so START replaces them."""
        known = np.where(np.isnan(vector), START, vector)
        if self.chain:
            return self._expect(known)[1] + self._of_counts(known)

        def of_rows(block: slice) -> float:
            return (self.multiplicity[block] * self._log_likelihood(known, block)).sum()

        return float(sum(in_order(of_rows, self.blocks))) + self._of_counts(known)

    def _of_counts(self, vector: np.ndarray) -> float:
        """The log prior, and the log-likelihood of what a chain knows of attraction."""
        likelihood = 0.0
        for part, place in self.slices.items():
            successes, trials = self.prior.of(part)
            own, often, counts = vector[place], self.often[place], np.zeros((2, 1))
            if self.chain and part == "attraction":
                counts = self.chain.known
            elif not trials:
                continue
            counts = np.broadcast_to(counts, (2, len(own)))

            def of_block(block: slice, own=own, often=often, counts=counts, s=successes, n=trials):
                chance, (clicks, others) = Chance.of(own[block]), counts[:, block]
                value = (s + clicks) * chance.log + (n - s + others) * chance.other
                return (often[block] * value).sum()

            likelihood += sum(in_order(of_block, blocks(len(own))))
        return float(likelihood)

    def _log_likelihood(self, vector: np.ndarray, block: slice) -> np.ndarray:
        """[rows] ln P of the clicks of some rows."""
        given, model = self.statistics, self.statistics.model
        clicks, where = given.clicks[block], given.where[block]
        parts = {part: Share.of(each) for part, each in self._chances(vector, block).items()}
        if model.statistics == PAGES:
            return model.log_likelihood(parts, clicks, where)
        return -losses(model.of_cells(parts), clicks, where).sum(-1)

    def _chances(self, vector: np.ndarray, block: slice) -> dict[str, np.ndarray]:
        """Part -> probability that applies at each position of some rows, in a shape that
        broadcasts to [rows, K]: what rows or positions share is there once."""
        chances = {}
        for part, at in self.slices.items():
            index = self.statistics.index[part]
            by_row, by_place = index.strides
            own = index[block if by_row else slice(1), slice(None if by_place else 1)]
            chances[part] = vector[at][own]
        return chances

    def _expect(self, vector: np.ndarray) -> tuple[np.ndarray, float]:
        """The E-step of a chain, and the log-likelihood of what it does not know."""
        totals = np.zeros((2, self.size))
        return totals, self.chain.expect(self.split(vector), self.split(totals))

    def totals(self, vector: np.ndarray) -> np.ndarray:
        """The E-step: [2, size] successes and trials of each probability, counted or expected."""
        if vector is self.latest[0]:
            return self.latest[1]
        if self.chain:
            return self._expect(vector)[0]
        given = self.statistics

        def weighed(block: slice) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
            found, clicks, where = [], given.clicks[block], given.where[block]
            credits = credits_of(given.model, self._chances(vector, block), clicks, where)
            for part, credit in credits.items():
                index, number = given.index[part], self.weights[part][block]
                if index.strides[0]:
                    index = index[block].T.ravel()
                    weights = [(each.T * number).ravel() for each in credit]
                else:  # All rows share their probabilities.
                    index, weights = index[0], [(each.T * number).sum(1) for each in credit]
                found.append((part, index, weights))
            return found

        totals = np.zeros((2, self.size))
        for found in in_order(weighed, self.blocks):
            for part, index, weights in found:
                for total, weight in zip(totals, weights, strict=True):
                    # Blocks are added in their order, so sums do not depend on the threads.
                    np.add.at(total[self.slices[part]], index, weight)
        return totals

    def shares(self, totals: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The M-step: shares of successes, those of the prior included. A probability without
        trials keeps its value in `before`."""
        shares = np.empty(self.size)
        for part, place in self.slices.items():
            imagined = np.reshape(self.prior.of(part), (2, 1))

            def of_block(
                block: slice,
                own=totals[:, place],
                kept=before[place],
                imagined=imagined,
                new=shares[place],
            ):
                new[block] = shares_of(*own[:, block] + imagined, kept[block])

            list(in_order(of_block, blocks(place.stop - place.start)))
        return shares

    def step(self, vector: np.ndarray) -> np.ndarray:
        """An E-step and an M-step."""
        return self.shares(self.totals(vector), vector)

    def measured_step(self, vector: np.ndarray) -> tuple[np.ndarray, float]:
        """The same, and the objective of the vector."""
        if not self.chain:
            return self.step(vector), self.objective(vector)
        totals, value = self._expect(vector)
        self.latest = vector, totals
        return self.shares(totals, vector), value + self._of_counts(vector)
