"""Section 4.4: what a relevance tower of features identifies where no document is ever swapped.

One document of each query stands at each position, always the same. Its features are drawn around a
centre that the position has in each of them, so that the supports of adjacent positions overlap, or
leave a gap (Theorem 4.1). Expected clicks are fitted by a neural tower from several random starts:
what the data identify does not depend on the start. Two fits that are equally good also say whether
the bound of Eq. 14 holds. Gap, number of features and size of the tower are varied, one at a time
(Section 4.5).
"""

from itertools import combinations

import jax.numpy as jnp
import numpy as np
import pandas as pd
from flax import nnx
from jax.flatten_util import ravel_pytree

from twotowers.fitting.gradient import FitSettings
from twotowers.fitting.gradient import fit as gradient_fit
from twotowers.logs.counts import Counts
from twotowers.losses.likelihood import CountLoss
from twotowers.models.additive import Additive, inverse_rank
from twotowers.towers.dense import DenseTower
from twotowers.towers.two_towers import scores, two_towers

GPU = True

POSITIONS = 5
USER = Additive()
GRID = 1001
"""Points at which a tower of one feature is read, to find its steepest slope."""


def run(
    inputs,
    *,
    seed: int,
    queries: int,
    starts: int,
    steps: int,
    gaps: list[float],
    features: list[int],
    widths: list[int],
    gap: float,
    width: int,
) -> pd.DataFrame:
    """Per condition: errors, effect of the start, residuals, and how much of Eq. 14 is used.

    The study makes its own documents: `queries` of `POSITIONS` each. Gaps are between the supports
    of adjacent positions, whose centres are 1 apart; negative where they overlap. One of gaps (with
    one feature, and a tower of two layers of `width`), numbers of features (with `gap` in each) and
    widths (with one feature and `gap`) is varied. `steps` are of gradient descent, on all documents
    at once.
    """
    conditions = [("gap", value, {"gap": value}) for value in gaps]
    conditions += [("features", value, {"features": value}) for value in features]
    conditions += [("width", value, {"width": value}) for value in widths]
    frames = []
    for varied, value, change in conditions:
        chosen = {"gap": gap, "features": 1, "width": width} | change
        values = condition(seed=seed, queries=queries, starts=starts, steps=steps, **chosen)
        frame = pd.DataFrame({"metric": values.keys(), "value": values.values()})
        frames.append(frame.assign(varied=varied, amount=float(value)))
    return pd.concat(frames, ignore_index=True).assign(position=None)


def documents(*, seed: int, queries: int, features: int, gap: float) -> np.ndarray:
    """[queries, POSITIONS, features] uniform around -k at position k, in each feature."""
    rng = np.random.default_rng([seed, queries, features])
    centre = -np.arange(POSITIONS, dtype=float)[:, None]
    return centre + (1 - gap) * rng.uniform(-0.5, 0.5, (queries, POSITIONS, features))


def relevance(x: np.ndarray) -> np.ndarray:
    """[..., features] -> [...] in [0, 4]: a smooth function of the mean feature, best on top."""
    return 2 + 2 * np.tanh((x.mean(-1) + (POSITIONS - 1) / 2) / 2)


def condition(
    *, seed: int, queries: int, starts: int, steps: int, gap: float, features: int, width: int
) -> dict[str, float]:
    """What fits from several starts say of one condition.

    `effect_of_start`: the largest range of an estimate over starts; `largest_error` of any
    estimate; `largest_residual` (a probability) of any fit; `distance` of the nearest documents of
    adjacent positions, a mean over these; with one feature and a gap also `bound_used`: the largest
    |D_k - D_k'| / (2 L |x1 - x2|) of two fits, adjacent positions and their nearest documents (Eq.
    14).
    """
    x = documents(seed=seed, queries=queries, features=features, gap=gap)
    gamma = relevance(x)
    chance = np.diagonal(USER.chance(gamma, POSITIONS), axis1=-2, axis2=-1)
    models = fits(x, chance, starts=starts, steps=steps, width=width, seed=seed)
    bias = np.stack([np.asarray(model.position_bias, float) for model in models])
    fitted = np.stack([np.asarray(scores(model.relevance, jnp.asarray(x))) for model in models])
    residual = 1 / (1 + np.exp(-(fitted + bias[:, None]))) - chance
    relative = bias - bias[:, :1]
    values = {
        "effect_of_start": np.ptp(relative, axis=0).max(),
        "largest_error": np.abs(relative - inverse_rank(POSITIONS)).max(),
        "largest_residual": np.abs(residual).max(),
        "distance": distance(x),
    }
    if features == 1 and gap > 0:
        values["bound_used"] = bound_used(models, bias, x[..., 0])
    return values


def fits(x, chance, *, starts: int, steps: int, width: int, seed: int) -> list:
    """Two-tower models fitted to expected clicks, one per start."""
    shown = np.broadcast_to(np.eye(POSITIONS), (starts, len(x), POSITIONS, POSITIONS))
    counts = Counts(
        *(jnp.asarray(each, jnp.float32) for each in (shown, shown * chance[:, :, None]))
    )
    weight = jnp.full((starts, len(x)), 1 / POSITIONS, jnp.float32)
    objective = CountLoss(jnp.asarray(x, jnp.float32), counts, weight)

    def started(number: int):
        return two_towers(
            lambda columns, rngs: DenseTower(columns, layers=[width, width], rngs=rngs),
            width=x.shape[-1],
            positions=POSITIONS,
            seed=1000 * seed + number,
        )

    states = (nnx.state(started(number), nnx.Param) for number in range(starts))
    vectors = jnp.stack([ravel_pytree(state)[0] for state in states])
    epochs = 20
    settings = FitSettings(
        learning_rate=0.01,
        weight_decay=0.0,
        batch=len(x),
        steps=steps // epochs,
        epochs=epochs,
        patience=epochs,
        min_delta=0.0,
    )
    result = gradient_fit(
        started(0), objective, objective, settings, lanes=starts, seed=seed, starts=vectors
    )
    return [result.model(lane) for lane in range(starts)]


def distance(x: np.ndarray) -> float:
    """How far the nearest documents of adjacent positions are apart, a mean over these."""
    nearest = [
        np.linalg.norm(x[:, k, None] - x[:, k + 1], axis=-1).min() for k in range(POSITIONS - 1)
    ]
    return float(np.mean(nearest))


def bound_used(models: list, bias: np.ndarray, x: np.ndarray) -> float:
    """The largest part of the bound of Eq. 14 that any two fits use, between adjacent positions.

    D_k is the mean difference of two towers over the documents of a position; L is the steeper of
    the two between and around the nearest documents.
    """
    towers = [lambda at, model=model: np.asarray(scores(model.relevance, at)) for model in models]
    used = []
    for k in range(POSITIONS - 1):
        pairs = np.abs(x[:, k, None] - x[:, k + 1])
        one, other = np.unravel_index(pairs.argmin(), pairs.shape)
        nearest = pairs[one, other]
        low, high = min(x[:, k + 1].min(), x[:, k].min()), max(x[:, k].max(), x[:, k + 1].max())
        grid = jnp.linspace(low, high, GRID)[:, None]
        slopes = [
            np.abs(np.diff(tower(grid))).max() * (GRID - 1) / (high - low) for tower in towers
        ]
        for a, b in combinations(range(len(models)), 2):
            offset = (bias[b] - bias[a])[[k, k + 1]]
            used.append(abs(np.diff(offset).item()) / (2 * max(slopes[a], slopes[b]) * nearest))
    return max(used)
