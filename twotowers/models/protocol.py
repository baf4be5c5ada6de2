"""The interface of click models, and names that all of them share.

A click model is a frozen dataclass. Its fields are constants. Its parameters come from outside, as
logits of its parts: attraction (one per query-document pair), examination (one per position) and
so on. Towers, tables and a simulated user all give such logits. So the class that simulates clicks
as a user also explains them as a model.

A model gives the probability of each click of a page, given the clicks above it. Their product is
the probability of the page. If clicks are independent (`CellModel`), this is one probability for
each cell: query, document and position. If not (`PageModel`), it needs whole pages.

Formulas take the chance of each part, laid out for pages. A part per document has shape [..., K], a
part per position [K], and a part with a single probability []. A part per jump has shape [K, K]:
its row is the position from 0, and its column the position from 1 of the last click above (0 for
none). Formulas accept NumPy and JAX arrays, and keep their precision.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from twotowers.errors import InputError
from twotowers.models.chances import Array, Chance, Share, certain, log_sigmoid, numbers_of

PER_DOCUMENT, PER_POSITION = "document", "position"
ONCE, PER_JUMP = "once", "jump"
"""The kinds of parts: one probability per query-document pair, one per position, a single one, or
one per jump. A jump is a position and the position of the last click above it (0 for none)."""

CELLS, JUMPS, PAGES = "cells", "jumps", "pages"
"""The sufficient statistics of a model: counts per (pair, position); counts per (pair, position,
last click); or distinct pages with their clicks."""

Parts = Mapping[str, Chance]
Credits = Mapping[str, tuple[Array, Array]]
"""Part -> (successes, trials) at each position of a page, counted or expected."""


def of_documents(parts: Mapping[str, str]) -> list[str]:
    """The names of the parts that have a probability per query-document pair."""
    return [part for part, kind in parts.items() if kind == PER_DOCUMENT]


def is_examination(part: str) -> bool:
    """Whether a part is examination, or that of one model of a mixture."""
    return part.partition("_")[0] == "examination"


@dataclass(frozen=True)
class ClickModel:
    """A click model over the clicks of a page: what all models have.

    Two methods let `twotowers.fitting.em` fit it. They are None if the model has no such method.
    The others then accept a `Share` for each part, too.

        counts(clicks, where) -> Credits                   closed form: trials are observed
        expectations(chances, clicks, where) -> Credits    EM: trials are hidden

    `clicks` and `where` are [pages, K] bool. `chances` holds the probability of each part at each
    position, in a shape that broadcasts to [pages, K]. Credits have the shape of clicks. A model
    with statistics CELLS or JUMPS also gives `of_cells(parts)`: P(click) of a row of these
    statistics, from its parts' chances there.

    Attributes:
        parts: part -> its kind: `PER_DOCUMENT`, `PER_POSITION`, `PER_JUMP` or `ONCE`.
        statistics: CELLS, JUMPS or PAGES.
        gaps: whether a page may show no document at a position above others.
    """

    parts: ClassVar[Mapping[str, str]]
    statistics: ClassVar[str]
    gaps: ClassVar[bool] = True
    counts: ClassVar[Callable[..., Credits] | None] = None
    expectations: ClassVar[Callable[..., Credits] | None] = None

    def conditional(self, parts: Parts, clicks: Array) -> Chance:
        """P(C_k = 1 | C_1..C_{k-1}) at each position: [..., K].

        Args:
            parts: the chance of each part, laid out for pages.
            clicks: [..., K] bool. Clicks past the end of a page have no effect on the page.
        """
        raise NotImplementedError

    def marginal(self, parts: Parts) -> Chance:
        """P(C_k = 1), not given any click, in a shape that broadcasts to [..., K]."""
        raise NotImplementedError

    def examination(self, parts: Parts) -> Chance:
        """P(E_k = 1), not given any click, in a shape that broadcasts to [..., K]."""
        raise NotImplementedError

    def log_likelihood(self, parts: Parts, clicks: Array, where: Array) -> Array:
        """ln P(C_1..C_K): [...] in nats.

        Args:
            parts, clicks: as in `conditional`.
            where: [..., K] bool, False past the end of a page.
        """
        return -losses(self.conditional(parts, clicks), clicks, where).sum(-1)

    def possible(self, clicks: Array, where: Array) -> Array:
        """[..., K] bool: the documents of pages that gates of fits hold against the model. Here all
        that are shown.

        A model leaves those out where it forbids a click whatever its parameters are.
        """
        return where

    def relevance(self, parts: Parts) -> Array:
        """Ranking scores of documents, higher is better. Here: the log-odds of attraction."""
        return parts["attraction"].logits

    def truth(self, relevance: np.ndarray, positions: int) -> dict[str, np.ndarray]:
        """The logits of each part for a simulated user.

        Args:
            relevance: [...] graded relevance in [0, 4].
            positions: number of positions on the page.

        Returns:
            part -> logits, in the shape of `relevance` for a part per document, [positions] for
            a part per position, and so on.
        """
        raise NotImplementedError

    def sample(
        self, parts: Parts, where: np.ndarray, *, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Draw clicks, and the hidden events that the model draws for them: [..., K] bool each.

        Args:
            parts: as in `conditional`, in NumPy.
            where: [..., K] bool, False past the end of a page.
            rng: source of randomness.

        Returns:
            "clicks", and what else was drawn, such as "examination" and "attraction".
        """
        raise NotImplementedError


