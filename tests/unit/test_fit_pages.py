"""Counting and EM of click models of pages."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from twotowers.experiment.components import build_model
from twotowers.files import blocks, distinct
from twotowers.fitting.em import fit_counts, fit_em
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.fitting.steps import EMState
from twotowers.models.chances import Chance, Share
from twotowers.models.dynamic_bayesian import DynamicBayesian
from twotowers.models.names import MODELS
from twotowers.models.page import ChainModel, lay_out
from twotowers.models.protocol import ONCE, PER_DOCUMENT, PER_JUMP, PER_POSITION

HIDDEN = {name: build_model(MODELS[name]) for name in ("pbm", "ubm", "dcm", "ccm", "dbn", "sdbn")}
SEEN = {name: build_model(MODELS[name]) for name in ("gctr", "rctr", "dctr", "cm")}
SEEN |= {
    "dcm, simplified": build_model("dependent_click_simplified"),
    "sdbn, counted": build_model("simplified_bayesian_counted"),
}
LENGTH, PAIRS = 4, 6


def truth_of(model, rng):
    sizes = {PER_DOCUMENT: PAIRS, PER_POSITION: LENGTH, PER_JUMP: (LENGTH, LENGTH), ONCE: ()}
    values = {part: rng.uniform(0.2, 0.9, sizes[kind]) for part, kind in model.parts.items()}
    if "examination" in values:
        values["examination"][0] = 1
    return {part: np.asarray(each) for part, each in values.items()}


def log_of(model, pages, seed=0):
    """Pages of 1 to LENGTH of PAIRS documents in random order, clicked by the model's own user."""
    rng = np.random.default_rng(seed)
    truth = truth_of(model, rng)
    pair = rng.permuted(np.broadcast_to(np.arange(PAIRS), (pages, PAIRS)), axis=1)[:, :LENGTH]
    where = np.arange(LENGTH) < rng.integers(1, LENGTH + 1, pages)[:, None]
    chances = {name: Chance.of(v) for name, v in lay_out(truth, model.parts, pair).items()}
    return model, truth, pair, model.sample(chances, where, rng=rng)["clicks"], where


def statistics_of(model, pages, seed=0):
    model, truth, *log = log_of(model, pages, seed)
    return truth, Statistics.of_pages(model, distinct_pages(*log, pairs=PAIRS))


@pytest.mark.parametrize("name", [*HIDDEN, *SEEN])
def test_fits_do_not_depend_on_cores_and_only_by_rounding_on_blocks(name, monkeypatch):
    fit = fit_em if name in HIDDEN else fit_counts
    _, statistics = statistics_of({**HIDDEN, **SEEN}[name], 300)
    whole = fit(statistics, prior=Prior(1, 3))
    at = np.concatenate([*whole.parameters.values()])
    totals = EMState(statistics, Prior(1, 3)).totals(at)
    monkeypatch.setattr(blocks, "CELLS", 40)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(blocks, "cores", lambda cores=cores: cores)
        found.append(fit(statistics, prior=Prior(1, 3)))
    alone, together = found
    assert len(blocks.blocks(*statistics.clicks.shape)) > 1
    assert alone.history.tobytes() == together.history.tobytes()
    np.testing.assert_allclose(alone.history[-1], whole.history[-1], rtol=1e-9)
    for part, values in alone.parameters.items():
        assert together.parameters[part].tobytes() == values.tobytes()
        assert together.trials[part].tobytes() == alone.trials[part].tobytes()
    for parted, entire in zip(EMState(statistics, Prior(1, 3)).totals(at), totals, strict=True):
        np.testing.assert_allclose(parted, entire, rtol=1e-12, atol=1e-12)


def test_distinct_rows_are_numbered_as_they_come():
    rows = np.random.default_rng(0).integers(0, 3, (200, 4))
    number, first = distinct.number_rows(rows)
    np.testing.assert_array_equal(rows[first][number], rows)
    assert len(first) == len({tuple(row) for row in rows.tolist()})
    assert (np.diff(first) > 0).all()
    assert number[first].tolist() == list(range(len(first)))


