"""Texts of the stand-in `baidu_mlm`: tokens of queries, titles and abstracts.

A query has a topic, and its tokens are of that topic. A document has four traits. `match` says how
often its text repeats tokens of the query, and `topic` how much of the rest is of the query's topic
and not of another. `style` and `form` have tokens of their own, in order; a text has those near its
trait. Texts with style are longer, too. All else follows Zipf's law.
"""

from functools import cache

import numpy as np
from scipy.special import expit, ndtr, ndtri

from twotowers.randomness import hashed, key_of, stream, uniforms
from twotowers.standins.lexical import PAD

VOCABULARY = 2000
"""The real one has 22,000 tokens."""
LEVELS = 20
"""The first tokens tell style, and the next as many form."""
TOPICS, TOPIC_TOKENS = 50, 60
QUERY, TITLE, ABSTRACT = (2, 6), (3, 12), (0, 40)
"""The shortest and the longest text."""
MATCHING = {"title": 0.35, "abstract": 0.2}
"""The largest share of tokens that repeat the query's."""
TELLING = 0.2
"""The share of tokens that tell style, and that of those that tell form."""
VAGUE, EXTREME = 0.4, 3
"""Standard deviation of such a token about its text's trait, and the last token's trait."""
SLOPE = 1.2
"""Log-odds of a share per unit of its trait."""
LONG = 0.5
"""Correlation of style with the normal score of a text's length."""


def zipf(uniform: np.ndarray, size: int, head: float) -> np.ndarray:
    """Numbers below `size` whose shares fall as 1 / (head + number), nearly, from uniform ones."""
    return (head * np.expm1(uniform * np.log1p(size / head))).astype(int)


@cache
def topics() -> np.ndarray:
    """[TOPICS, TOPIC_TOKENS] the tokens of each topic, the same for all seeds."""
    rng = stream("baidu_mlm topics")
    rare = np.arange(5 * LEVELS, VOCABULARY)
    return np.stack([rng.choice(rare, TOPIC_TOKENS, replace=False) for _ in range(TOPICS)])


def query_tokens(seed: int, query: np.ndarray) -> np.ndarray:
    """[rows, 6] tokens of queries, given their numbers: [rows]."""
    key = key_of("baidu_mlm query tokens", seed)
    place = np.arange(QUERY[1])
    rank = zipf(uniforms(key, query[:, None], place), TOPIC_TOKENS, 5)
    tokens = topics()[topic_of(seed, query)[:, None], rank]
    return np.where(place < _between(QUERY, _spread(key, query))[:, None], tokens, PAD)


def document_tokens(
    seed: int, query: np.ndarray, slot: np.ndarray, traits: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Titles [rows, 12] and abstracts [rows, 40] of the documents `slot` of queries.

    Traits [rows, 4] are match, topic, style, form.
    """
    return tuple(
        _tokens(key_of(f"baidu_mlm {field}", seed), seed, field, bounds, query, slot, traits)
        for field, bounds in (("title", TITLE), ("abstract", ABSTRACT))
    )


def _tokens(key, seed, field, bounds, query, slot, traits) -> np.ndarray:
    place = np.arange(bounds[1])
    kind, which = (
        uniforms(key, query[:, None], slot[:, None], place, np.int64(draw)) for draw in (0, 1)
    )
    match, topic, style, form = traits.T[:, :, None].astype(float)
    match, topic = expit(SLOPE * match), expit(SLOPE * topic)
    matching = MATCHING[field] * match
    rest = 1 - matching - 2 * TELLING
    own = query_tokens(seed, query)
    length = (own != PAD).sum(1)[:, None]
    repeated = np.take_along_axis(own, (which * length).astype(int), axis=1)
    rank = zipf(which, TOPIC_TOKENS, 5)
    ours, other = topic_of(seed, query), other_topic(seed, query, slot)
    shares = [matching, TELLING, TELLING, rest * topic * 0.6, rest * (1 - topic) * 0.6]
    bounds_of = np.cumsum(np.broadcast_arrays(*shares), axis=0)
    choices = [
        repeated,
        telling(style, which),
        LEVELS + telling(form, which),
        topics()[ours[:, None], rank],
        topics()[other[:, None], rank],
    ]
    tokens = np.select(
        [kind < bound for bound in bounds_of],
        choices,
        2 * LEVELS + zipf(which, VOCABULARY - 2 * LEVELS, 10),
    )
    score = LONG * traits[:, 2] + np.sqrt(1 - LONG**2) * ndtri(_spread(key, query, slot))
    return np.where(place < _between(bounds, ndtr(score))[:, None], tokens, PAD)


def telling(trait: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """One of the LEVELS tokens of a trait, near it. They are in order."""
    near = (trait + VAGUE * ndtri(uniform)) / (2 * EXTREME) + 0.5
    return np.clip(near * LEVELS, 0, LEVELS - 1).astype(int)


def other_topic(seed: int, query: np.ndarray, slot: np.ndarray) -> np.ndarray:
    """The topic of a document besides its query's, which is another one."""
    further = hashed(key_of("baidu_mlm other topic", seed), query, slot) % np.uint64(TOPICS - 1)
    return (topic_of(seed, query) + 1 + further.astype(int)) % TOPICS


def topic_of(seed: int, query: np.ndarray) -> np.ndarray:
    return (uniforms(key_of("baidu_mlm topic", seed), query) * TOPICS).astype(int)


def _spread(key: np.uint64, *index: np.ndarray) -> np.ndarray:
    return uniforms(key, *index, np.int64(1000))


def _between(bounds: tuple[int, int], share: np.ndarray) -> np.ndarray:
    """A whole number between two bounds, given a uniform one between 0 and 1."""
    low, high = bounds
    return low + np.minimum((share * (high - low + 1)).astype(int), high - low)