@dataclass(frozen=True)
class CellModel(ClickModel):
    """A click model whose clicks are independent, given documents and positions.

    Counts of cells (query, document, position) are its sufficient statistics. A subclass gives
    `click_logit`, or `probability` if towers need not fit it. It gives `truth` if it can be a
    simulated user, and `posteriors` if EM can fit it. A model with one part can be counted. Its
    file's name is its name in a configuration.

    Attributes:
        parts: part -> its kind, such as `PER_DOCUMENT`.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Additive(CellModel):
        ...     def click_logit(self, attraction, examination):
        ...         return attraction + examination
        >>> float(Additive().click_probability(attraction=np.array(0.0), examination=np.array(0.0)))
        0.5
    """

    parts: ClassVar[Mapping[str, str]] = {"attraction": PER_DOCUMENT, "examination": PER_POSITION}
    statistics: ClassVar[str] = CELLS
    posteriors: ClassVar[Callable[..., Mapping[str, tuple]] | None] = None
    """(**parts) -> for each part (P(part | click), P(part | no click)), as numbers or arrays, from
    the parts' probabilities. A posterior given an impossible event may be NaN. The parts must be
    independent if clicks are not known."""

    def click_logit(self, **parts: Array) -> Array:
        """Log-odds of a click, in the shape that the parts' logits broadcast to."""
        if type(self).probability is CellModel.probability:
            raise NotImplementedError
        return logit(self.probability(**{name: expit(value) for name, value in parts.items()}))

    def click_probability(self, **parts: np.ndarray) -> np.ndarray:
        """P(click) in [0, 1], in the shape that the parts' logits broadcast to."""
        return expit(self.click_logit(**parts))

    def probability(self, **chances: np.ndarray) -> np.ndarray:
        """P(click) in [0, 1], from the parts' probabilities instead of their logits."""
        return self.click_probability(**{name: logit(value) for name, value in chances.items()})

    def conditional(self, parts, clicks):
        return self.marginal(parts).broadcast(clicks.shape)

    def marginal(self, parts):
        if isinstance(next(iter(parts.values())), Share):
            return Share.of(self.probability(**{part: each.value for part, each in parts.items()}))
        logits = {name: chance.logits for name, chance in parts.items()}
        return Chance.from_logits(self.click_logit(**logits))

    def of_cells(self, parts: Parts) -> Chance:
        """P(click) of each row of counts, from its parts' chances there."""
        return self.marginal(parts)

    def examination(self, parts):
        if "examination" in self.parts:
            return parts["examination"]
        return certain(next(iter(parts.values())).log)

    @property
    def counts(self):
        return self._counts if len(self.parts) == 1 else None

    def _counts(self, clicks, where):
        return dict.fromkeys(self.parts, (clicks & where, where))

    @property
    def expectations(self):
        return None if self.posteriors is None else self._expectations

    def _expectations(self, chances, clicks, where):
        with np.errstate(divide="ignore", invalid="ignore"):
            given = self.posteriors(**chances)
        if set(given) != set(self.parts):
            raise InputError(
                f"has the parts {sorted(given)}",
                field=f"{type(self).__name__}.posteriors",
                expected=f"the parts {sorted(self.parts)}",
            )
        return {name: (np.where(clicks, *given[name]) * where, where) for name in given}

    def chance(self, relevance: np.ndarray, positions: int) -> np.ndarray:
        """P(click) of the simulated user: [..., documents] -> [..., documents, positions]."""
        truth = self.truth(np.asarray(relevance), positions)
        parts = {
            name: values[..., None] if self.parts[name] == PER_DOCUMENT else values
            for name, values in truth.items()
        }
        chance = self.click_probability(**parts)
        return np.broadcast_to(chance, (*np.shape(relevance), positions))

    def sample(self, parts, where, *, rng):
        chance = np.broadcast_to(self.marginal(parts).value, where.shape)
        return {"clicks": where & (rng.random(where.shape) < chance)}

    def position_bias(self, examination: Array) -> Array:
        """[positions] what the data identify up to one constant, from the examination logits.

        Here: ln P(examined | k). If P(click) is a product, the data identify its factors up to
        one scale, so the logarithm up to one constant. A model that adds logits gives the logits.
        """
        return log_sigmoid(examination)


@dataclass(frozen=True)
class PageModel(ClickModel):
    """A click model whose clicks may depend on the clicks above them.

    A subclass gives `conditional` and `marginal`. It gives `examination` if the model has one, and
    `truth` if it can be a simulated user. Its file's name is its name in a configuration.
    """

    statistics: ClassVar[str] = PAGES

    def sample(self, parts, where, *, rng):
        clicks = np.zeros(where.shape, bool)
        drawn = rng.random(where.shape)
        for place in range(where.shape[-1]):
            chance = np.broadcast_to(self.conditional(parts, clicks).value, where.shape)
            clicks[..., place] = where[..., place] & (drawn[..., place] < chance[..., place])
        return {"clicks": clicks}


def losses(chance: Chance, clicks: Array, where: Array) -> Array:
    """-ln P(click or none, as observed) at each position, 0 past the end of a page: [..., K]."""
    return -numbers_of(clicks).where(where, chance.log_of(clicks), 0.0)


def odds_of(log_probability: Array) -> Array:
    """Log-odds from the logarithm of a probability: ln p - ln(1 - p)."""
    numbers = log_probability.__array_namespace__()
    # Keeps the log-odds of p = 1 finite, because 0 x infinity in a loss is NaN.
    below_one = numbers.minimum(log_probability, -numbers.finfo(log_probability.dtype).tiny)
    return below_one - numbers.log(-numbers.expm1(below_one))