@pytest.mark.parametrize("name", [*HIDDEN, *SEEN])
def test_shares_have_the_likelihood_of_logarithms(name):
    """The one that EM climbs, and the one that is tested against enumeration."""
    model, truth, pair, clicks, where = log_of({**HIDDEN, **SEEN}[name], 200)
    pages = lay_out(truth, model.parts, pair)
    logs, plain = (
        model.log_likelihood({part: kind.of(each) for part, each in pages.items()}, clicks, where)
        for kind in (Chance, Share)
    )
    np.testing.assert_allclose(plain, logs, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in HIDDEN if isinstance(HIDDEN[name], ChainModel)])
def test_pages_of_thousands_of_documents_do_not_underflow(name):
    """A page without a click, and one with a click on top: P(no click below) is below 1e-400."""
    model, shape = HIDDEN[name], (2, 3000)
    clicks = np.zeros(shape, bool)
    clicks[1, 0] = True
    where, values = np.ones(shape, bool), {"attraction": 0.5, "satisfaction": 0.3}
    chances = {part: np.full(shape, values.get(part, 0.9)) for part in model.parts}
    found = model.expectations(chances, clicks, where)
    assert all(np.isfinite(each).all() for credit in found.values() for each in credit)
    examined = found["attraction"][1]
    stops = name in ("ccm", "dbn")  # after no click
    assert examined[0, -1] == pytest.approx(0 if stops else 1)
    assert 0 < examined[1, 1] < 0.5 if stops else examined[1, 1] < 1e-100
    logs, plain = (
        model.log_likelihood({part: kind.of(each) for part, each in chances.items()}, clicks, where)
        for kind in (Chance, Share)
    )
    np.testing.assert_allclose(plain, logs, rtol=1e-9)
    assert np.isfinite(plain).all()
    statistics = Statistics.of_pages(model, distinct_pages(np.zeros(shape, int), clicks, where))
    problem, sizes = EMState(statistics), statistics.sizes
    ends = np.concatenate([np.full(size, values.get(part, 0.9)) for part, size in sizes.items()])
    assert problem.objective(ends) == pytest.approx(plain.sum(), rel=1e-9)
    trials = problem.split(problem.totals(ends))["attraction"][1]
    assert trials[0] == pytest.approx(examined.sum(), rel=1e-9)


@dataclass(frozen=True)
class Fading(DynamicBayesian):
    """After no click, users go on by position; after one, always alike."""

    parts: ClassVar = {"attraction": PER_DOCUMENT, "patience": PER_POSITION, "liking": ONCE}

    def continuation(self, parts):
        return parts["liking"], parts["patience"]

    def credit_clicked(self, chances, went_on, stopped):
        return {"liking": (went_on, went_on + stopped)}

    def credit_skipped(self, chances, went_on, stopped):
        return {"patience": (went_on, went_on + stopped)}


@dataclass(frozen=True)
class Own(DynamicBayesian):
    """It has an E-step of its own."""

    def expectations(self, chances, clicks, where):
        return super().expectations(chances, clicks, where)


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("name", ["dcm", "ccm", "dbn", "sdbn"])
def test_suffixes_have_the_expectations_of_single_places(name, few):
    """Pages may be many and of few pairs, or fewer than their pairs. Likelihoods agree, too."""
    model, _, pair, clicks, where = log_of(HIDDEN[name], 20 if few else 500)
    pair = pair + PAIRS * np.arange(len(pair))[:, None] if few else pair
    pages = distinct_pages(pair, clicks, where, pairs=pair.max() + 2)
    problem = EMState(Statistics.of_pages(model, pages), Prior(1, 3))
    assert problem.chain
    values = np.random.default_rng(1).uniform(0.1, 0.9, problem.size)
    new, objective = problem.measured_step(values)
    totals = problem.totals(values)
    assert objective == problem.objective(values)
    np.testing.assert_array_equal(new, problem.step(values))
    problem.chain = None
    np.testing.assert_allclose(totals, problem.totals(values), rtol=1e-12, atol=1e-12)
    assert objective == pytest.approx(problem.objective(values), rel=1e-12)


def test_models_of_documents_and_positions_and_own_steps_are_left_to_single_places():
    _, _, pair, clicks, where = log_of(HIDDEN["dbn"], 50)
    for given in (Fading(), Own(), SEEN["cm"]):
        pages = distinct_pages(pair, clicks, where)
        assert EMState(Statistics.of_pages(given, pages)).chain is None


