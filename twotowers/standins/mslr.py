"""The stand-in for MSLR-WEB30K.

Nothing is fitted to or copied from single documents. A query draws terms and a candidate list. A
document draws a topic, an authority and a length. Term counts follow from these. Every column is
computed from the counts as the documentation of the real data set defines it, so columns correlate
as in the real set. Relevance is a smooth function of some columns, plus an offset per query and
noise that no column carries. So features predict relevance only partly, and an expert logging
policy is a confounder.
"""

from dataclasses import dataclass

import numpy as np

BLOCK = 32
WIDTH = 136
TERMS = 6


@dataclass(frozen=True)
class Stream:
    """The occurrence of query terms in one text field of a document.

    The count of a term is floor(exp(e)), with e normal around
    `count` + `topic` * topic + `length_effect` * (standardised log length) - `rare` * (idf - 4).

    Attributes:
        idf: an offset of the field to a term's inverse document frequency.
        length, length_sd: mean and standard deviation of the log length.
        shortest: the smallest length of a field that is not empty.
        count, topic, length_effect, rare, spread: see above; `spread` is the normal's deviation.
    """

    idf: float
    length: float
    length_sd: float
    shortest: int
    count: float
    topic: float
    length_effect: float
    rare: float
    spread: float


# The fifth stream, the whole document, is the sum of these four.
STREAMS = {
    "body": Stream(0.0, 6.06, 1.15, 1, 1.45, 0.45, 0.55, 0.25, 1.10),
    "anchor": Stream(4.2, 0.80, 1.30, 1, -0.10, 0.40, 0.50, 0.05, 0.60),
    "title": Stream(3.4, 1.85, 0.50, 1, -0.02, 0.28, 0.10, 0.04, 0.45),
    "url": Stream(3.9, 1.95, 0.38, 3, -0.40, 0.28, 0.10, 0.04, 0.40),
}

# Shares of lists with more than 300 documents, and with fewer than SHORT, which a page of 25 does
# not fill. Real values: docs/standins.md.
LONG_SHARE = 0.003
SHORT, SHORT_SHARE = 25, 0.011

# A label is the number of thresholds that a document's utility exceeds. Thresholds are quantiles of
# the utility over a million documents, so they must be computed again after any change above or
# below. docs/standins.md shows the outcome.
THRESHOLDS = (0.004, 1.038, 1.985, 2.457)
SIGNAL_MEAN, SIGNAL_SD = 1.91, 1.31
# Share of a utility's variance that features carry. It sets how well the best model ranks.
PREDICTABLE = 0.5
# Offset of the utility per query. It sets how good a random order of the top 25 is. A few queries
# are shifted so far down that they have no relevant document.
QUERY_SD = 0.32
HOPELESS_SHARE, HOPELESS_SHIFT = 0.032, 4.0


def lists(rng: np.random.Generator, block: int) -> tuple[np.ndarray]:
    """[BLOCK] list lengths: median 109, mean 120, thin tails to 1 and 1,251 as in the real set."""
    usual = np.exp(np.log(108.5) + 0.42 * rng.standard_normal(BLOCK))
    long = rng.uniform(300, 1000, BLOCK)
    luck = rng.random(BLOCK)
    lengths = np.where(luck < LONG_SHARE, long, usual)
    # All lengths of short lists are equally likely.
    short = 1 + (SHORT - 1) * (1 - luck) / SHORT_SHARE
    lengths = np.where(1 - luck < SHORT_SHARE, short, lengths)
    # The longest lists and those of one document are about one in a thousand. They are placed,
    # not drawn, so that every split of 256 queries or more has one of each. Code that cannot
    # handle them then fails early.
    longest = rng.uniform(1000, 1251)
    if block % 32 == 7:
        lengths[:2] = longest, 1
    return (np.maximum(lengths, 1).astype(np.int64),)


