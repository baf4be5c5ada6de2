"""Chen et al. (2024), Table 1, on the authors' own K = 2 lists.

Only cells without a standard deviation are compared: the others depend on the random start.
DLA on merged positions changes by less than 1e-5 between 2,000 and the published 20,000 steps.
"""

from pathlib import Path

import numpy as np
import pytest

from papers.chen2024.methods.naive import fit_naive
from papers.chen2024.methods.rate_dla import MeanRatio
from papers.chen2024.models.eye_tracking import EXAMINATION
from papers.chen2024.studies.theorems import relevance_of
from tests.lists import read_lists
from twotowers.claims.metrics import correlation, ndcg
from twotowers.fitting.tiles import ClickRates
from twotowers.methods.alternation import alternate, click_mse
from twotowers.randomness import stream

AUTHORS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "chen2024_k2"
pytestmark = pytest.mark.skipif(not AUTHORS.exists(), reason=f"{AUTHORS} is absent")

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


def test_no_debiasing():
    lists = read_lists(AUTHORS)
    rates = sample(lists)
    estimate = fit_naive(rates)
    check(scores(lists, estimate), published(0.521, 0.711, 0.625, 0.665, 0.820))
    assert np.round(click_mse(rates, estimate), 5).tolist() == [2e-5] * LANES


def test_dla_with_node_merging():
    lists = read_lists(AUTHORS)
    rates = sample(lists, merged=(3, 4))
    estimate = alternate(rates, start(), MeanRatio(), steps=STEPS)
    check(scores(lists, estimate), published(0.975, 1, 1, 1, 1))
    assert (click_mse(rates, estimate) < 1e-8).all()


def test_dla_without_repair_fits_clicks_but_not_relevance():
    lists = read_lists(AUTHORS)
    rates = sample(lists)
    estimate = alternate(rates, start(), MeanRatio(), steps=STEPS)
    assert (click_mse(rates, estimate) < 1e-8).all()
    assert np.ptp(scores(lists, estimate)["MCC"]) > 0.01
    assert (scores(lists, estimate)["MCC"] < 0.97).all()
