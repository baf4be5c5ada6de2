"""Check four statements on EM and gradient ascent.

They are Eq. 5.10, EM as scaled gradient ascent, where both end, and the gradient of ClickEMLoss.

Pages of six documents of thirty, in random order, are clicked by a dynamic Bayesian user; so for
all other models the truth is out of reach.

TF-Ranking's ClickEMLoss (`tensorflow_ranking/python/losses_impl.py`) is EM for the position-based
model within gradient descent: a loss whose targets are the posteriors at the current logits.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, logit

from papers.clax2025.orders import HIDDEN
from twotowers.experiment.components import build_model
from twotowers.fitting.em import fit_em
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.fitting.steps import EMState
from twotowers.models.chances import Chance
from twotowers.models.dynamic_bayesian import DynamicBayesian
from twotowers.models.names import MODELS
from twotowers.models.page import lay_out
from twotowers.models.position_based import PositionBased
from twotowers.randomness import stream

PAIRS, LENGTH = 30, 6
STEP = 2e-4
"""Of the central differences, which are of the fourth order."""


def run(inputs, *, seed: int, pages: int) -> pd.DataFrame:
    """Per model: differences of gradients and steps, and of the likelihoods at both ends."""
    rng = stream("em_gradient", seed)
    log = _log(rng, pages)
    rows = []
    for name in HIDDEN:
        model = build_model(MODELS[name])
        statistics = Statistics.of_pages(model, distinct_pages(*log, pairs=PAIRS))
        measured = _at_random(statistics, rng)
        measured["end_difference"] = _end_difference(statistics, int(log[2].sum()))
        rows += [(name, metric, None, value) for metric, value in measured.items()]
    rows.append(("pbm", "click_loss_difference", None, click_loss_difference(log[1], seed)))
    return pd.DataFrame(rows, columns=["model", "metric", "position", "value"])


def _log(rng: np.random.Generator, pages: int) -> tuple[np.ndarray, ...]:
    """Pairs, clicks and ends of pages."""
    user = DynamicBayesian()
    order = np.broadcast_to(np.arange(PAIRS), (pages, PAIRS))
    pair = rng.permuted(order, axis=1)[:, :LENGTH]
    truth = user.truth(rng.uniform(0, 4, PAIRS), LENGTH)
    chances = lay_out(truth, user.parts, pair)
    where = np.ones(pair.shape, bool)
    chances = {part: Chance.from_logits(values) for part, values in chances.items()}
    return pair, user.sample(chances, where, rng=rng)["clicks"], where


def _at_random(statistics: Statistics, rng: np.random.Generator) -> dict[str, float]:
    """Eq. 5.10, and an EM step, at random parameters."""
    problem = EMState(statistics)
    point = rng.uniform(0.2, 0.8, problem.size)
    totals = problem.totals(point)
    step, trials = problem.shares(totals, point), totals[1]
    tried = trials > 0
    # dQ/dp = (successes - trials p) / (p (1 - p)), of binomial trials.
    of_q = np.where(tried, trials * (step - point) / (point * (1 - point)), 0)
    slopes = np.empty(problem.size)
    for place in range(problem.size):
        moved = np.zeros(problem.size)
        moved[place] = STEP
        near, far = (
            problem.objective(point + times * moved) - problem.objective(point - times * moved)
            for times in (1, 2)
        )
        slopes[place] = (8 * near - far) / (12 * STEP)
    factor = np.divide(point * (1 - point), trials, out=np.zeros_like(point), where=tried)
    return {
        "gradient_difference": np.abs(of_q - slopes).max() / np.abs(slopes).max(),
        "smallest_factor": factor[tried].min(),
        "step_difference": np.abs(step - point - factor * slopes)[tried].max()
        / np.abs(step - point).max(),
    }


def _end_difference(statistics: Statistics, documents: int) -> float:
    """Log-likelihood per document where EM ends less where ascent by the gradient does."""
    fitted = fit_em(statistics, tolerance=1e-14)
    problem = EMState(statistics)
    start = problem.start({})
    free = start < 1

    def negative(logits: np.ndarray) -> tuple[float, np.ndarray]:
        vector = start.copy()
        vector[free] = expit(logits)
        totals = problem.totals(vector)
        shares, trials = problem.shares(totals, vector), totals[1]
        gradient = trials * (shares - vector)
        return -problem.objective(vector) / documents, -gradient[free] / documents

    options = {"maxiter": 5_000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-10}
    how = {"method": "L-BFGS-B", "bounds": [(-30, 30)] * free.sum(), "options": options}
    ascent = minimize(negative, logit(start[free]), jac=True, **how)
    return fitted.history[-1] / documents + ascent.fun


def posteriors(
    attraction: jax.Array, examination: jax.Array, clicked: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """P(attractive | click or none) and P(examined | click or none) of the position-based model.

    Attraction and examination are [impressions] log-odds.
    """
    chances = jax.nn.sigmoid(attraction), jax.nn.sigmoid(examination)
    measured = PositionBased().posteriors(*chances)
    return tuple(jnp.where(clicked, *measured[part]) for part in ("attraction", "examination"))


def click_loss_difference(clicks: np.ndarray, seed: int, targets: Callable = posteriors) -> float:
    """How far the gradient of ClickEMLoss is from that of the cross-entropy of clicks.

    ClickEMLoss is the sum of two cross-entropies per impression, H(t_a, sigmoid(a)) + H(t_e,
    sigmoid(e)). The targets t are posteriors at the same logits, and count as constants. The other
    loss is H(click, sigmoid(a) sigmoid(e)). Gradients are those by both logits of each impression,
    at random logits. It is the largest difference, relative to the largest gradient.
    """
    logits = stream("em_gradient: ClickEMLoss", seed).uniform(-4, 4, (2, clicks.size))
    with jax.enable_x64(True):
        clicked = clicks.ravel()

        def by_posteriors(logits: jax.Array) -> jax.Array:
            constants = jax.lax.stop_gradient(jnp.stack(targets(*logits, clicked)))
            return _cross_entropy(constants, logits).sum()

        def by_clicks(logits: jax.Array) -> jax.Array:
            return _cross_entropy(clicked, PositionBased().click_logit(*logits)).sum()

        # Compiled as a whole, which takes less time than its operations one by one.
        gradients = jax.jit(lambda at: [jax.grad(loss)(at) for loss in (by_posteriors, by_clicks)])
        one, other = map(np.asarray, gradients(logits))
    return float(np.abs(one - other).max() / np.abs(other).max())


def _cross_entropy(target: jax.Array, logit: jax.Array) -> jax.Array:
    return jax.nn.softplus(logit) - target * logit
