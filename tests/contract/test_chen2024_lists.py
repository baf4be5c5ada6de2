"""Chen et al. (2024): the fully synthetic lists, the authors' own, and Table 1 on these."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from papers.chen2024.methods.naive import fit_naive
from papers.chen2024.methods.rate_dla import MeanRatio
from papers.chen2024.models.eye_tracking import EXAMINATION, EyeTracking
from papers.chen2024.studies.theorems import relevance_of
from tests.items import experiment, given_lists
from twotowers.claims.metrics import correlation, ndcg
from twotowers.fitting.pair_counts import factor_components
from twotowers.fitting.tiles import ClickRates
from twotowers.identifiability.linked_lists import Lists, rows_of
from twotowers.methods.alternation import alternate, click_mse
from twotowers.randomness import stream

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
AUTHORS = DATA / "chen2024_k2"
CONSTRUCTION = experiment("chen2024").logs["k2"].lists
EXCHANGED = CONSTRUCTION.exchanged
needs_authors = pytest.mark.skipif(not AUTHORS.exists(), reason=f"{AUTHORS} is absent")


def edges(k) -> list:
    return [(a - 1, b - 1) for a, b in experiment("chen2024").logs[f"k{k}"].lists.links]


def components(lists) -> np.ndarray:
    return factor_components(*lists.rows, factors=lists.documents.shape[1])


def exchanged(lists) -> Counter:
    """How many documents of each block of 1,000 are shown at which other position."""
    return Counter(
        {
            (block, position): count
            for position, column in enumerate(lists.documents.T)
            for block, count in enumerate(np.bincount(np.unique(column) // 1000, minlength=10))
            if block != position and count
        }
    )


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_components_and_structure(k):
    lists = given_lists(k, seed=0)
    found = components(lists)
    assert found.max() + 1 == k
    assert all(found[a] == found[b] for a, b in edges(k))
    assert lists.documents.shape == (1150, 10)
    assert lists.labels.shape == (10_000,)
    for position, column in enumerate(lists.documents.T):
        own = np.arange(1000 * position, 1000 * (position + 1))
        assert np.isin(own, column).all()
    # Fifty each way over every edge; a double edge may draw the same document twice.
    given = Counter(edge for a, b in edges(k) for edge in ((a, b), (b, a)))
    swapped = exchanged(lists)
    assert swapped.keys() == given.keys()
    for edge, times in given.items():
        if times == 1:
            assert swapped[edge] == EXCHANGED
        else:
            assert EXCHANGED < swapped[edge] <= times * EXCHANGED


def test_labels_have_their_shares():
    drift = (np.arange(10) - 4.5)[:, None] * CONSTRUCTION.drift
    shares = np.array(CONSTRUCTION.shares) + drift
    labels = np.stack([given_lists(1, seed=seed).labels.reshape(10, 1000) for seed in range(20)])
    found = (labels[..., None] == np.arange(5)).mean((0, 2))
    deviation = np.sqrt(shares * (1 - shares) / 20_000)
    assert (np.abs(found - shares) < 4 * deviation).all()


def test_relevance_of_the_labels():
    # Eq. C.1 with fractions written out; y_max = 5 would be the first to reach 1.
    attraction = EyeTracking().truth(np.arange(5.0), 10)["attraction"]
    np.testing.assert_allclose(expit(attraction), [0.1 + 0.9 * n / 31 for n in (0, 1, 3, 7, 15)])


def read_lists(folder: str | Path) -> Lists:
    """Read the lists of a folder that holds `train.init_list` and `train.labels`.

    Both have a line per query: its number, then its documents, or their labels, by position.
    """
    pages, labels = (
        np.loadtxt(Path(folder) / f"train.{name}", int, ndmin=2) for name in ("init_list", "labels")
    )
    documents, by_document = pages[:, 1:], np.full(pages[:, 1:].max() + 1, -1)
    by_document[documents] = labels[:, 1:]
    # Every document has one label, wherever it is shown.
    assert (pages[:, 0] == labels[:, 0]).all()
    assert (by_document[documents] == labels[:, 1:]).all()
    number = factor_components(*rows_of(documents), factors=documents.shape[1]).max() + 1
    return Lists(documents, by_document, int(number))


@needs_authors
def test_ours_are_made_as_the_authors_were():
    lists = read_lists(AUTHORS)
    assert components(lists).tolist() == [0] * 4 + [1] * 6
    assert exchanged(lists) == exchanged(given_lists(2, seed=0))
    # As many documents are repeated at a position, to a few standard deviations.
    for column, ours in zip(lists.documents.T, given_lists(2, seed=0).documents.T, strict=True):
        singles = [(np.bincount(shown) == 1).sum() for shown in (column, ours)]
        assert np.diff(singles) == pytest.approx(0, abs=15)
    shares = np.bincount(lists.labels) / 10_000
    np.testing.assert_allclose(CONSTRUCTION.shares, shares, atol=6e-4)
    by_position = (lists.labels.reshape(10, -1)[..., None] == np.arange(5)).mean(1)
    slopes = np.polyfit(np.arange(10), by_position, 1)[0]
    np.testing.assert_allclose(CONSTRUCTION.drift, slopes, atol=6e-5)


@needs_authors
def test_the_authors_intervention_swaps_two_documents_of_one_query():
    plain, swapped = read_lists(AUTHORS), read_lists(f"{AUTHORS}_node_intervention")
    assert (swapped.documents[:-1] == plain.documents).all()
    assert (swapped.labels == plain.labels).all()
    changed = swapped.documents[-1] != plain.documents[444]
    assert np.flatnonzero(changed).tolist() == [0, 4]
    assert swapped.documents[-1, [0, 4]].tolist() == plain.documents[444, [4, 0]].tolist()
    assert components(swapped).max() == 0


# Table 1 on the authors' own K = 2 lists

# Only cells without a standard deviation are compared: the others depend on the random start.
# DLA on merged positions changes by less than 1e-5 between 2,000 and the published 20,000 steps.

LANES = 5
CUTS = (1, 3, 5, 10)
STEPS = 2000


def sample(lists, merged=None) -> ClickRates:
    """Rates of a million clicks per row; `merged` gives a pair of positions from 0."""
    feature, factor = lists.rows
    chance = relevance_of(lists)[feature] * EXAMINATION[factor]
    clicks = stream("click rates", 0).binomial(1_000_000, np.tile(chance, (LANES, 1)))
    rate = (clicks / 1_000_000).astype(np.float32)
    if merged:
        factor[factor == merged[1]] = merged[0]
    return ClickRates(feature, np.tile(factor, (LANES, 1)), rate, np.ones_like(rate), 10_000, 10)


def scores(lists, estimate) -> dict[str, np.ndarray]:
    """[lanes] MCC and nDCG as Table 1 prints them."""
    labels = lists.labels[lists.documents].astype(np.float32)
    where = np.ones(labels.shape, bool)
    found = {"MCC": correlation(relevance_of(lists), estimate.relevance)}
    for cut in CUTS:
        found[f"nDCG@{cut}"] = np.array(
            [
                ndcg(relevance[lists.documents], labels, where=where, topn=cut).mean()
                for relevance in estimate.relevance
            ]
        )
    return found


def published(mcc, *gains):
    return {"MCC": mcc, **{f"nDCG@{cut}": gain for cut, gain in zip(CUTS, gains, strict=True)}}


def check(found, printed):
    """Means over lanes are as printed, and standard deviations .000."""
    for metric, value in printed.items():
        assert found[metric].mean() == pytest.approx(value, abs=5e-4), metric
        assert found[metric].std() < 5e-4, metric


def start():
    return stream("examination at the start", 0).random((LANES, 10))


@needs_authors
def test_no_debiasing():
    lists = read_lists(AUTHORS)
    rates = sample(lists)
    estimate = fit_naive(rates)
    check(scores(lists, estimate), published(0.521, 0.711, 0.625, 0.665, 0.820))
    assert np.round(click_mse(rates, estimate), 5).tolist() == [2e-5] * LANES


@needs_authors
def test_dla_with_node_merging():
    lists = read_lists(AUTHORS)
    rates = sample(lists, merged=(3, 4))
    estimate = alternate(rates, start(), MeanRatio(), steps=STEPS)
    check(scores(lists, estimate), published(0.975, 1, 1, 1, 1))
    assert (click_mse(rates, estimate) < 1e-8).all()


@needs_authors
def test_dla_without_repair_fits_clicks_but_not_relevance():
    lists = read_lists(AUTHORS)
    rates = sample(lists)
    estimate = alternate(rates, start(), MeanRatio(), steps=STEPS)
    assert (click_mse(rates, estimate) < 1e-8).all()
    assert np.ptp(scores(lists, estimate)["MCC"]) > 0.01
    assert (scores(lists, estimate)["MCC"] < 0.97).all()
