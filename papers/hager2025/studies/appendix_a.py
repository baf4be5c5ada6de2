"""Appendix A: bias features beyond position, 5 positions x 3 content types x 2 devices.

Documents with a relevance parameter each are shown under 30 bias configurations z. Where every
document may appear under every configuration, the 30 are connected; where a document keeps its
content type, or content type and device, they fall apart into 3 or 6 components; a few documents
that are shown under any configuration join those again. In two further regimes relevance is
linear in features, and so is the model: then configurations without a document in common may still
have features in common (Eq. 27), unless these tell their content and device. Clicks are sampled
and fitted exactly, from two random starts of the bias.
"""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from twotowers.fitting.newton import fit_embedding, fit_linear
from twotowers.fitting.pair_counts import factor_components
from twotowers.models.additive import Additive, inverse_rank

CONTENT = {"text": 0.0, "image": 0.4, "video": -0.6}
DEVICE = {"desktop": 0.0, "mobile": -0.5}
POSITIONS = 5
USER = Additive()

BRIDGE = 20
"""One document of so many is shown under any configuration where bridges are."""

ISOLATED = "content and device isolated"
BRIDGED = "isolated, with bridges"
OVERLAPPING = "isolated, features overlap"
TELLING = "isolated, features tell"
WIDTH = 5
"""Features of a document, where relevance is linear in them."""


def isolated(document: np.ndarray, content: int, device: int) -> np.ndarray:
    """Whether a document has this content type and device."""
    return (document % 3 == content) & (document // 3 % 2 == device)


REGIMES = {
    "connected": lambda document, content, device: np.ones_like(document, bool),
    "content isolated": lambda document, content, device: document % 3 == content,
    ISOLATED: isolated,
    OVERLAPPING: isolated,
    TELLING: isolated,
    BRIDGED: lambda document, *place: isolated(document, *place) | (document % BRIDGE == 0),
}
"""Which documents may be shown under which content type and device."""


def run(inputs, *, seed: int, documents: int, views: int, impressions: int) -> pd.DataFrame:
    """True and estimated bias per configuration (its number is `position`), and its component.

    Per regime also the number of components, the largest error, the largest that is left once each
    component may have a constant of its own, and the largest change of an estimate when the fit
    starts elsewhere: what the data identify does not change. A document is shown under `views` of
    the configurations that it may have, `impressions` times under each.
    """
    frames = [
        regime(name, seed=seed, documents=documents, views=views, impressions=impressions)
        for name in REGIMES
    ]
    return pd.concat(frames, ignore_index=True)


def true_bias() -> np.ndarray:
    """[30] examination logits: position, content type and device add up, and interact."""
    position = inverse_rank(POSITIONS)
    content, device = list(CONTENT.values()), list(DEVICE.values())
    return np.array(
        [
            position[p] * (1 + 0.2 * d) + content[c] + device[d]
            for p, c, d in product(range(POSITIONS), range(len(content)), range(len(device)))
        ]
    )


def regime(name: str, *, seed: int, documents: int, views: int, impressions: int) -> pd.DataFrame:
    """One regime: who is shown where, what they click, and what an exact fit makes of it."""
    rng = np.random.default_rng([seed, *name.encode()])
    truth = true_bias()
    exposure = np.zeros((documents, len(truth)))
    for document, allowed in enumerate(shown_under(name, np.arange(documents))):
        chosen = rng.choice(np.flatnonzero(allowed), size=min(views, allowed.sum()), replace=False)
        exposure[document, chosen] = impressions
    features = features_of(name, documents, rng)
    if features is None:
        fit, relevance = fit_embedding, rng.uniform(0, 4, documents)
    else:
        fit = partial(fit_linear, features)
        relevance = USER.centre + features[:, :WIDTH].sum(1) / np.sqrt(WIDTH)
    chance = USER.click_probability(attraction=relevance[:, None] - USER.centre, examination=truth)
    clicks = rng.binomial(exposure.astype(int), chance)
    component = factor_components(*np.nonzero(exposure), factors=len(truth))
    # One constant is free; the first configuration's estimate is set to its true value.
    starts = rng.normal(size=(2, len(truth)))
    biases = (fit(exposure, clicks, start=start).bias for start in starts)
    estimate, other = (bias - bias[0] + truth[0] for bias in biases)
    error = estimate - truth
    columns = {"truth": truth, "estimate": estimate, "component": component + 1}
    frame = pd.DataFrame({"position": np.arange(1, len(truth) + 1), **columns})
    summary = {
        "components": component.max() + 1,
        "largest_error": np.abs(error).max(),
        "largest_error_within_component": within(error, component),
        "largest_effect_of_start": np.abs(estimate - other).max(),
    }
    summary = pd.DataFrame({"metric": summary.keys(), "value": summary.values()})
    parts = [frame.melt(id_vars="position", var_name="metric"), summary]
    return pd.concat(parts, ignore_index=True).assign(regime=name)


def features_of(name: str, documents: int, rng: np.random.Generator) -> np.ndarray | None:
    """[documents, width] features; None where each document has a parameter of its own.

    A constant is among them, so that `TELLING` differs by what its features tell alone: an
    indicator of each pair of content and device.
    """
    if name not in (OVERLAPPING, TELLING):
        return None
    features = np.column_stack([rng.normal(size=(documents, WIDTH)), np.ones(documents)])
    if name == OVERLAPPING:
        return features
    kinds = len(CONTENT) * len(DEVICE)
    return np.column_stack([features, np.eye(kinds)[np.arange(documents) % kinds]])


def shown_under(name: str, document: np.ndarray) -> np.ndarray:
    """[documents, 30] bool: the configurations that a regime allows each document."""
    columns = [
        REGIMES[name](document, content, device)
        for _, content, device in product(range(POSITIONS), range(len(CONTENT)), range(len(DEVICE)))
    ]
    return np.stack(columns, axis=1)


def within(error: np.ndarray, component: np.ndarray) -> float:
    """Largest error left once every component may have a constant of its own."""
    centred = [error[component == c] - error[component == c].mean() for c in np.unique(component)]
    return max(np.abs(part).max() for part in centred)
