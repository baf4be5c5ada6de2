"""EM on cells against enumeration, closed forms and SciPy; the likelihood never falls."""

import itertools
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, xlog1py, xlogy

from twotowers.errors import InputError
from twotowers.fits.fitting import fit_click_model
from twotowers.fitting.em import fit_em
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics
from twotowers.models.position_based import PositionBased
from twotowers.models.protocol import CellModel


class TrustBias(CellModel):
    """P(click | examined) is 0.9 for attractive documents and 0.1 for others."""

    parts: ClassVar = {"attraction": "document", "examination": "position"}

    def probability(self, attraction, examination):
        return examination * (0.1 + 0.8 * attraction)

    def posteriors(self, attraction, examination):
        examined = 0.1 + 0.8 * attraction
        none = 1 - examination * examined
        return {
            "attraction": (
                0.9 * attraction / examined,
                attraction * (1 - 0.9 * examination) / none,
            ),
            "examination": (1, examination * (1 - examined) / none),
        }


POSITION_BASED = PositionBased()
# With the chance of a click given what happened.
MODELS = [
    (POSITION_BASED, lambda attraction, examination: attraction * examination),
    (TrustBias(), lambda attraction, examination: examination * (0.9 if attraction else 0.1)),
]
NAMES = ["position-based", "trust bias"]


class Cells(NamedTuple):
    """Impressions and clicks of documents at positions: [cells] each."""

    document: np.ndarray
    position: np.ndarray
    impressions: np.ndarray
    clicks: np.ndarray

    @property
    def documents(self) -> int:
        return self.document.max() + 1

    @property
    def positions(self) -> int:
        return self.position.max() + 1


def fit(cells, model=POSITION_BASED, **options):
    sizes = {"pairs": cells.documents, "positions": cells.positions}
    return fit_em(Statistics.of_cells(model, *cells, **sizes), **options)


def make_cells(model, documents=40, positions=5, shown=60, seed=0):
    """Sampled clicks of documents that were seen at about half of the positions."""
    rng = np.random.default_rng(seed)
    document, position = np.nonzero(rng.random((documents, positions)) < 0.6)
    truth = {
        "attraction": rng.uniform(0.2, 0.9, documents)[document],
        "examination": np.linspace(0.95, 0.3, positions)[position],
    }
    chance = model.probability(**{part: truth[part] for part in model.parts})
    impressions = rng.integers(1, shown, len(document))
    return Cells(document, position, impressions, rng.binomial(impressions, chance))


def random_start(cells, model, seed=0):
    rng = np.random.default_rng(seed)
    sizes = {"document": cells.documents, "position": cells.positions}
    return {part: rng.uniform(0.1, 0.9, sizes[by]) for part, by in model.parts.items()}


def likelihood(cells, model, parameters):
    index = {"document": cells.document, "position": cells.position}
    chance = model.probability(
        **{part: parameters[part][index[by]] for part, by in model.parts.items()}
    )
    none = cells.impressions - cells.clicks
    return (xlogy(cells.clicks, chance) + xlog1py(none, -chance)).sum()


@pytest.mark.parametrize(("model", "clicked"), MODELS, ids=NAMES)
def test_posteriors_are_those_of_enumeration(model, clicked):
    """All states of the parts, weighted by their chance and by that of the click."""
    parts = list(model.parts)
    values = dict(zip(parts, np.random.default_rng(0).uniform(0.05, 0.95, (2, 20)), strict=True))
    states = np.array(list(itertools.product((0, 1), repeat=len(parts))))
    click = np.array([clicked(*state) for state in states])
    found = model.posteriors(**values)
    for row in range(20):
        chances = np.array([values[part][row] for part in parts])
        weight = np.prod(np.where(states, chances, 1 - chances), axis=1)
        total = (weight * click).sum()
        assert model.probability(**values)[row] == pytest.approx(total)
        for number, part in enumerate(parts):
            for posterior, event in zip(found[part], (click, 1 - click), strict=True):
                wanted = (weight * event * states[:, number]).sum() / (weight * event).sum()
                assert np.broadcast_to(posterior, 20)[row] == pytest.approx(wanted)


