"""The stand-in `baidu_mlm` for Baidu-ULTR-UVA: text, users, annotators and a production ranker.

A document has four traits that its tokens show, `match`, `topic`, `style` and `form` (see
`twotowers.standins.baidu_texts`). Annotators' relevance follows from match, topic and noise that is
in no token. Appeal follows from style and other noise. What attracts users mixes both. The
production ranker's scores follow from attraction, from form, which pleases nobody, and from noise
of its own. It ranks the candidates of a query, and a page shows the first of them, in an order that
varies a little from page to page. How readily users click at all varies between queries, and half
of it is their topic's.

Some results are placeholders: "what other people searched", and results without content. They are
generated, and then dropped as published: the first without a trace, the others leave gaps among
the positions. Queries with fewer than five documents are dropped.

All of a query's documents are a function of the seed and the query's number. So pages can come in
any order, and memory does not grow with their number. `baidu.yaml` has the law,
and docs/standins.md says what was calibrated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import expit, ndtr, ndtri

from twotowers.errors import check_choice
from twotowers.randomness import hashed, key_of, normals, stream, uniforms
from twotowers.standins.baidu_texts import topic_of
from twotowers.standins.users import Candidates, PageLaw, clicks_of, mixed

NAME = "baidu_mlm"
CANDIDATES = 55
"""Documents of a query among which the production ranker chooses."""
PARTS = 4
"""Parts of a log, of equal size, as the real one has."""
POSITIONS = 22
SHOWN = (
    0.842, 0.818, 0.867, 0.865, 0.874, 0.884, 0.925, 0.878, 0.937, 0.115, 0.041, 0.038,
    *(0.024 * 0.684**k for k in range(10)),
)  # fmt: skip
"""Share of pages with a document at each position. From 13 on they are ours, with the published
sum of positions 13 to 20."""
LONGER = 0.9
"""Share of documents at positions from 10 on that are no placeholders."""
SEARCHED, TRAILING = 0.94, 0.32
"""Share of pages with "what other people searched", and with a further result without content."""
TOO_SHORT, FEWEST = 0.02, 5
"""Share of queries with fewer than FEWEST documents, which are dropped."""
TOO_SHORT_ANNOTATED = 0.003
FAMOUS, SITES = 0.214, 0.105
"""Share of documents whose address other queries find, too; number of such addresses a session."""
OVERLAP = 0.12713
"""Share of annotated queries that were asked in the train parts."""
POOL = 54.7
"""Documents that annotators see of a query, on average."""
LARGEST_POOL = 160
LABELS = (0.5516, 0.0921, 0.2836, 0.0709, 0.0018)
"""Published shares of labels 0 to 4."""
PROPENSITIES = (
    1, 0.6738, 0.4145, 0.2932, 0.2079, 0.1714, 0.1363, 0.1166, 0.0838, 0.0579, 0.0527, 0.0437,
    0.0395, 0.0289, 0.0358, 0.0195, 0.0268, 0.0056, 0.0034, 0.0135, 0.0153, 0.0276,
)  # fmt: skip
"""Examination of the position-based users: All Pairs, as published with chapter 3 of the thesis."""
USERS = ("mixed", "position_based")
ANNOTATED = ("candidates", "shown")
"""What annotators may see of a query: candidates as they come, or what the ranker shows."""
CHUNK = 8192
"""Sessions to draw at a time."""
FILE = Path(__file__).with_name("baidu.yaml")


@dataclass(frozen=True)
class Law(PageLaw):
    """The distribution of documents, pages and clicks. Relevance has variance 1 about the query's.

    Attributes:
        pool: standard deviation of the logarithm of the number of documents that annotators see.
        match, topic: shares of the variance of relevance that follow from match and topic.
        style: share of the variance of appeal that follows from style.
        ranked: correlation of the production ranker's scores with attraction.
        form: share of the variance of its scores that follows from form.
        warmth: warmth (z - 1) is added to log-odds of attraction, with z of the query from the
            exponential distribution: few queries have many clicks.
        known: share of the variance of z's normal score that queries of a topic have in common.
    """

    pool: float
    match: float
    topic: float
    style: float
    ranked: float
    form: float
    warmth: float
    known: float

    @classmethod
    def read(cls, path: str | Path = FILE) -> Law:
        """The law of a file."""
        return super().read(path)

    def but(self, **changes: float) -> Law:
        """This law with other values, such as `agreement=1`: annotators agree with users."""
        for name in changes:
            check_choice(name, self.__dataclass_fields__, field="law")
        return replace(self, **changes)


@dataclass(frozen=True)
class Pages:
    """Some pages, in the order of the log: arrays [pages, POSITIONS].

    Attributes:
        session: [pages] the session's number, with gaps where a query was dropped.
        query: [pages] the query's number.
        slot: the document's number among the query's candidates.
        clicks, where: bool; `where` is False where the page shows no document.
        traits: [pages, POSITIONS, 4] of the documents.
    """

    session: np.ndarray
    query: np.ndarray
    slot: np.ndarray
    clicks: np.ndarray
    where: np.ndarray
    traits: np.ndarray


@dataclass(frozen=True)
class Raw:
    """Where pages had placeholders, before these were dropped.

    Attributes:
        position: [pages, POSITIONS + 1] the original position of what the log has at each of its
            own: those below "what other people searched" move up by one when it is dropped.
        empty: [pages, POSITIONS + 1] bool, a result without content.
        searched: [pages] the position of "what other people searched", 0 if there is none.
    """

    position: np.ndarray
    empty: np.ndarray
    searched: np.ndarray


@dataclass(frozen=True)
class World:
    """All that one seed draws.

    Attributes:
        sessions: of the log, before queries with fewer than five documents are dropped.
        seed: of the draw.
        law: the distribution.
        users: 'mixed', some of whom read from top to bottom; or 'position_based'.
        annotators: 'candidates' or 'shown', see `ANNOTATED`.
    """

    sessions: int
    seed: int
    law: Law
    users: str = "mixed"
    annotators: str = "candidates"

    def __post_init__(self):
        check_choice(self.users, USERS, field="users")
        check_choice(self.annotators, ANNOTATED, field="annotators")

    def key(self, purpose: str) -> np.uint64:
        return key_of(f"{NAME} {purpose}", self.seed)

    def asked(self, session: np.ndarray) -> np.ndarray:
        """The query of each session. Queries with low numbers are frequent."""
        share = uniforms(self.key("asked"), session)
        most = np.log1p(self.law.queries / self.law.head)
        return (self.law.head * self.sessions * np.expm1(share * most)).astype(np.int64)

    def candidates(self, query: np.ndarray, number: int = CANDIDATES) -> Candidates:
        """The first documents of some queries, whose traits are match, topic, style and form."""
        slot = np.arange(number)

        def normal(purpose: str) -> np.ndarray:
            return normals(self.key(purpose), query[:, None], slot)

        law = self.law
        match, topic, style, form = (normal(name) for name in ("match", "topic", "style", "form"))
        relevance = mixed([(law.match, worth(match)), (law.topic, topic)], normal("relevance"))
        appeal = mixed([(law.style, style)], normal("appeal"))
        both = law.agreement**2
        attraction = mixed([(both, relevance)], appeal)
        own = normals(self.key("among"), query)[:, None]
        ranked = [(law.ranked**2, attraction), (law.form, form)]
        return Candidates(
            traits=np.stack([match, topic, style, form], axis=-1),
            relevance=relevance + np.float32(law.among) * own,
            attraction=attraction,
            satisfaction=mixed([(both, relevance)], normal("satisfaction")),
            score=mixed(ranked, normal("production")),
        )

    def promise(self, traits: np.ndarray) -> np.ndarray:
        """What tokens can say of attraction at most: [...] its mean, given traits [..., 4]."""
        law = self.law
        match, topic, style, _ = np.moveaxis(traits, -1, 0)
        relevance = np.sqrt(law.match) * worth(match) + np.sqrt(law.topic) * topic
        appeal = np.sqrt(law.style) * style
        return law.agreement * relevance + np.sqrt(1 - law.agreement**2) * appeal

    def warmth(self, query: np.ndarray) -> np.ndarray:
        """[queries] z - 1, with mean 0 and variance 1."""
        of_topic = normals(self.key("warmth of topics"), topic_of(self.seed, query))
        own = normals(self.key("warmth"), query)
        return -np.log(ndtr(-mixed([(self.law.known, of_topic)], own).astype(float))) - 1

    def layout(self, query: np.ndarray) -> np.ndarray:
        """[queries, POSITIONS] bool: where a query's page has a document."""
        place = np.arange(POSITIONS)
        full = np.where(place < 9, 1.0, np.array(SHOWN) / LONGER)
        extent = (uniforms(self.key("extent"), query)[:, None] < full).sum(1)
        short = uniforms(self.key("short"), query)
        # The number of documents of a short page is 1 to 4, with equal chances.
        extent = np.where(short < TOO_SHORT, 1 + (short / TOO_SHORT * 4).astype(int), extent)
        content = uniforms(self.key("content"), query[:, None], place) < np.array(SHOWN) / full
        return content & (place < extent[:, None])

    def urls(self, query: np.ndarray, slot: np.ndarray) -> np.ndarray:
        """uint64 [rows]: documents of several queries may be of one address, those of one not."""
        sites = np.int64(max(round(SITES * self.sessions / CANDIDATES), 1))
        site = (uniforms(self.key("site"), query, slot) * sites).astype(np.int64)
        famous = uniforms(self.key("famous"), query, slot) < FAMOUS
        return hashed(self.key("url"), np.where(famous, -1 - site, query), slot)

    def pages(self, part: int | None = None) -> Iterator[Pages]:
        """The log, or a part of it, some pages at a time."""
        ends = [round(each * self.sessions / PARTS) for each in range(PARTS + 1)]
        for each in range(PARTS) if part is None else [part]:
            for first in range(ends[each], ends[each + 1], CHUNK):
                yield self._pages(np.arange(first, min(first + CHUNK, ends[each + 1])))

    def _pages(self, session: np.ndarray) -> Pages:
        law, rng = self.law, stream(f"{NAME} clicks", self.seed, self.users, int(session[0]))
        asked = self.asked(session)
        where = self.layout(asked)
        kept = where.sum(1) >= FEWEST
        session, asked, where = session[kept], asked[kept], where[kept]
        query, at = np.unique(asked, return_inverse=True)
        documents = self.candidates(query)
        noise = normals(self.key("view"), session[:, None], np.arange(CANDIDATES))
        order = np.argsort(-(documents.score[at] + np.float32(law.jitter) * noise), axis=1)
        rank = np.maximum(np.cumsum(where, axis=1) - 1, 0)
        slot = np.take_along_axis(order, rank, axis=1)
        cell = at[:, None], slot
        own = law.warmth * self.warmth(asked)[:, None]
        attracts = np.where(
            where, expit(law.level + own + law.spread * documents.attraction[cell]), 0
        )
        satisfies = expit(law.satisfied + law.spread * documents.satisfaction[cell])
        if self.users == "position_based":
            clicks = rng.random(attracts.shape) < attracts * np.array(PROPENSITIES)
        else:
            clicks = clicks_of(rng, attracts, satisfies, law.users)
        return Pages(session, asked, slot, clicks, where, documents.traits[cell])

    def raw(self, pages: Pages) -> Raw:
        """The same pages with their placeholders."""
        place = np.arange(1, POSITIONS + 2)
        last = np.max(pages.where * place[:-1], axis=1)
        trailing = uniforms(self.key("trailing"), pages.query) < TRAILING
        shown = np.pad(pages.where, [(0, 0), (0, 1)])
        empty = ~shown & (place <= (last + trailing)[:, None])
        # The searched placeholder stands somewhere below the first result.
        below = 2 + np.floor(uniforms(self.key("searched at"), pages.query) * (last - 1))
        has = uniforms(self.key("searched"), pages.query) < SEARCHED
        searched = np.where(has, below, 0).astype(int)
        moved = (place >= searched[:, None]) & has[:, None]
        return Raw(place + moved, empty, searched)

    def annotated(self, queries: int) -> tuple[np.ndarray, np.ndarray]:
        """Queries that annotators saw, and how many documents of each: [queries] both.

        A few are dropped, since they have fewer than five documents. The published share of them
        was asked in parts 1 to 3 of the log, if it has so many.
        """
        rng = stream(f"{NAME} annotated", self.seed)
        asked = self.asked(np.arange(self.sessions))
        train = np.unique(asked[round(self.sessions / PARTS) :])
        train = train[self.layout(train).sum(1) >= FEWEST]
        known = rng.permutation(train)[: round(OVERLAP * queries)]
        # Each is as likely as it would be to be asked next.
        others = np.setdiff1d(self.asked(self.sessions + np.arange(20 * queries)), asked)
        query = rng.permutation([*known, *rng.permutation(others)[: queries - len(known)]])
        spread = self.law.pool * normals(self.key("pool"), query)
        length = np.exp(np.log(POOL) - self.law.pool**2 / 2 + spread)
        length = np.clip(np.round(length), FEWEST, LARGEST_POOL).astype(int)
        kept = uniforms(self.key("annotated short"), query) >= TOO_SHORT_ANNOTATED
        return query[kept], length[kept]

    def seen(self, query: np.ndarray, length: np.ndarray, documents: Candidates) -> np.ndarray:
        """[queries, candidates] bool: the documents that annotators see, by `annotated`.

        What is shown does not depend on the lengths.
        """
        if self.annotators == "candidates":
            return np.arange(documents.score.shape[1]) < length[:, None]
        # A page shows the ranker's first. Documents beyond its candidates are never ranked.
        ranked = documents.score[:, :CANDIDATES].argsort(axis=1)[:, ::-1].argsort(axis=1)
        seen = ranked < self.layout(query).sum(1)[:, None]
        return np.pad(seen, [(0, 0), (0, documents.score.shape[1] - seen.shape[1])])

    def labels(self, relevance: np.ndarray) -> np.ndarray:
        """Labels 0 to 4, with the published shares among all documents."""
        cuts = np.sqrt(1 + self.law.among**2) * ndtri(np.cumsum(LABELS)[:-1])
        return np.searchsorted(cuts, relevance)


def world_of(sessions: int, seed: int, law: Mapping[str, float | str]) -> World:
    """A world with another law than the file's; changes may have `users` and `annotators`, too."""
    changes = dict(law)
    own = {name: changes.pop(name) for name in ("users", "annotators") if name in law}
    return World(sessions, seed, Law.read().but(**changes), **own)


def worth(match: np.ndarray) -> np.ndarray:
    """What a match adds to relevance, with mean 0 and variance 1: more than enough is enough.

    It is 1 - (1 - u)^2 for the rank u of the match, from 0 to 1, less 2/3, times sqrt(45) / 2.
    """
    return (np.sqrt(11.25) * (1 / 3 - (1 - ndtr(match)) ** 2)).astype(np.float32)
