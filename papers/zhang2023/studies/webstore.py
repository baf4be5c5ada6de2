"""Proxies of Tables 2 and 3: a simulated store instead of the Chrome Web Store, whose logs are
proprietary.

Pages are users' visits, and an online experiment follows. The pairs (slot, device) are positions.

The store is calibrated to nothing. A visit shows one page of `SLOTS` items, four shelves of five,
in the order of whoever ranks. Users differ in how often they come, in how readily they click, and
in taste; those who come often share a taste.

- An item has a rating, a popularity, an age and a category.
- P(click) = examined(slot, device) min(1, eagerness attractive(user, item)).
- P(install | click) rises with the rating.
- The log's ranker sees the true attraction through noise, as a production model would.
"""

from dataclasses import dataclass
from functools import partial

import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import ndcg_score

from twotowers.fitting.gradient import FitSettings, fit
from twotowers.logs.counts import Counts
from twotowers.losses.likelihood import CountLoss
from twotowers.models.additive import Additive
from twotowers.models.document_rate import DocumentRate
from twotowers.randomness import stream
from twotowers.towers.dense import DenseTower
from twotowers.towers.lane import Lane
from twotowers.towers.reversal import Reversal
from twotowers.towers.two_towers import scores, two_towers

SHELVES, PER_SHELF = 4, 5
SLOTS = SHELVES * PER_SHELF
DEVICES = 2
"""Desktop and phone; on a phone lower shelves are seen less."""
CATEGORIES = 6
ITEMS = 400
WIDTH = 4 + CATEGORIES
"""Relevance features: rating, popularity, age, whether the category is the user's, and which it
is."""
NOISE = 0.7
"""Standard deviation of the log's ranker, whose target has one of about 1."""


def examined() -> np.ndarray:
    """[devices, slots] chance that a slot is looked at: 1 / shelf^e within-shelf decay."""
    shelf, place = np.divmod(np.arange(SLOTS), PER_SHELF)
    steepness = np.array([0.7, 1.4])[:, None]
    return (1 / (shelf + 1.0)) ** steepness * 0.9**place


@dataclass(frozen=True)
class Visits:
    """Pages, before anybody ranked them.

    Attributes:
        user: [visits].
        device: [visits].
        items: [visits, slots] the candidates, in no order.
        features: [visits, slots, WIDTH] float32.
        attraction: [visits, slots] what the click's chance is made of, as log-odds.
        install: [visits, slots] P(install | click).
    """

    user: np.ndarray
    device: np.ndarray
    items: np.ndarray
    features: np.ndarray
    attraction: np.ndarray
    install: np.ndarray


class Store:
    """Items and users; draws visits, and what happens on a ranked page.

    Of users, `taste` is the category that they like, `eagerness` what attraction is multiplied by,
    and `often` their expected visits, relative to each other; both have a mean of about 1.
    """

    def __init__(self, *, users: int, rng: np.random.Generator):
        self.rating = rng.beta(6, 2, ITEMS)
        self.popularity = rng.normal(size=ITEMS)
        self.age = rng.exponential(1, ITEMS)
        self.category = rng.integers(CATEGORIES, size=ITEMS)
        self.often = rng.lognormal(-0.5, 1, users)
        # The busiest fifth likes the first category, four times out of five.
        busy = (self.often > np.quantile(self.often, 0.8)) & (rng.random(users) < 0.8)
        self.taste = np.where(busy, 0, rng.integers(CATEGORIES, size=users))
        self.eagerness = np.where(busy, 2.0, 1.0) * rng.lognormal(-0.125, 0.5, users)

    def visits(self, number: int, rng: np.random.Generator) -> Visits:
        """Visits by users in proportion to how often they come, each with random candidates."""
        user = rng.choice(len(self.often), size=number, p=self.often / self.often.sum())
        items = rng.random((number, ITEMS)).argpartition(SLOTS, axis=1)[:, :SLOTS]
        match = self.category[items] == self.taste[user][:, None]
        rating, popularity, age = self.rating[items], self.popularity[items], self.age[items]
        known = np.stack([rating, popularity, age, match], axis=-1)
        features = np.concatenate([known, np.eye(CATEGORIES)[self.category[items]]], axis=-1)
        attraction = 4 * (rating - 0.75) + 0.8 * popularity - 0.3 * age + 1.5 * match - 2
        return Visits(
            user,
            rng.integers(DEVICES, size=number),
            items,
            features.astype(np.float32),
            attraction,
            expit(6 * (rating - 0.7)),
        )

    def happened(self, visits: Visits, order: np.ndarray, rng: np.random.Generator):
        """Clicks and installs [visits, slots], by candidate, of pages that show them in some order.

        For each candidate, the same is drawn whatever the order.
        """
        slot = np.argsort(order, axis=1)
        seen = examined()[visits.device[:, None], slot]
        attractive = self.eagerness[visits.user][:, None] * expit(visits.attraction)
        clicked = rng.random(slot.shape) < seen * np.minimum(attractive, 1)
        return clicked, clicked & (rng.random(slot.shape) < visits.install)


def logging_order(visits: Visits, rng: np.random.Generator) -> np.ndarray:
    """[visits, slots] the candidates by the log's ranker, best first."""
    return np.argsort(-(visits.attraction + NOISE * rng.normal(size=visits.attraction.shape)))


GPU = True

DAYS, TEST_DAYS, WEEKS = 30, 3, 4
TOP = 5


