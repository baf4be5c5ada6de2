"""Users, or pages, whose clicks are out of line: bots, testers, price watchers.

The clicks of a user are compared with the click rates of all users at the same positions, where no
user has more weight than the median one. A user is out of line who clicks more often than `OFTEN`
times these rates allow, or who has `MUCH` of all clicks and places them `FAR` from others. Both
have probabilities that Hoeffding (1963, Theorems 1 and 2) bounds: a share s of n documents that are
clicked with a mean chance q < s, by exp(-n KL(s || q)); a mean of n clicks that is off by t, within
a range r, by 2 exp(-2 n t^2 / r^2). Which users are out of line follows from these by Benjamini and
Hochberg (1995), at `FALSE`.

If users are not known, a page stands for one. It is out of line if at least half of its documents,
and `FEWEST`, are clicked, and chance hardly has pages with c clicks among n documents: at most

    C(n, c) (mean click rate)^c (1 + v) (1 + 2 v) ... (1 + (c - 1) v)

of them, where users differ by a factor of mean 1 and variance v (moments of a gamma distribution),
which pairs of clicks of other pages tell. Again by Benjamini and Hochberg, at `FALSE_PAGES`.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, rel_entr

from twotowers.logs.log import Log

USER = "user"
OFTEN = 3.0
"""People differ: some click so many times as often as others."""
MUCH, FAR = 0.01, 0.9
"""A share of all clicks; and a distance from the mean position of others' clicks, in their standard
deviations of its logarithm."""
FALSE = 0.001
"""The expected share of those out of line that are not."""
FALSE_PAGES = 0.05
FEWEST = 3
MOST_NAMES = 3
CERTAIN = 0.95
"""No chance of a click is larger."""


@dataclass(frozen=True)
class Unusual:
    """Users, or pages, that are out of line, and the largest users.

    Attributes:
        rows: [pages] bool, their pages.
        known: whether users are known; otherwise each page stands for one.
        number: how many users, or pages, are out of line.
        names: of those with the most clicks, as text; empty if users are not known.
        pages, clicks: their shares of the log.
        ratio: their clicks over those that others make at the same positions.
        largest_pages, largest_clicks: the largest share of pages, and of clicks, that a user has.
    """

    rows: np.ndarray
    known: bool
    number: int
    names: list[str]
    pages: float
    clicks: float
    ratio: float
    largest_pages: float
    largest_clicks: float


def unusual(log: Log) -> Unusual:
    """Find the users, or pages, that are out of line; by the column `user`, if there is one."""
    known, lengths = USER in log.ids, log.flat("lengths")
    times = np.ones(len(lengths), int) if log.times is None else log.times
    number = log.flat(USER) if known else np.arange(len(lengths))
    number = np.unique(number, return_inverse=True)[1] if known else number
    position = np.concatenate([each.position for each in log.blocks])
    click = np.concatenate([each.click for each in log.blocks])
    owner, size = np.repeat(number, lengths), int(number.max(initial=-1)) + 1
    pages = np.bincount(number, times, size)
    # Without users, equal pages of one row have one chance, and count as often as they are.
    each = np.repeat(times, lengths) if known and log.times is not None else None

    def of_each(values: np.ndarray) -> np.ndarray:
        return values if each is None else each * values

    shown, clicked = np.bincount(owner, each, size), np.bincount(owner, of_each(click), size)
    many = (clicked >= FEWEST) & (clicked >= shown / 2)
    units = np.ones(size) if known else pages
    out = many & (not known)
    for _ in range(1 if known else 2):  # Rates are those of pages that are not out of line.
        weight = np.minimum(np.median(shown) / np.maximum(shown, 1), 1) if known else pages * ~out
        weight = of_each(weight[owner].astype(float))
        places = np.bincount(position, weight)
        rate = np.bincount(position, weight * click) / np.maximum(places, 1e-300)
        expected = np.bincount(owner, of_each(rate[position]), size)
        if known:
            often = np.bincount(owner, of_each(np.minimum(OFTEN * rate, CERTAIN)[position]), size)
            far = _far(np.log1p(position), of_each(click), of_each(rate[position]), owner, size)
            chance = np.where(clicked > MUCH * clicked.sum(), far, 1)
            chance = np.minimum(chance, _at_most(shown, clicked, often))
        else:
            squares = np.bincount(owner, rate[position] ** 2, size)
            spread = _spread(clicked, expected, squares, pages * ~out)
            chance = np.where(many, _of_page(shown, clicked, expected, spread), 1)
        out = _false(chance, units, FALSE if known else FALSE_PAGES)
    if not known:
        clicked, expected = clicked * pages, expected * pages
    names: list[str] = []
    if known and out.any():
        order = np.flatnonzero(out)[np.argsort(-clicked[out], kind="stable")][:MOST_NAMES]
        first = np.unique(number, return_index=True)[1][order]
        names = [str(each) for each in log.ids[USER].take(log.flat(USER)[first]).to_pylist()]
    return Unusual(
        out[number],
        known,
        int(units[out].sum()),
        names,
        float(pages[out].sum() / max(log.pages, 1)),
        float(clicked[out].sum() / max(clicked.sum(), 1)),
        float(clicked[out].sum() / max(expected[out].sum(), 1e-300)),
        float(pages.max(initial=0) / max(log.pages, 1)) if known else np.nan,
        float(clicked.max(initial=0) / max(clicked.sum(), 1)) if known else np.nan,
    )


def _spread(
    clicked: np.ndarray, expected: np.ndarray, squares: np.ndarray, times: np.ndarray
) -> float:
    """The variance between pages of a factor of all click rates, from pairs of clicks.

    [pages] clicks, and sums of click rates and of their squares; `times` each page counts.
    """
    pairs = times @ (expected**2 - squares)
    return float(max(times @ (clicked * (clicked - 1)) / max(pairs, 1e-300) - 1, 0))


def _of_page(
    shown: np.ndarray, clicked: np.ndarray, expected: np.ndarray, spread: float
) -> np.ndarray:
    """[pages] a bound of the probability of so many clicks: see the module."""
    most = int(clicked.max(initial=0))
    moments = np.append(0, np.cumsum(np.log1p(spread * np.arange(most))))
    mean = np.maximum(expected / np.maximum(shown, 1), 1e-300)
    log = gammaln(shown + 1) - gammaln(clicked + 1) - gammaln(shown - clicked + 1)
    log += clicked * np.log(mean) + moments[clicked.astype(int)]
    return np.exp(np.minimum(log, 0))


def _false(chance: np.ndarray, units: np.ndarray, level: float) -> np.ndarray:
    """[users] which are out of line, by Benjamini and Hochberg, of `units` [users] each.

    `chance` [users] is that of their clicks, at most; `level` the expected share of those out of
    line that are not.
    """
    order = np.argsort(chance, kind="stable")
    rank = np.cumsum(units[order]) / max(units.sum(), 1)
    passed = np.flatnonzero(chance[order] <= level * rank)
    return chance <= (chance[order[passed[-1]]] if len(passed) else -1)


def _at_most(shown: np.ndarray, clicked: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """[users] the largest probability of so many clicks; 1 if they are not more than expected."""
    n = np.maximum(shown, 1)
    share, mean = clicked / n, expected / n
    apart = rel_entr(share, mean) + rel_entr(1 - share, 1 - mean)
    return np.where(share > mean, np.exp(-n * np.maximum(apart, 0)), 1.0)


def _far(
    place: np.ndarray, click: np.ndarray, rate: np.ndarray, owner: np.ndarray, size: int
) -> np.ndarray:
    """[users] the largest probability of clicks so far from where others click; 1 within `FAR`.

    [shown] logarithm of the position, clicks, those that others would make, and number of the user.
    """
    whole, clicks = np.bincount(owner, rate, size), np.bincount(owner, click, size)
    whole, some = np.maximum(whole, 1e-300), np.maximum(clicks, 1)
    mean = np.bincount(owner, rate * place, size) / whole
    spread = np.sqrt(np.maximum(np.bincount(owner, rate * place**2, size) / whole - mean**2, 0))
    off = np.abs(np.bincount(owner, click * place, size) / some - mean)
    reach = max(float(np.ptp(place)), 1e-300) if len(place) else 1.0
    return np.where(off > FAR * spread, 2 * np.exp(-2 * clicks * (off / reach) ** 2), 1.0)
