"""A simulated web store, in the place of the Chrome Web Store, whose logs are proprietary.

It is calibrated to nothing. A visit shows one page of `SLOTS` items, four shelves of five, in the
order of whoever ranks. Users differ in how often they come, in how readily they click, and in
taste; those who come often share a taste.

- An item has a rating, a popularity, an age and a category.
- P(click) = examined(slot, device) min(1, eagerness attractive(user, item)).
- P(install | click) rises with the rating.
- The log's ranker sees the true attraction through noise, as a production model would.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

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
class Users:
    """Who visits.

    Attributes:
        taste: [users] the category that they like.
        eagerness: [users] what attraction is multiplied by, mean about 1.
        visits: [users] expected visits, relative to each other, mean about 1.
    """

    taste: np.ndarray
    eagerness: np.ndarray
    visits: np.ndarray


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
    """Items and users; draws visits, and what happens on a ranked page."""

    def __init__(self, *, users: int, rng: np.random.Generator):
        self.rating = rng.beta(6, 2, ITEMS)
        self.popularity = rng.normal(size=ITEMS)
        self.age = rng.exponential(1, ITEMS)
        self.category = rng.integers(CATEGORIES, size=ITEMS)
        visits = rng.lognormal(-0.5, 1, users)
        # The busiest fifth likes the first category, four times out of five.
        busy = (visits > np.quantile(visits, 0.8)) & (rng.random(users) < 0.8)
        taste = np.where(busy, 0, rng.integers(CATEGORIES, size=users))
        eagerness = np.where(busy, 2.0, 1.0) * rng.lognormal(-0.125, 0.5, users)
        self.users = Users(taste, eagerness, visits)

    def visits(self, number: int, rng: np.random.Generator) -> Visits:
        """Visits by users in proportion to how often they come, each with random candidates."""
        chance = self.users.visits / self.users.visits.sum()
        user = rng.choice(len(chance), size=number, p=chance)
        items = rng.random((number, ITEMS)).argpartition(SLOTS, axis=1)[:, :SLOTS]
        match = self.category[items] == self.users.taste[user][:, None]
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
        attractive = self.users.eagerness[visits.user][:, None] * expit(visits.attraction)
        clicked = rng.random(slot.shape) < seen * np.minimum(attractive, 1)
        return clicked, clicked & (rng.random(slot.shape) < visits.install)


def logging_order(visits: Visits, rng: np.random.Generator) -> np.ndarray:
    """[visits, slots] the candidates by the log's ranker, best first."""
    return np.argsort(-(visits.attraction + NOISE * rng.normal(size=visits.attraction.shape)))
