"""Click models over the clicks of a whole page, which may depend on each other.

A `PageModel` says how likely each click is given those above it, from chances of its parts; the
probability of a page follows. `ChainModel` is the family of those who read from top to bottom and
at some point stop: CM, DCM, CCM, DBN and SDBN (Chuklin et al. 2015, Chapter 3).

Formulas take the parts laid out for pages: of documents [..., K], of positions [K], of jumps
[K, K] (position, and position of the last click above it; row and column 0 are the first position
and no click), of what there is once []. They work on NumPy and on JAX arrays alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.models.chances import Chance, certain, log_sum, numbers_of, over_positions
from twotowers.models.protocol import PER_DOCUMENT, Array

Parts = Mapping[str, Chance]
Credits = Mapping[str, tuple[Array, Array]]
"""Per part the (expected) number of successes and of trials: of each click of a page."""

CELLS, JUMPS, PAGES = "cells", "jumps", "pages"
"""The smallest statistics that say all there is to know to a model: counts per (pair, position);
per (pair, position, last click); or distinct pages with their clicks."""


@dataclass(frozen=True)
class PageModel:
    """A click model over the clicks of a page.

    A subclass gives `conditional` and `marginal`; `examination` if the model has one; and `truth`
    if it can be a user. It lies in a file of its own, whose name is its name in a configuration.
    To be fitted in closed form or by EM (`twotowers.fitting.pages`) it has one of

        counts(clicks, where) -> Credits
        expectations(chances, clicks, where) -> Credits

    of which the first can see the successes and trials of each part, and the second expects them,
    given the clicks. `clicks` and `where` are [pages, K] bool, and so is the shape of `chances`,
    the probability of each part at each click, and of all credits. A model whose statistics are
    CELLS or JUMPS says P(click) of one of these, from chances of its parts there, in
    `of_cells(parts)`.

    Attributes:
        parts: from the name of each part to what has a probability of its own.
        statistics: CELLS, JUMPS or PAGES.
    """

    parts: ClassVar[Mapping[str, str]]
    statistics: ClassVar[str] = PAGES

    def conditional(self, parts: Parts, clicks: Array) -> Chance:
        """P(C_k = 1 | C_1..C_{k-1}) of each click: [..., K].

        Args:
            parts: the chance of each part, laid out for pages.
            clicks: [..., K] bool; those behind the end of a page are ignored.
        """
        raise NotImplementedError

    def marginal(self, parts: Parts) -> Chance:
        """P(C_k = 1) where no click is known; of a shape that broadcasts to [..., K]."""
        raise NotImplementedError

    def examination(self, parts: Parts) -> Chance:
        """P(E_k = 1) where no click is known; as `marginal`."""
        raise NotImplementedError

    def log_likelihood(self, parts: Parts, clicks: Array, where: Array) -> Array:
        """ln P(C_1..C_K): [...].

        Args:
            parts, clicks: as of `conditional`.
            where: [..., K] bool, False behind the end of a page.
        """
        return -losses(self.conditional(parts, clicks), clicks, where).sum(-1)

    def relevance(self, parts: Parts) -> Array:
        """What to rank documents by, the higher the better: log-odds of attraction here."""
        return parts["attraction"].logits

    def truth(self, relevance: np.ndarray, positions: int) -> dict[str, np.ndarray]:
        """The logits of each part for a simulated user, as of `CellModel.truth`."""
        raise NotImplementedError

    def sample(
        self, parts: Parts, where: np.ndarray, *, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Clicks of pages, and hidden events that were drawn on the way: [..., K] bool each.

        Args:
            parts: as of `conditional`, in NumPy.
            where: [..., K] bool, False behind the end of a page.
        """
        clicks = np.zeros(where.shape, bool)
        drawn = rng.random(where.shape)
        for place in range(where.shape[-1]):
            chance = np.broadcast_to(self.conditional(parts, clicks).value, where.shape)
            clicks[..., place] = where[..., place] & (drawn[..., place] < chance[..., place])
        return {"clicks": clicks}