@pytest.mark.parametrize("name", HIDDEN)
def test_the_gradient_of_q_is_that_of_the_likelihood(name):
    """Thesis, Eq. 5.10, for every model: an E-step of another model would have another gradient."""
    _, statistics = statistics_of(HIDDEN[name], 300)
    problem = EMState(statistics)
    point = np.random.default_rng(1).uniform(0.2, 0.8, problem.size)
    totals = problem.totals(point)
    shares, trials = problem.shares(totals, point), totals[1]
    # dQ/dp = (successes - trials p) / (p (1 - p)) of binomial trials.
    gradient = trials * (shares - point) / (point * (1 - point))
    for place in range(problem.size):
        moved = np.zeros(problem.size)
        moved[place] = 1e-6
        slope = (problem.objective(point + moved) - problem.objective(point - moved)) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("prior", [Prior(), Prior(1, 9)])
@pytest.mark.parametrize("name", HIDDEN)
def test_em_never_falls_and_ends_at_a_maximum(name, prior):
    _, statistics = statistics_of(HIDDEN[name], 2000)
    plain = fit_em(statistics, prior=prior, accelerate=False, iterations=60, tolerance=0)
    assert (np.diff(plain.history) >= 0).all()
    fitted = fit_em(statistics, prior=prior, tolerance=1e-13)
    assert fitted.converged
    assert fitted.history[-1] >= plain.history[-1] - 1e-6
    assert len(fitted.history) < 2000
    problem = EMState(statistics, prior)
    best = np.concatenate(list(fitted.parameters.values()))
    value = problem.objective(best)
    inside = np.flatnonzero((best > 1e-3) & (best < 1 - 1e-3))
    for place in inside:
        for step in (-1e-3, 1e-3):
            moved = best.copy()
            moved[place] += step
            assert problem.objective(moved) <= value + 1e-6


def counted_by_hand(name, pair, clicks, where):
    """Successes and trials of each part, page by page."""
    tally = {}

    def add(part, key, success):
        entry = tally.setdefault(part, {}).setdefault(key, [0, 0])
        entry[0] += bool(success)
        entry[1] += 1

    for documents, clicked, shown in zip(pair, clicks, where, strict=True):
        places = [k for k in range(LENGTH) if shown[k]]
        hits = [k for k in places if clicked[k]]
        for k in places:
            d, c = documents[k], clicked[k]
            if name == "gctr":
                add("rate", 0, c)
            elif name == "rctr":
                add("examination", k, c)
            elif name == "dctr":
                add("attraction", d, c)
            elif name == "cm":
                if not any(clicked[:k]):
                    add("attraction", d, c)
            else:
                if not hits or k <= hits[-1]:
                    add("attraction", d, c)
                if c and name.startswith("dcm"):
                    add("continuation", k, k != hits[-1])
                if c and name.startswith("sdbn"):
                    add("satisfaction", d, k == hits[-1])
    return tally


@pytest.mark.parametrize("name", SEEN)
def test_counts_are_those_by_hand(name):
    # Clicks that some of the models know nothing of.
    _, _, pair, clicks, where = log_of(HIDDEN["ubm"], 300)
    model = SEEN[name]
    statistics = Statistics.of_pages(model, distinct_pages(pair, clicks, where, pairs=PAIRS))
    fitted, smooth = fit_counts(statistics), fit_counts(statistics, prior=Prior(1, 2))
    tally = counted_by_hand(name, pair, clicks, where)
    assert set(tally) == set(model.parts)
    for part, entries in tally.items():
        for key, (successes, trials) in entries.items():
            assert fitted.parameters[part][key] == pytest.approx(successes / trials)
            assert fitted.trials[part][key] == trials
            assert smooth.parameters[part][key] == pytest.approx((successes + 1) / (trials + 2))


def test_what_was_never_tried_is_not_known():
    pages = distinct_pages(
        np.array([[0, 1]]), np.array([[True, False]]), np.ones((1, 2), bool), pairs=3
    )
    fitted = fit_counts(Statistics.of_pages(SEEN["cm"], pages))
    np.testing.assert_array_equal(fitted.parameters["attraction"], [1, np.nan, np.nan])
    smooth = fit_counts(Statistics.of_pages(SEEN["cm"], pages), prior=Prior(1, 9))
    np.testing.assert_allclose(smooth.parameters["attraction"], [0.2, 1 / 9, 1 / 9])