def run(
    inputs,
    *,
    seed: int,
    users: int,
    sessions: int,
    weekly: int,
    scale: float,
    rate: float,
    layers: list[int],
    observation: list[int],
    training: dict,
) -> pd.DataFrame:
    """nDCG on held-out days, and what happens online, by method.

    `sessions` are visits in the log's 30 days, of which 27 train and 3 test; `weekly` those of a
    week of the experiment, the same for each method. `scale` is of GradRev, `rate` of Drop;
    `layers` and `observation` are widths of hidden layers of both towers; `training` is as
    `FitSettings` has it.
    """
    store = Store(users=users, rng=stream("store", seed))
    rng = stream("store log", seed)
    visits = store.visits(sessions, rng)
    order = logging_order(visits, rng)
    clicked, installed = store.happened(visits, order, rng)
    # Visits are spread evenly over the days.
    days = np.arange(sessions) * DAYS // sessions
    test = days >= DAYS - TEST_DAYS
    # The last three of the training days stop the training.
    held = (days >= DAYS - 2 * TEST_DAYS) & ~test
    parts = {
        name: _loss(visits, order, clicked, chosen)
        for name, chosen in [("train", ~test & ~held), ("held", held)]
    }
    towers = _towers(parts, FitSettings(**training), layers, observation, scale, rate, seed)
    slot = np.argsort(order, axis=1)
    weight = _inverse_propensity(slot[~test], clicked[~test])[slot]
    rows = []
    for method, tower in towers.items():
        scored = _scores(tower, visits.features[test])
        for name, happened in [("click", clicked[test]), ("install", installed[test])]:
            rows.append((method, f"{name}_ndcg@5", _ndcg(scored, happened)))
            rows.append((method, f"{name}_ips_ndcg@5", _ndcg(scored, happened * weight[test])))
    online = {method: _online(store, tower, weekly, seed) for method, tower in towers.items()}
    for method, (rate_, people) in online.items():
        base_rate, base_people = online["pal"]
        rows.append((method, "click_rate_gain", rate_ / base_rate - 1))
        rows.append((method, "users_gain", people / base_people - 1))
    return pd.DataFrame(rows, columns=["method", "metric", "value"]).assign(position=None)


def _loss(visits: Visits, order: np.ndarray, clicked: np.ndarray, chosen: np.ndarray) -> CountLoss:
    """The objective of some visits, in one lane per remedy or one of the biased model."""
    number = int(chosen.sum())
    document = np.broadcast_to(np.arange(SLOTS), (number, SLOTS))
    position = np.argsort(order[chosen], axis=1) + SLOTS * visits.device[chosen][:, None]
    cells = (np.ones((number, SLOTS)), clicked[chosen], document, position)
    columns = (
        jnp.asarray(np.broadcast_to(each, (3, *each.shape)).astype(kind))
        for each, kind in zip(cells, (np.int8, np.int8, np.int32, np.int32), strict=True)
    )
    weight = jnp.full((3, number), 1 / SLOTS)
    return CountLoss(jnp.asarray(visits.features[chosen]), Counts(*columns), weight)


def _towers(parts, settings, layers, observation, scale: float, rate: float, seed: int) -> dict:
    """The relevance tower of each method."""
    dense = partial(DenseTower, activation="relu", normalise="batch")
    columns = {"scale": [0.0, scale, 0.0], "rate": [0.0, 0.0, rate]}
    build = partial(
        two_towers,
        partial(dense, layers=layers),
        width=parts["train"].inputs.shape[-1],
        positions=SLOTS * DEVICES,
        seed=seed,
    )
    lanes = {name: Lane(name, tuple(values)) for name, values in columns.items()}
    additive = build(
        model=Additive(),
        examination=partial(dense, layers=observation),
        dropout=lanes["rate"],
        heads=[partial(Reversal, reads="hidden", scale=lanes["scale"], weight=0.0)],
    )
    trained = partial(fit, train=parts["train"], validation=parts["held"], settings=settings)
    values = trained(additive, lanes=3, seed=seed, varied=columns)
    biased = trained(build(model=DocumentRate()), lanes=1, seed=seed)
    names = ("pal", "gradrev", "drop")
    towers = {name: values.model(lane).relevance for lane, name in enumerate(names)}
    return {"biased": biased.model(0).relevance, **towers}


def _scores(tower, features: np.ndarray) -> np.ndarray:
    return np.asarray(scores(tower, jnp.asarray(features)))


def _inverse_propensity(slot: np.ndarray, clicked: np.ndarray) -> np.ndarray:
    """[slots] 1 / mean clicks of a slot, over that of the first."""
    rate = np.array([clicked[slot == each].mean() for each in range(SLOTS)])
    return rate[0] / np.maximum(rate, 1e-6)


def _ndcg(scored: np.ndarray, gain: np.ndarray) -> float:
    """nDCG@5 with linear gains, mean over visits that have any."""
    some = gain.sum(1) > 0
    return ndcg_score(gain[some], scored[some], k=TOP, ignore_ties=True)


def _online(store: Store, tower, weekly: int, seed: int) -> tuple[float, float]:
    """Click rate, and how many users click at least once in four weeks, if the tower ranks.

    All methods meet the same visits.
    """
    rng = stream("store online", seed)
    clicks, people = 0, set()
    for _ in range(WEEKS):
        visits = store.visits(weekly, rng)
        order = np.argsort(-_scores(tower, visits.features), axis=1)
        clicked, _ = store.happened(visits, order, rng)
        clicks += clicked.sum()
        people |= set(visits.user[clicked.any(1)].tolist())
    return clicks / (WEEKS * weekly * SLOTS), float(len(people))