@dataclass(frozen=True)
class ChainModel(PageModel):
    """Somebody reads from top to bottom, and at some point stops.

    Documents are examined until the user stops: E_1 = 1, and E_k = 0 for all k behind the stop.
    C_k = 1 exactly if k is examined and its document attracts. Whether k + 1 is examined depends
    on whether k was clicked:

        P(E_{k+1} = 1 | E_k = 1, C_k = 1) = after_click_k
        P(E_{k+1} = 1 | E_k = 1, C_k = 0) = after_none_k

    With g_k the attraction and e_k = P(E_k = 1), the examination is, without known clicks,
    e_{k+1} = e_k (g_k after_click_k + (1 - g_k) after_none_k). Of clicks that are known it is
    after_click_k behind a click, and behind none, by Bayes' rule,
    (1 - g_k) e_k after_none_k / (1 - g_k e_k). Eqs. 5.30 and 5.32 of the thesis misplace a
    bracket: as printed, the terms of the last line would apply behind clicks too.

    A subclass gives `continuation` and `credit`.
    """

    def continuation(self, parts: Parts) -> tuple[Chance, Chance]:
        """after_click and after_none, of shapes that broadcast to [..., K]."""
        raise NotImplementedError

    def credit(
        self,
        chances: Mapping[str, np.ndarray],
        clicked: tuple[np.ndarray, np.ndarray],
        skipped: tuple[np.ndarray, np.ndarray],
        examined: np.ndarray,
        clicks: np.ndarray,
    ) -> Credits:
        """Expected successes and trials of each part, from what is expected of the chain.

        Args:
            chances: the probability of each part at each click, [pages, K].
            clicked: P(went on) and P(stopped) behind each click, [pages, K]; both are 0 where there
                was no click, and at the end of a page.
            skipped: the same behind documents that were examined and not clicked.
            examined: P(E_k = 1 | all clicks).
            clicks: [pages, K] bool.
        """
        raise NotImplementedError

    def conditional(self, parts: Parts, clicks: Array) -> Chance:
        def step(examined: Chance, column):
            attractive, after_click, after_none, clicked = column
            found = examined & attractive
            # P(E_k = 1, C_k = 0), and whether the user then goes on.
            skipped = examined.log + attractive.other
            unseen = log_sum(examined.other, skipped + after_none.other)
            behind = Chance(skipped + after_none.log - found.other, unseen - found.other)
            return after_click.where(clicked, behind), found

        attraction = parts["attraction"]
        clicks = numbers_of(attraction.log).asarray(clicks)
        columns = attraction, *self._laid_out(parts), clicks
        return over_positions(step, certain(attraction.log[..., 0]), columns)

    def marginal(self, parts: Parts) -> Chance:
        return self.examination(parts) & parts["attraction"]

    def examination(self, parts: Parts) -> Chance:
        attraction = parts["attraction"]
        goes_on = attraction.mix(*self._laid_out(parts))
        start = certain(attraction.log[..., 0])
        return over_positions(lambda now, on: (now & on, now), start, goes_on)

    def _laid_out(self, parts: Parts) -> tuple[Chance, Chance]:
        shape = parts["attraction"].log.shape
        return tuple(chance.broadcast(shape) for chance in self.continuation(parts))

    def sample(self, parts, where, *, rng):
        shape = where.shape
        attracted = np.broadcast_to(parts["attraction"].value, shape)
        after = [np.broadcast_to(chance.value, shape) for chance in self.continuation(parts)]
        attractive, drawn = rng.random(shape) < attracted, rng.random(shape)
        examined = np.zeros(shape, bool)
        now = np.ones(shape[:-1], bool)
        for place in range(shape[-1]):
            examined[..., place] = now & where[..., place]
            clicked = now & attractive[..., place]
            goes = np.where(clicked, after[0][..., place], after[1][..., place])
            now = now & (drawn[..., place] < goes)
        return {
            "clicks": examined & attractive,
            "examination": examined,
            "attraction": attractive & where,
        }

    def expectations(self, chances, clicks, where) -> Credits:
        parts = {name: Chance.of(values) for name, values in chances.items()}
        after_click, after_none = self._laid_out(parts)
        ignored, length = parts["attraction"].other, clicks.shape[1]
        # ln P(no click from k on | E_k = 1); nothing is known behind the end of a page.
        silent = np.zeros((len(clicks), length + 1))
        for place in reversed(range(length)):
            on = log_sum(
                after_none.other[:, place], after_none.log[:, place] + silent[:, place + 1]
            )
            silent[:, place] = np.where(where[:, place], ignored[:, place] + on, 0)
        behind = np.cumsum(clicks[:, ::-1], axis=1)[:, ::-1] > 0  # a click here or further down
        examined = np.zeros((len(clicks), length + 1))
        reached, total = np.zeros(len(clicks)), silent[:, 0]
        for place in range(length):
            hidden = np.exp(reached + silent[:, place] - total)
            examined[:, place] = np.where(behind[:, place], 1, hidden) * where[:, place]
            clicked, follows = clicks[:, place], silent[:, place + 1]
            goes, stays = after_click.log[:, place], after_click.other[:, place]
            total = np.where(clicked, log_sum(stays, goes + follows), total)
            skipped = reached + ignored[:, place] + after_none.log[:, place]
            reached = np.where(clicked, goes, skipped)
        now, then = examined[:, :-1], examined[:, 1:]
        known = where & np.append(where[:, 1:], np.zeros((len(where), 1), bool), axis=1)
        clicked = (clicks & known) * then, (clicks & known) * (1 - then)
        skipped = (~clicks & known) * then, (~clicks & known) * (now - then)
        return self.credit(chances, clicked, skipped, now, clicks)


