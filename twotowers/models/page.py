"""Click models whose user reads a page from top to bottom, and what models of pages share.

`ChainModel` covers users who stop somewhere: CM, DCM, CCM, DBN and SDBN (Chuklin et al. 2015,
Chapter 3).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logit

from twotowers.models.chances import Array, Chance, Share, numbers_of, over_positions
from twotowers.models.protocol import PER_DOCUMENT, Credits, PageModel, Parts


@dataclass(frozen=True)
class ChainModel(PageModel):
    """A user who reads from top to bottom and stops somewhere.

    The user examines documents until the stop: E_1 = 1, and E_k = 0 for all k after it. C_k = 1
    exactly if position k is examined and its document attracts. Whether the user goes on to k + 1
    depends on whether k was clicked:

        P(E_{k+1} = 1 | E_k = 1, C_k = 1) = after_click_k
        P(E_{k+1} = 1 | E_k = 1, C_k = 0) = after_none_k

    With g_k the attraction and e_k = P(E_k = 1), examination without known clicks is

        e_{k+1} = e_k (g_k after_click_k + (1 - g_k) after_none_k)

    Given the clicks above k + 1, it is after_click_k if k was clicked. If not, Bayes' rule gives
    (1 - g_k) e_k after_none_k / (1 - g_k e_k). Eqs. 5.30 and 5.32 of the thesis misplace a
    bracket: as printed, the terms of the second case would also apply after a click.

    Pages have no gaps: whether a user goes on behind one is left open.

    A subclass gives `continuation`, and `credit_clicked` if EM is to fit it; also `credit_skipped`
    if after_none depends on parts.
    """

    ABSTRACT: ClassVar = True
    gaps: ClassVar[bool] = False

    def continuation(self, parts: Parts) -> tuple[Chance, Chance]:
        """after_click and after_none, in shapes that broadcast to [..., K].

        Args:
            parts: all a `Chance`, or all a `Share`, as in an E-step.
        """
        raise NotImplementedError

    def credit_clicked(
        self, chances: Mapping[str, np.ndarray], went_on: np.ndarray, stopped: np.ndarray
    ) -> Credits:
        """Expected successes and trials of what decides whether a user goes on after a click.

        What a document attracts by being clicked is credited by this class, and comes on top.

        Args:
            chances: the probability of each part that `after_click` depends on.
            went_on, stopped: in the shape of `chances`, expected numbers of clicks behind which
                users did so. They may be sums over many pages, so a formula is linear in them.
        """
        raise NotImplementedError

    def credit_skipped(
        self, chances: Mapping[str, np.ndarray], went_on: np.ndarray, stopped: np.ndarray
    ) -> Credits:
        """The same after examined documents without a click. Nothing unless a subclass says so."""
        return {}

    def conditional(self, parts: Parts, clicks: Array) -> Chance:
        def step(examined, column):
            attractive, after_click, after_none, clicked = column
            behind = examined.passed(attractive, after_none)
            return after_click.where(clicked, behind), examined & attractive

        attraction = parts["attraction"]
        clicks = numbers_of(attraction.other).asarray(clicks)
        columns = attraction, *self._laid_out(parts), clicks
        return over_positions(step, attraction.at((..., 0)).always, columns)

    def marginal(self, parts: Parts) -> Chance:
        return self.examination(parts) & parts["attraction"]

    def examination(self, parts: Parts) -> Chance:
        attraction = parts["attraction"]
        goes_on = attraction.mix(*self._laid_out(parts))
        start = attraction.at((..., 0)).always
        return over_positions(lambda now, on: (now & on, now), start, goes_on)

    def _laid_out(self, parts: Parts) -> tuple[Chance, Chance]:
        shape = parts["attraction"].other.shape
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

    def _examined(
        self, chances: Mapping[str, np.ndarray], clicks: np.ndarray, where: np.ndarray
    ) -> np.ndarray:
        """[pages, K] P(E_k = 1 | clicks), and 0 past the end of a page."""
        parts = {name: Share.of(values) for name, values in chances.items()}
        after_click, after_none = self._laid_out(parts)
        goes_on, stops = map(_by_position, after_click.where(clicks, after_none))
        ignored, inside = _by_position(parts["attraction"].other), where.T
        length, pages = ignored.shape
        # P(no click from k on | E_k = 1). It is 1 past the end of a page.
        silent = np.ones((length + 1, pages))
        # P(E_{k+1} = 1 | E_k = 1, C_k), if no click is below k. On long pages `silent` may be too
        # small for a number. Then this is 0, or 1 if the user never stops, as it should be.
        further = np.ones((length, pages))
        for place in reversed(range(length)):
            on = goes_on[place] * silent[place + 1]
            total = on + stops[place]
            np.divide(on, total, out=further[place], where=total > 0)
            silent[place] = np.where(inside[place], ignored[place] * total, 1)
        behind = np.cumsum(clicks.T[::-1], axis=0)[::-1] > 0  # a click here or below
        examined = np.zeros((length, pages))
        examined[0] = 1
        for place in range(1, length):
            hidden = examined[place - 1] * further[place - 1]
            examined[place] = np.where(behind[place], 1, hidden)
        return (examined * inside).T

    def expectations(self, chances, clicks, where) -> Credits:
        now = self._examined(chances, clicks, where)
        then, known = next_place(now), where & next_place(where)
        clicked = (clicks & known) * then, (clicks & known) * (1 - then)
        skipped = (~clicks & known) * then, (~clicks & known) * (now - then)
        return added(
            {"attraction": (clicks, now)},
            self.credit_clicked(chances, *clicked),
            self.credit_skipped(chances, *skipped),
        )


def added(*credits: Credits) -> Credits:
    """The sums of successes and of trials of each part.

    Example:
        >>> added({"attraction": (1, 2)}, {"attraction": (0, 1), "continuation": (1, 1)})
        {'attraction': (1, 3), 'continuation': (1, 1)}
    """
    totals = {}
    for part, (successes, trials) in (entry for each in credits for entry in each.items()):
        before = totals.get(part)
        totals[part] = (
            (before[0] + successes, before[1] + trials) if before else (successes, trials)
        )
    return totals


def next_place(values: np.ndarray) -> np.ndarray:
    """[pages, K] the value of each position's next one, and 0 at the last.

    Example:
        >>> next_place(np.array([[3, 1, 2]]))
        array([[1, 2, 0]])
    """
    shifted = np.zeros_like(values)
    shifted[:, :-1] = values[:, 1:]
    return shifted


def _by_position(values: np.ndarray) -> np.ndarray:
    """[pages, K] -> [K, pages], with the pages of a position side by side in memory."""
    return np.ascontiguousarray(values.T)


@dataclass(frozen=True)
class SimplifiedModel(ChainModel):
    """A chain that is fitted as if the user always stopped after the last click.

    Under this assumption nothing is hidden: the user examined all documents down to the last click,
    or the whole page if there was no click. So parameters are rates that can be counted, as PyClick
    does. Predictions use the full model's formulas.
    """

    ABSTRACT: ClassVar = True

    def counts(self, clicks, where):
        behind = np.cumsum(clicks[:, ::-1], axis=1)[:, ::-1]
        examined = where & ((behind > 0) | ~clicks.any(axis=1, keepdims=True))
        went_on = clicks & (behind > 1)
        return {"attraction": (clicks, examined)} | self.counted_behind(clicks, went_on)

    def counted_behind(self, clicks: np.ndarray, went_on: np.ndarray) -> Credits:
        """Successes and trials of the parts that act after a click, [pages, K] bool.

        `went_on`: which of the clicks were not the last of their page.
        """
        raise NotImplementedError


def lay_out(values: Mapping[str, Array], parts: Mapping[str, str], pair: Array) -> dict[str, Array]:
    """Spread the parts per document from pairs [pairs] to pages [..., K]; keep the other parts."""
    return {
        name: value[pair] if parts[name] == PER_DOCUMENT else value
        for name, value in values.items()
    }


def last_clicks(clicks: Array) -> Array:
    """[..., K] position from 1 of the last click above each position, 0 for none.

    Example:
        >>> last_clicks(np.array([[True, False, True, False]]))
        array([[0, 1, 1, 3]])
    """
    numbers = numbers_of(clicks)
    place = numbers.where(clicks, numbers.arange(1, clicks.shape[-1] + 1), 0)
    above = numbers.concatenate([numbers.zeros_like(place[..., :1]), place[..., :-1]], axis=-1)
    return highest_so_far(above)


def highest_so_far(values: Array) -> Array:
    """Running maximum along the last axis, of NumPy or JAX arrays."""
    if numbers_of(values) is np:
        return np.maximum.accumulate(values, axis=-1)
    import jax  # here, because simulations run without JAX

    return jax.lax.cummax(values, axis=values.ndim - 1)


def attraction_of(relevance: np.ndarray, noise: float, highest: float) -> np.ndarray:
    """Logits of P(attractive) = noise + (1 - noise) (2^y - 1) / (2^highest - 1)."""
    gain = (2.0**relevance - 1) / (2**highest - 1)
    return logit(noise + (1 - noise) * gain)