def documents(rng: np.random.Generator, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One block: features [rows, 136] and labels [rows], for lists of the given lengths."""
    rows = int(lengths.sum())
    query = np.repeat(np.arange(BLOCK), lengths)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    terms = rng.choice(np.arange(1, TERMS + 1), BLOCK, p=(0.17, 0.34, 0.26, 0.13, 0.06, 0.04))
    used = np.arange(TERMS)[:, None] < terms
    idf = (4.1 + 1.9 * np.clip(normal(TERMS, BLOCK), -2.4, 2.4)) * used
    idf = np.where(idf > 0, idf, 0.1 * idf)  # a stop word's is slightly negative
    query_offset = QUERY_SD * normal(BLOCK)
    query_offset -= HOPELESS_SHIFT * (rng.random(BLOCK) < HOPELESS_SHARE)

    # Documents of one query resemble each other: a share of each trait is the query's own.
    traits = 0.6 * normal(6, BLOCK)[:, query] + 0.8 * normal(6, rows)
    topic, authority, size, depth, low_quality, known = traits
    popular = 0.65 * authority + 0.76 * known
    count, length, term_idf = _counts(normal, query, used, idf, topic, popular, size)

    features = np.empty((rows, WIDTH), np.float32)
    _text_columns(features, count, length, term_idf[:, query], used[:, query])
    _page_columns(features, normal, topic, authority, popular, depth, low_quality)

    signal = (_signal(features) - SIGNAL_MEAN) / SIGNAL_SD
    utility = PREDICTABLE**0.5 * signal + (1 - PREDICTABLE) ** 0.5 * normal(rows)
    label = np.searchsorted(THRESHOLDS, utility + query_offset[query])
    return features, label


def _counts(normal, query, used, idf, topic, popular, size):
    """Counts [TERMS, rows, 5], lengths [rows, 5] and idf [TERMS, BLOCK, 5] of five streams."""
    rows = len(query)
    # Terms lead because NumPy reduces a short last axis several times slower.
    count = np.empty((TERMS, rows, 5), np.float32)
    length = np.empty((rows, 5), np.float32)
    term_idf = np.empty((TERMS, BLOCK, 5), np.float32)
    # Fields share a part of a term's noise: a document about the term has it in several fields.
    shared = 0.7 * normal(TERMS, BLOCK)[:, query] + 0.714 * normal(TERMS, rows)
    terms = used.sum(0, dtype=np.float32)[query]
    for i, (name, stream) in enumerate(STREAMS.items()):
        size_here = 0.3 * size + 0.954 * normal(rows) if i else size
        text = np.exp(stream.length + stream.length_sd * size_here)
        text = np.maximum(np.floor(text), stream.shortest)
        if name == "anchor":  # only pages with inlinks have anchor text
            text = np.where(popular + 0.5 * normal(rows) > 0.69, text, 0)
        if name == "body":  # a few pages are empty
            text = np.where(normal(rows) > -2.05, text, 0)
        length[:, i] = text
        mean = stream.count + stream.topic * topic + stream.length_effect * size_here
        exponent = mean + stream.spread * (0.6 * shared + 0.8 * normal(TERMS, rows))
        exponent -= (stream.rare * (idf - 4))[:, query]
        drawn = np.floor(np.exp(exponent)) * used[:, query]
        count[..., i] = np.minimum(drawn, np.ceil(text / terms))
        term_idf[..., i] = (idf + stream.idf) * used
    count[..., 4] = count[..., :4].sum(-1)
    length[:, 4] = length[:, :4].sum(-1)
    term_idf[..., 4] = idf
    return count, length, term_idf


def _five(values: np.ndarray, used: np.ndarray, terms: np.ndarray) -> list[np.ndarray]:
    """Sum, minimum, maximum, mean and variance over a query's terms, each [rows, 5].

    `values` is [TERMS, rows, 5] and zero where `used` [TERMS, rows] is False.
    """
    total = values.sum(0)
    mean = total / terms
    variance = np.maximum((values**2).sum(0) / terms - mean**2, 0)
    unused = np.where(used, np.float32(0), np.float32(np.inf))[..., None]
    return [total, (values + unused).min(0), (values - unused).max(0), mean, variance]


def _text_columns(features, count, length, idf, used) -> None:
    """Fill columns 0 to 124: 25 quantities, each for the five streams."""
    terms = used.sum(0, dtype=np.float32)[:, None]
    covered = (count > 0).sum(0, dtype=np.float32)
    some = np.maximum(length, 1)
    share = count / some
    weighted = count * idf

    norm = np.sqrt((weighted**2).sum(0) * (idf**2).sum(0))
    cosine = (weighted * idf).sum(0) / np.maximum(norm, 1e-6)
    usual = np.array([750, 12, 7, 8, 770], np.float32)
    damp = 2.5 * (0.25 + 0.75 * some / usual)
    bm25 = (weighted * 3.5 / (count + damp)).sum(0)

    # Language models: log probability of the query under three smoothings with the collection.
    collection = np.exp(-np.maximum(idf, 0) - 1.2)

    def log_probability(probability: np.ndarray) -> np.ndarray:
        return (np.log(np.minimum(probability, 1)) * used[..., None]).sum(0)

    columns = [
        covered,
        covered / terms,
        length,
        idf.sum(0),
        *_five(count, used, terms),
        *_five(share, used, terms),
        *_five(weighted, used, terms),
        covered == terms,
        cosine,
        bm25,
        log_probability(np.maximum(count - 0.5, 0) / some + 0.5 * collection),
        log_probability((count + 50 * collection) / (some + 50)),
        log_probability(0.9 * share + 0.1 * collection),
    ]
    for i, column in enumerate(columns):
        features[:, 5 * i : 5 * i + 5] = column


def _page_columns(features, normal, topic, authority, popular, depth, low_quality) -> None:
    """Fill columns 125 to 135: url, links, ranks, quality scores and clicks of a page."""
    rows = len(topic)

    def counted(mean: float, deviation: float, z: np.ndarray, low: float, high: float):
        return np.clip(np.floor(np.exp(mean + deviation * z)), low, high)

    def rank16(mean: float, slope: float, z: np.ndarray) -> np.ndarray:
        return np.floor(65535 / (1 + np.exp(-mean - slope * z)))

    visited = 0.5 * popular + 0.866 * normal(rows)
    # Links have a heavier tail than a log-normal: a few home pages have 1e8.
    links = popular + 0.1 * np.maximum(popular, 0) ** 2
    chosen = 0.5 * visited + 0.5 * topic + 0.7 * normal(rows)
    clicks = counted(-2.6, 4.2, visited, 0, 6e5)
    page = [
        counted(0.95, 0.5, depth, 1, 15),
        counted(3.63, 0.45, 0.6 * depth + 0.8 * normal(rows), 7, 300),
        counted(1.7, 3.4, links, 0, 1.6e8),
        counted(-0.1, 1.8, normal(rows), 0, 254),
        np.maximum(rank16(-1.8, 2.6, 0.8 * popular + 0.6 * normal(rows)), 115),
        np.maximum(rank16(0.13, 2.3, 0.9 * authority + 0.436 * normal(rows)), 1),
        counted(1.7, 1.65, low_quality, 1, 254),
        counted(1.9, 1.7, 0.6 * low_quality + 0.8 * normal(rows), 1, 254),
        counted(-6.2, 3.5, chosen, 0, 1e6),
        clicks,
        np.where(clicks > 0, np.minimum(np.exp(2.6 + 1.4 * normal(rows)), 600), 0),
    ]
    for i, column in enumerate(page):
        features[:, 125 + i] = column


def _signal(features: np.ndarray) -> np.ndarray:
    """[rows]: the part of relevance that the columns carry, a smooth function of 11 of them.

    Text match saturates, authority counts only for pages that match, and lengths have an
    optimum: a linear tower can express none of the three.
    """

    def log(column: int) -> np.ndarray:
        return np.log1p(features[:, column])

    whole = features[:, 109] / np.maximum(features[:, 19], 1)
    title = features[:, 107] / np.maximum(features[:, 17], 1)
    matches = 1 / (1 + np.exp(-3 * (whole - 1.0)))
    authority = np.tanh((log(129) - 8.6) / 2) + 0.5 * np.tanh((log(130) - 10) / 1.5)
    fitting_length = np.exp(-0.5 * ((log(10) - 6) / 1.0) ** 2)
    return (
        1.0 * np.tanh(1.5 * (whole - 1.1))
        + 0.5 * title
        + 1.2 * matches * authority
        + 1.2 * fitting_length
        + 0.8 * np.tanh(log(133) / 3)
        + 0.5 * np.tanh(log(134) / 3)
        - 0.5 * np.tanh((log(132) - 2) / 1.2)
        - 0.3 * np.tanh((log(126) - 3.6) / 0.5)
    )