@dataclass(frozen=True)
class SimplifiedModel(ChainModel):
    """A chain whose user is taken to have stopped for good with the last click.

    Then nothing is hidden: all documents up to the last click were examined (all of the page,
    where there was none), and parameters are rates that can be counted. This is what PyClick fits.
    Of the clicks it says what the full model says.
    """

    def counts(self, clicks, where):
        behind = np.cumsum(clicks[:, ::-1], axis=1)[:, ::-1]
        examined = where & ((behind > 0) | ~clicks.any(axis=1, keepdims=True))
        went_on = clicks & (behind > 1)
        return {"attraction": (clicks, examined)} | self.counted_behind(clicks, went_on)

    def counted_behind(self, clicks: np.ndarray, went_on: np.ndarray) -> Credits:
        """Successes and trials of what is behind a click: [pages, K] bool.

        Args:
            clicks: which documents were clicked.
            went_on: of which of them the click was not the last.
        """
        raise NotImplementedError


def losses(chance: Chance, clicks: Array, where: Array) -> Array:
    """-ln P(what was observed) of each click, 0 behind the end of a page: [..., K]."""
    numbers = numbers_of(clicks)
    observed = numbers.where(clicks, chance.log, chance.other)
    return -numbers.where(where, observed, 0.0)


def lay_out(values: Mapping[str, Array], parts: Mapping[str, str], pair: Array) -> dict[str, Array]:
    """Parts by document [pairs] -> by page [..., K]; the others as they are.

    Args:
        values: of each part.
        parts: what each belongs to.
        pair: [..., K] numbers of the pairs.
    """
    return {
        name: value[pair] if parts[name] == PER_DOCUMENT else value
        for name, value in values.items()
    }


def last_clicks(clicks: Array) -> Array:
    """[..., K] position from 1 of the last click above each position, 0 where there is none."""
    numbers = numbers_of(clicks)
    place = numbers.where(clicks, numbers.arange(1, clicks.shape[-1] + 1), 0)
    above = numbers.concatenate([numbers.zeros_like(place[..., :1]), place[..., :-1]], axis=-1)
    return highest_so_far(above)


def highest_so_far(values: Array) -> Array:
    """Maximum up to and with each position along the last axis, of NumPy or JAX arrays."""
    if numbers_of(values) is np:
        return np.maximum.accumulate(values, axis=-1)
    import jax  # here, since simulations need no JAX

    return jax.lax.cummax(values, axis=values.ndim - 1)


def attraction_of(relevance: np.ndarray, noise: float, highest: float) -> np.ndarray:
    """Logits of P(attractive) = noise + (1 - noise) (2^y - 1) / (2^highest - 1)."""
    gain = (2.0**relevance - 1) / (2**highest - 1)
    return logit(noise + (1 - noise) * gain)
