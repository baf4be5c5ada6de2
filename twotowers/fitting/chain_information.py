"""What clicks tell of a chain model's probabilities: the observed information of pages.

Hidden is only how far a user read (`twotowers.models.page.ChainModel`): down to place T. Had T been
seen, the score of a log-odds h would be a sum over the places that were read,

    S_h(T) = sum_k c_hk 1[T >= k]

The observed information is that of pages whose T was seen, less what is hidden (Louis 1982):

    I = E[-dS / dh | clicks] - Cov[S | clicks]

With e_k = P(T >= k | clicks), Cov(1[T >= k], 1[T >= l]) = e_l (1 - e_k) for k <= l. So what two
places share is a product of one number of each.

    >>> from twotowers.models.dependent_click import DependentClick
    >>> chances = {"attraction": np.array([[0.5, 0.5]]), "continuation": np.array([[0.5, 0.5]])}
    >>> page = np.array([[True, False]]), np.ones((1, 2), bool)
    >>> found = information_of_chain(DependentClick(), chances, *page)
    >>> [(one, other, values.round(3).tolist()) for one, _, other, _, values in found][:2]
    [('attraction', 'attraction', [[0.25, 0.028]]), ('attraction', 'attraction', [[0.0]])]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
from scipy.special import expit, logit

from twotowers.models.page import ChainModel, added, next_place
from twotowers.models.protocol import ONCE

STEP = 1e-5
"""Of the differences of scores, in log-odds: they are exact to about as large a share."""

Entries = tuple[str, slice, str, slice, np.ndarray]
"""A part, some of its places, another part, some of its places, and their information: [pages, n].
Either part has n places or one."""


def information_of_chain(
    model: ChainModel, chances: Mapping[str, np.ndarray], clicks: np.ndarray, where: np.ndarray
) -> Iterator[Entries]:
    """Yield the observed information of log-odds, page by page.

    Entries add up to a matrix M for each page. It need not be symmetric, since what two
    probabilities share may stand on one side of the diagonal alone. Then it stands there twice. So
    the information is (M + M') / 2.

    Args:
        model: one that is a chain (`twotowers.fitting.chains.is_chain`).
        chances: part -> [pages, K] probabilities inside (0, 1).
        clicks, where: [pages, K] bool.
    """
    now = model.examined_given(chances, clicks, where)
    then, follows = next_place(now), where & next_place(where)
    clicked, skipped = clicks & follows, where & ~clicks & follows

    def score(chances, attracted, went_on, stopped):
        """Part -> [pages, K] score of its log-odds, given how many users did what at a place."""
        credits = added(
            {"attraction": attracted},
            model.credit_clicked(chances, clicked * went_on, clicked * stopped),
            model.credit_skipped(chances, skipped * went_on, skipped * stopped),
        )
        return {part: one - trials * chances[part] for part, (one, trials) in credits.items()}

    seen = (clicks, now), then, now - then
    before, nothing = score(chances, *seen), np.zeros(now.shape)
    moved = {
        part: score({**chances, part: expit(logit(own) + STEP)}, *seen)
        for part, own in chances.items()
    }
    on, off = (score(chances, (nothing, nothing), *each) for each in ((1.0, 0.0), (0.0, 1.0)))
    # How much a place adds to the score if the user read it; and how much more if the user also
    # read the next place.
    here = {part: off.get(part, nothing) for part in chances}
    here["attraction"] = here["attraction"] - (where & ~clicks) * chances["attraction"]
    below = {part: on.get(part, nothing) - off.get(part, nothing) for part in chances}
    # The covariance of two places is `first` of the upper times `second` of the lower one.
    first = {part: here[part] * (1 - now) + below[part] * (1 - then) for part in chances}
    second = {part: here[part] * now + below[part] * then for part in chances}
    every, once = slice(None), [part for part in chances if model.parts[part] == ONCE]
    above = {part: np.cumsum(first[part], axis=1) - first[part] for part in once}
    further = {
        part: np.cumsum(second[part][:, ::-1], axis=1)[:, ::-1] - second[part] for part in once
    }
    for one, other in product(chances, chances):
        same = (before.get(one, nothing) - moved[other].get(one, nothing)) / STEP
        same -= here[one] * here[other] * now * (1 - now)
        same -= (here[one] * below[other] + below[one] * here[other]) * then * (1 - now)
        same -= below[one] * below[other] * then * (1 - then)
        if other in once:
            same -= first[one] * further[other] + second[one] * above[other]
            # What stands on one side of the diagonal alone stands there twice.
            yield one, every, other, every, same if one in once else 2 * same
        elif one not in once:
            yield one, every, other, every, same
            for place in range(now.shape[1] - 1):
                at, rest = slice(place, place + 1), slice(place + 1, None)
                shared = -2 * first[one][:, at] * second[other][:, rest]
                yield one, at, other, rest, shared