@pytest.mark.parametrize("accelerate", [False, True], ids=["plain", "SQUAREM"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("model", "clicked"), MODELS, ids=NAMES)
def test_the_likelihood_never_falls(model, clicked, seed, accelerate):
    cells = make_cells(model, seed=seed)
    start = random_start(cells, model, seed)
    fitted = fit(cells, model, start=start, iterations=60, tolerance=0, accelerate=accelerate)
    assert (np.diff(fitted.history) >= 0).all()
    assert fitted.history[0] == pytest.approx(likelihood(cells, model, start))
    assert fitted.history[-1] == pytest.approx(likelihood(cells, model, fitted.parameters))
    assert fitted.iterations == len(fitted.history) - 1
    one = fit(cells, model, start=start, iterations=1, accelerate=False)
    # Before rounding sets in, a wrong step would lower the likelihood at once.
    assert one.history[1] > one.history[0]


def test_against_scipy():
    cells = make_cells(PositionBased(), shown=500)
    fitted = fit(cells, tolerance=1e-14)

    def loss(logits):
        chances = np.split(expit(logits), [cells.documents])
        values = dict(zip(PositionBased.parts, chances, strict=True))
        return -likelihood(cells, PositionBased(), values) / 1000

    size = cells.documents + cells.positions
    reached = minimize(loss, np.zeros(size), method="L-BFGS-B", options={"maxfun": 10**6})
    assert fitted.history[-1] >= -1000 * reached.fun - 0.01
    attraction, examination = np.split(expit(reached.x), [cells.documents])
    found = fitted.parameters["examination"]
    np.testing.assert_allclose(found / found[0], examination / examination[0], rtol=5e-3)
    scale = found[0] / examination[0]
    seen = np.unique(cells.document)
    attraction = attraction[seen] / scale
    np.testing.assert_allclose(fitted.parameters["attraction"][seen], attraction, rtol=2e-2)


def test_closed_form_of_known_examination():
    """With sure examination, attraction is the click rate after one step."""
    cells = Cells(np.array([0, 1, 2]), np.zeros(3, int), np.array([10, 20, 8]), np.array([3, 0, 8]))
    fitted = fit(cells, start={"examination": 1}, accelerate=False)
    np.testing.assert_allclose(fitted.parameters["attraction"], [0.3, 0, 1])
    assert fitted.parameters["examination"].tolist() == [1]
    assert fitted.converged
    assert fitted.iterations == 2
    assert fitted.history[-1] == pytest.approx(3 * np.log(0.3) + 7 * np.log(0.7))


def test_closed_form_of_a_prior():
    """Imagined successes and trials count as those that were seen."""
    cells = Cells(np.array([0, 1, 3]), np.zeros(3, int), np.array([10, 20, 8]), np.array([3, 0, 8]))
    plain = {"start": {"examination": 1}, "accelerate": False}
    found = fit(cells, prior=Prior(parts={"attraction": (1, 3)}), **plain).parameters["attraction"]
    # Document 2 was never shown.
    np.testing.assert_allclose(found, [4 / 13, 1 / 23, 1 / 3, 9 / 11])


def test_acceleration_reaches_the_same_sooner():
    cells = make_cells(PositionBased(), shown=500)
    fast, plain = (
        fit(cells, tolerance=1e-13, accelerate=accelerate) for accelerate in (True, False)
    )
    assert fast.converged
    assert plain.converged
    assert 3 * fast.iterations < plain.iterations
    assert fast.history[-1] >= plain.history[-1] - 1e-3


def test_what_was_never_shown_is_not_known():
    cells = Cells(np.array([0, 2]), np.array([0, 2]), np.array([10, 10]), np.array([3, 4]))
    found = fit(cells)
    for part in ("attraction", "examination"):
        assert np.isnan(found.parameters[part]).tolist() == [False, True, False]
    # The mean of the others, weighted by trials.
    assert found.unknown()["attraction"] == pytest.approx(
        found.parameters["attraction"][[0, 2]].mean()
    )
    smooth = fit(cells, prior=Prior(parts={"attraction": (1, 4)}))
    assert smooth.parameters["attraction"][1] == 0.25
    assert smooth.unknown()["attraction"] == 0.25


class Contradictory(PositionBased):
    """Says that no document attracts without a click, whatever the examination."""

    def posteriors(self, attraction, examination):
        return {"attraction": (0, 1), "examination": (0, 1)}


class Forgetful(PositionBased):
    def posteriors(self, attraction, examination):
        return {"attraction": (1, attraction)}


class Elsewhere(PositionBased):
    parts: ClassVar = {"attraction": "document", "examination": "query"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Contradictory(), r"Contradictory: the log-likelihood fell from .* to .*posteriors"),
        (Forgetful(), r"Forgetful.posteriors: has the parts \['attraction'\]"),
        (Elsewhere(), r"parts: Elsewhere has parts per query"),
    ],
)
def test_wrong_models(model, message):
    with pytest.raises(InputError, match=message):
        fit(make_cells(PositionBased()), model, start={"attraction": 0.6, "examination": 0.7})


def test_the_fit_of_rare_clicks_ends_at_the_maximum():
    """At a click rate of .005, within a twentieth of a standard error of examination."""
    rng = np.random.default_rng(5)
    pair, position = np.nonzero(rng.random((2000, 10)) < 0.4)
    shown = rng.integers(1, 60, len(pair)) * 5
    attraction, examination = rng.beta(1, 82, 2000), np.arange(1, 11) ** -0.7
    clicks = rng.binomial(shown, attraction[pair] * examination[position])
    log = pd.DataFrame(
        {
            "query": pair // 10,
            "document": pair,
            "position": position + 1,
            "impressions": shown,
            "clicks": clicks,
        }
    )
    tables = [
        fit_click_model(log, "pbm", prior=None, **options).examination()
        for options in ({}, {"tolerance": 0})
    ]
    short = (tables[0]["estimate"] - tables[1]["estimate"]).abs() / tables[1]["error"]
    assert short[1:].max() < 0.05
