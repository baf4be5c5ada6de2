"""Lexical features against a plain version, word by word."""

from collections import Counter
from math import log

import numpy as np
import pytest

from twotowers.logs.formats.baidu import LEXICAL
from twotowers.standins.lexical import PAD, Corpus, lexical_features

VOCABULARY = 12


def padded(lists):
    width = max(map(len, lists), default=0)
    return np.array([[*each, *[PAD] * (width - len(each))] for each in lists]).reshape(-1, width)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)

    def some(low, high):
        # The last two tokens are only in queries.
        return rng.integers(0, VOCABULARY - 2, rng.integers(low, high)).tolist()

    queries = [[0, 0, 3], [VOCABULARY - 1], *(some(1, 5) for _ in range(38))]
    return queries, [some(1, 6) for _ in queries], [some(0, 15) for _ in queries]


def plain(query, title, abstract, titles, abstracts):
    """The twelve features, by their definitions."""
    fields = {
        "document": (
            [*title, *abstract],
            [[*one, *other] for one, other in zip(titles, abstracts, strict=True)],
        ),
        "title": (title, titles),
        "abstract": (abstract, abstracts),
    }  # fmt: skip
    number, found = len(titles), {}
    for field, (text, texts) in fields.items():
        mean = sum(map(len, texts)) / number
        score = 0.0
        for token in query:
            tf, n = Counter(text)[token], sum(token in each for each in texts)
            idf = log(1 + (number - n + 0.5) / (n + 0.5))
            score += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(text) / mean))
        found["bm25" if field == "document" else f"bm25_{field}"] = score
        found[f"{field}_length"] = len(text)
    text, texts = fields["document"]
    present = [token for token in query if token in text]
    known = {token: sum(token in each for each in texts) for token in query}
    rarity = {token: log((1 + number) / (1 + n)) for token, n in known.items()}
    found["tf_idf"] = sum(log(1 + Counter(text)[each]) * rarity[each] for each in present)
    found["tf"] = sum(log(1 + Counter(text)[each]) for each in present)
    found["idf"] = sum(rarity[each] for each in present)
    total = sum(map(len, texts))
    dirichlet = 128 / (len(text) + 128)
    weights = {"jelinek_mercer_short": 0.1, "jelinek_mercer_long": 0.7, "dirichlet": dirichlet}
    for name, weight in weights.items():
        score = 0.0
        for token in query:
            chance = weight * sum(each.count(token) for each in texts) / total
            chance += (1 - weight) * text.count(token) / max(len(text), 1)
            score += log(chance) if chance > 0 else 0.0
        found[f"ql_{name}"] = score
    return [found[name] for name in LEXICAL]


def test_features_are_those_of_the_definitions(texts):
    queries, titles, abstracts = texts
    corpus = Corpus.of([(padded(titles[:20]), padded(abstracts[:20])),
                        (padded(titles[20:]), padded(abstracts[20:]))], VOCABULARY)  # fmt: skip
    assert corpus.documents == len(titles)
    found = lexical_features(padded(queries), padded(titles), padded(abstracts), corpus)
    expected = [
        plain(*each, titles, abstracts) for each in zip(queries, titles, abstracts, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_no_pairs():
    corpus = Corpus.of([], VOCABULARY)
    none = np.zeros((0, 2), int)
    assert corpus.documents == 0
    assert lexical_features(none, none, none, corpus).shape == (0, 12)
