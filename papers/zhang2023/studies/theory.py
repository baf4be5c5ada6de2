"""Section 4 by numbers: what is the set of optima, and where do both remedies end?

Expected losses of small tables, whose optima are found to machine precision. A log is a support,
the cells (feature value, position) that it shows, each equally often. Theorem 2 and Proposition 3
are about the paper's model, c = f g. Lemma 7 and Proposition 9 are about the one that is trained,
s(f + g), under a user of that very kind, so that what they say cannot fail for lack of fit.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.optimize import minimize, root
from scipy.special import expit, logit

from twotowers.randomness import stream

RELEVANCE = 0.1 + 0.9 * (2.0 ** np.arange(5) - 1) / 15
"""P(R) of the labels 0 to 4 (Eq. 16); a feature value is a label."""
POSITIONS = 5
EXAMINATION = 1 / np.arange(1, POSITIONS + 1)
FLAT = 1e-9
"""Eigenvalues below this share of the largest are 0."""
TWO_DOCUMENTS = {
    "relevance": (0.8, 0.4),
    "observation": (1, 0.5),
    "relevance of another optimum": (0.8, 0.5),
    "its observation": (1, 0.4),
}
"""Of A, which is seen at position 1 alone, and of B at position 2."""
CHANCES = 0.05, 0.1, 0.2
"""Of clicks on cells, where dropout is a factor."""
STEP, FAR = 0.2, 50.0
"""Size of a step of gradient reversal, and where parameters that run away are held."""

FULL = np.ones((len(RELEVANCE), POSITIONS), bool)
ORACLE = np.eye(POSITIONS, dtype=bool)[::-1]
"""Label 4 is always first, label 0 last: no label is seen at two positions."""
CHAIN = ORACLE | np.roll(ORACLE, 1, axis=1) & ~np.eye(POSITIONS, dtype=bool)[:, [0]]
BLOCKS = np.zeros_like(FULL)
BLOCKS[3:, :2] = BLOCKS[:3, 2:] = True
"""The labels 3 and 4 share the positions 1 and 2, the others the rest."""

SUPPORTS = {"all cells": FULL, "connected": CHAIN, "two blocks": BLOCKS, "oracle": ORACLE}


def run(
    inputs,
    *,
    seed: int,
    draws: int,
    starts: int,
    rates: list[float],
    scales: list[float],
    steps: int,
) -> pd.DataFrame:
    """All parts, one below the other.

    There are so many `draws` of optima per support, and fits from `starts` where Theorem 2 fails;
    `rates` are dropout rates tau below 1, `scales` gradient scales eta.

    Gradient reversal takes so many steps before a root of the slopes is sought.
    """
    parts = [
        *_optima(seed, draws, starts),
        *_dropout(rates),
        *_mean_prediction(rates),
        *_reversal(scales, steps),
    ]
    rows = [(*place, *each) for *place, values in parts for each in values.items()]
    columns = ["part", "support", "at", "metric", "value"]
    return pd.DataFrame(rows, columns=columns).assign(position=None)


# Theorem 2 and Proposition 3.


def _optima(seed: int, draws: int, starts: int):
    """Dimension of the set of optima, and how those rank that are not the truth.

    With ln f and ln g as parameters all optima solve ln f + ln g = ln p on the support: an affine
    space. An optimum ranks worse if a label stands above a higher one.
    """
    for name, support in SUPPORTS.items():
        hessian = _hessian(support)
        bends, vectors = np.linalg.eigh(hessian)
        flat = vectors[:, bends < FLAT * bends.max()]
        rng = stream("optima", seed, name)
        truth = np.log(RELEVANCE)
        worse = []
        for _ in range(draws):
            moved = truth + (flat @ rng.normal(size=flat.shape[1]))[: len(truth)]
            worse.append((np.diff(moved) <= 0).any())
        values = {"dimension": flat.shape[1], "share_worse": np.mean(worse)}
        yield "theorem2", name, None, values
    yield "theorem2", "two documents", None, _two_documents()
    yield "theorem2", "one line", None, _line(seed, starts)


def _hessian(support: np.ndarray) -> np.ndarray:
    """Of the expected loss of c = f g by (ln f, ln g) at the truth: p / (1 - p) a cell."""
    feature, position = np.nonzero(support)
    chance = RELEVANCE[feature] * EXAMINATION[position]
    # A label that is clicked for sure at the top would count without end.
    weight = chance / (1 - np.minimum(chance, 1 - 1e-6))
    design = np.zeros((len(feature), len(RELEVANCE) + POSITIONS))
    design[np.arange(len(feature)), feature] = 1
    design[np.arange(len(feature)), len(RELEVANCE) + position] = 1
    return design.T @ (weight[:, None] * design) / len(feature)


def _two_documents():
    """Proposition 3: the labels are the chances of relevance, which another optimum trades for
    observation, and ranks as well."""
    relevance, examination, f, g = map(np.array, TWO_DOCUMENTS.values())
    discount = 1 / np.log2([2, 3])
    ndcg = relevance[np.argsort(-f)] @ discount / (np.sort(relevance)[::-1] @ discount)
    excess = _excess(relevance * examination, logit(f * g))
    return {"share_worse": float(f[0] <= f[1]), "excess_loss": excess, "ndcg": ndcg}


def _line(seed: int, starts: int):
    """Theorem 2: a relevance and a position that are the same number x, drawn from [1, 2].

    f = s(theta x), g = s(phi x), and the truth is (1, -1). Swapped parameters are optimal as well,
    and rank in reverse: f falls in x. Whether the optima lie in a continuum, the Hessian and the
    ends of many fits say.
    """
    x, truth = np.linspace(1, 2, 201), np.array([1.0, -1.0])
    chance = expit(truth[0] * x) * expit(truth[1] * x)

    def log_chance(parameters):
        return -np.logaddexp(0, -np.outer(parameters, x)).sum(axis=0)

    def loss(parameters):
        log = log_chance(parameters)
        return -np.mean(chance * log + (1 - chance) * np.log1p(-np.exp(log)))

    # At an optimum that fits all cells, the Hessian is that of Gauss and Newton.
    design = chance[:, None] * x[:, None] * expit(-np.outer(x, truth))
    curvature = np.linalg.eigvalsh(design.T @ (design / (chance * (1 - chance))[:, None]))
    drawn = stream("line", seed).normal(0, 3, size=(starts, 2))
    ends = np.array([_minimum(loss, start) for start in drawn])
    at = {"truth": truth, "swapped": truth[::-1]}
    away = {name: np.abs(ends - each).max(axis=1) for name, each in at.items()}
    return {
        "dimension": (curvature < FLAT * curvature.max()).sum(),
        "share_worse": float(truth[::-1][0] <= 0),
        "excess_loss": loss(truth[::-1]) - loss(truth),
        "least_curvature": curvature.min() / len(x),
        "starts": starts,
        **{f"ends_at_{name}": (own < 1e-3).sum() for name, own in away.items()},
    }


# Lemma 7 and Propositions 6 and 9.


def _excess(chance: np.ndarray, logits: np.ndarray) -> float:
    """Mean loss of the logits above the least there is: a divergence, 0 at an exact fit."""
    loss, least = (np.mean(np.logaddexp(0, at) - chance * at) for at in (logits, logit(chance)))
    return float(loss - least)


class _Additive:
    """Labels and positions with logits f and g, g_1 = 0, and a user of the same kind."""

    def __init__(self, support: np.ndarray):
        self.feature, self.position = np.nonzero(support)
        self.f, self.g = np.arange(5) - 2.0, np.log(EXAMINATION)
        self.chance = expit(self.f[self.feature] + self.g[self.position])

    def parts(self, parameters: np.ndarray):
        """f and g of every cell, and of every position."""
        f, g = parameters[:5], np.append(0, parameters[5:])
        return f[self.feature], g[self.position], g

    def loss(self, logits: np.ndarray) -> float:
        return np.mean(np.logaddexp(0, logits) - self.chance * logits)

    @property
    def truth(self) -> np.ndarray:
        return np.concatenate([self.f, self.g[1:]])

    def values(self, parameters: np.ndarray) -> dict[str, float]:
        """How far an optimum is from one without the remedy, and from the truth."""
        f, g, bias = self.parts(parameters)
        share = bias[1:] / self.g[1:]
        return {
            "excess_loss": _excess(self.chance, f + g),
            "examination_share_least": share.min(),
            "examination_share_most": share.max(),
            "order_kept": float((np.diff(parameters[:5]) > 0).all()),
        }


def _dropout(rates: list[float]):
    """The optimum of the mean loss over what is dropped; kept scores are scaled by 1 / (1 - tau).

    (1 - tau) L(s(f + g / (1 - tau))) + tau L(s(f)) is convex in f and g.
    """
    for name, support in SUPPORTS.items():
        world = _Additive(support)
        for rate in rates:

            def mean_loss(parameters, rate=rate, world=world):
                f, g, _ = world.parts(parameters)
                kept = (1 - rate) * world.loss(f + g / (1 - rate))
                # Where an optimum is not unique, the one nearest to 0.
                return kept + rate * world.loss(f) + 1e-9 * np.square(parameters).sum()

            yield "lemma7", name, rate, world.values(_minimum(mean_loss, world.truth))


def _minimum(loss: Callable, start: np.ndarray) -> np.ndarray:
    return minimize(loss, start, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).x


def _mean_prediction(rates: list[float]):
    """c / p where the mean prediction (1 - tau) c is fitted to p: the lemma's own model, Eq. 12.

    The lemma divides by tau, so that c = tau p. The factor is the same at every cell.
    """
    for rate in rates:
        # c is no probability here: beyond 1 where 1 - tau < p.
        factors = [
            minimize(
                lambda c, kept=1 - rate, p=p: (
                    -p * np.log(kept * c[0]) - (1 - p) * np.log(1 - kept * c[0])
                ),
                [p],
                bounds=[(1e-6, (1 - 1e-6) / (1 - rate))],
                options={"ftol": 1e-15, "gtol": 1e-10},
            ).x[0]
            / p
            for p in CHANCES
        ]
        values = {"c_over_p": float(np.mean(factors)), "spread": float(np.ptp(factors))}
        yield "lemma7", "mean prediction", rate, values | {"c_over_p_printed": rate}


def _reversal(scales: list[float], steps: int):
    """Where small steps of gradient descent end, the adversary's gradient by g reversed.

    They start at the truth, with the adversary's best guess. The adversary guesses clicks, or
    relevance scaled to [0, 1]. What is left
    of the slopes after so many steps a root finder removes.
    """
    for name, support in SUPPORTS.items():
        world = _Additive(support)
        for label in ("click", "relevance"):
            target = world.chance if label == "click" else world.feature / 4
            _, g, _ = world.parts(world.truth)
            start = np.concatenate([world.truth, np.polyfit(g, target, 1)])
            at = np.tile(start, (len(scales), 1))
            for _ in range(steps):
                at -= STEP * _gradients(at, world, target, np.array(scales))
                at = at.clip(-FAR, FAR)
            part = f"proposition9, {label}"
            for scale, end in zip(scales, at, strict=True):

                def slopes(end, world=world, target=target, scale=scale):
                    return _gradients(end[None], world, target, np.array([scale]))[0]

                end = root(slopes, end, method="lm", options={"xtol": 1e-14, "ftol": 1e-14}).x
                values = {"slope_left": np.abs(slopes(end)).max(), **world.values(end[:-2])}
                yield part, name, scale, values


def _gradients(at: np.ndarray, world: _Additive, target: np.ndarray, scale: np.ndarray):
    """[scales, parameters] of f, g from the second position on, w and b."""
    f, g = at[:, :5], np.concatenate([np.zeros((len(at), 1)), at[:, 5:9]], axis=1)
    f, g, w, b = f[:, world.feature], g[:, world.position], at[:, 9:10], at[:, 10:11]
    residual = (expit(f + g) - world.chance) / len(target)
    error = 2 * (w * g + b - target) / len(target)
    by_f = residual @ np.eye(5)[world.feature]
    # The click loss moves g down its slope, the adversary's loss up.
    by_g = (residual - scale[:, None] * w * error) @ np.eye(POSITIONS)[world.position]
    by_w, by_b = (error * g).sum(1, keepdims=True), error.sum(1, keepdims=True)
    return np.concatenate([by_f, by_g[:, 1:], by_w, by_b], axis=1)
