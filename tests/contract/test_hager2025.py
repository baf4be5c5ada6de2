"""Hager et al. (2025): the studies at small sizes, and their items."""

import importlib
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import yaml
from flax import nnx

from papers.hager2025.studies import appendix_a, clipping, lemmas, overlap
from tests.items import drawing
from twotowers.claims import published
from twotowers.claims.statistics import BAND, read_results, select, write_results
from twotowers.files.rankings import Rankings, read_rankings, write_rankings
from twotowers.models.relevance import relevance

BANDS = published.bands("hager2025")
ITEMS = {
    "appendixA": "appendix_a", "padding": "clipping", "overlap": "overlap",
    "dimensions": "overlap", "expressiveness": "overlap",
}  # fmt: skip
POSITIONS = 10
PARAMETERS = yaml.safe_load("""
lemmas:
  {queries: 40, positions: 10, temperatures: [0.333, 0.666, 1], strengths: [-1, 0, 1], mixed: 0.333}
overlap:
  {queries: 10, starts: 2, steps: 20, gaps: [-0.5, 0.5], features: [1, 2], widths: [2, 4], gap: 0,
   width: 2}
appendix_a: {documents: 300, views: 10, impressions: 5000}
clipping: {queries: 40, positions: 10, strengths: [-1, 1], temperatures: [0, 0.333, 0.666, 1]}
""")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """40 queries of 8 to 10 documents; labels that features predict in part."""
    path = tmp_path_factory.mktemp("rankings") / "train.parquet"
    write_rankings(lists_of(np.random.default_rng(0).integers(8, POSITIONS + 1, 40)), path)
    return SimpleNamespace(train=path)


@pytest.fixture(scope="module")
def loud(tmp_path_factory):
    """Like the real set: noise is small beside the sum of features, which are far from zero, and
    few lists are short."""
    lists = lists_of(np.r_[[POSITIONS] * 39, 8])
    path = tmp_path_factory.mktemp("rankings") / "train.parquet"
    write_rankings(replace(lists, features=10 * (lists.features + 2)), path)
    return SimpleNamespace(train=path)


def lists_of(lengths: np.ndarray) -> Rankings:
    rng = np.random.default_rng(0)
    rows = lengths.sum()
    features = rng.normal(size=(rows, 6)).astype(np.float32)
    label = np.clip(np.round(1.5 + features[:, 0] + rng.normal(size=rows)), 0, 4)
    return Rankings(
        np.repeat(np.arange(len(lengths)), lengths),
        np.concatenate([np.arange(n) for n in lengths]).astype(np.int32),
        label.astype(np.float32),
        features,
    )


@pytest.fixture(scope="module")
def small(inputs, loud, tmp_path_factory) -> pd.DataFrame:
    """All studies, two seeds, through the file that a job writes."""
    folder = tmp_path_factory.mktemp("fits")
    paths = []
    for name, parameters in PARAMETERS.items():
        study = importlib.import_module(f"papers.hager2025.studies.{name}")
        for seed in (1, 2):
            lists = loud if name == "clipping" else inputs
            results = study.run(lists, seed=seed, **parameters)
            paths.append(folder / f"{name}-{seed}.parquet")
            write_results(results, paths[-1], paper="hager2025", setting=name, seed=seed)
    return read_results(paths)


# Lemmas.


def test_the_policy_is_a_distribution_over_ranks_and_documents(inputs):
    lists = read_rankings(inputs.train).first(40)
    exposure, chance = lemmas.population(lists, "well-specified", 0.333, POSITIONS, seed=1)
    np.testing.assert_allclose(exposure.sum(1), 1)
    by_query = np.add.reduceat(exposure, lists.offsets[:-1])
    shown = np.arange(POSITIONS) < lists.lengths[:, None]
    np.testing.assert_allclose(by_query, shown)
    # A document at its greedy rank: (1 - tau) + tau / n.
    query = np.repeat(np.arange(len(lists.lengths)), lists.lengths)
    np.testing.assert_allclose(exposure.max(1), 0.667 + 0.333 / lists.lengths[query])
    best = lists.label == np.maximum.reduceat(lists.label, lists.offsets[:-1])[query]
    assert best[exposure[:, 0] > 0.5].all()
    np.testing.assert_allclose(chance[:, 0], 1 / (1 + np.exp(2 - lists.label)), rtol=1e-6)


def test_a_well_specified_optimum_is_the_truth(small):
    bias = select(small, setting="lemmas", model="well-specified", metric="position_bias")
    np.testing.assert_allclose(bias["value"], -np.log(bias["position"].astype(float)), atol=1e-6)


def test_residuals_balance_where_an_optimum_has_a_parameter_for_it(small):
    rows = select(small, setting="lemmas", metric="largest_document_mean", strength=1)
    by_model = rows.groupby("model")["value"].max()
    assert by_model["not additive"] < 1e-6
    assert by_model["misspecified"] > 0.01


def test_users_that_multiply_are_not_additive():
    gamma = np.array([0.0, 2.0, 4.0])
    chance = lemmas.multiplied_chance(gamma, 4)
    np.testing.assert_allclose(chance[:, 3], chance[:, 0] / 4)
    logit = np.log(chance / (1 - chance))
    assert np.ptp(logit[:, 3] - logit[:, 0]) > 0.1


# Overlap.


def test_supports_overlap_or_leave_a_gap():
    touching, apart, mixed = (
        overlap.documents(seed=0, queries=2000, features=3, gap=gap) for gap in (0.0, 0.5, -0.5)
    )
    assert touching.shape == (2000, overlap.POSITIONS, 3)
    for x, gap in ((touching, 0.0), (apart, 0.5), (mixed, -0.5)):
        found = x[:, 0].min(0) - x[:, 1].max(0)
        np.testing.assert_allclose(found, gap, atol=0.01)
    assert overlap.distance(mixed[..., :1]) < 0.01 < 0.5 < overlap.distance(apart)


class Slope(nnx.Module):
    """A tower of one feature with a slope."""

    def __init__(self, slope: float):
        self.slope = nnx.Param(jnp.array(slope))

    def __call__(self, x):
        return self.slope[...] * x[..., 0]


def sloping(slope: float) -> SimpleNamespace:
    return SimpleNamespace(relevance=Slope(slope))


def test_the_bound_is_used_up_by_towers_of_opposite_slopes():
    x = np.tile(-np.arange(float(overlap.POSITIONS)), (3, 1))
    # r = L x and r' = -L x differ by 2 L x, and so by 2 L |x1 - x2| from one position to the next.
    bias = np.stack([np.zeros(overlap.POSITIONS), 2 * 3.0 * x[0]])
    used = overlap.bound_used([sloping(3.0), sloping(-3.0)], bias, x)
    assert used == pytest.approx(1, rel=1e-3)
    assert overlap.bound_used([sloping(3.0), sloping(3.0)], 0 * bias, x) == 0


def test_two_fits_differ_by_their_start_only():
    x = overlap.documents(seed=0, queries=10, features=1, gap=-0.5)
    chance = np.full(x.shape[:2], 0.4)
    one, other = overlap.fits(x, chance, starts=2, steps=20, width=2, seed=0)
    assert not np.allclose(one.position_bias, other.position_bias)
    again, _ = overlap.fits(x, chance, starts=2, steps=20, width=2, seed=0)
    np.testing.assert_array_equal(one.position_bias, again.position_bias)


# Clipping.


def test_the_published_variant_is_the_published_relevance(inputs):
    features = read_rankings(inputs.train).first(40).features
    ours = clipping.simulated(features, seed=3, padding=20)
    theirs = relevance(
        "linear", np.zeros(len(features)), features, seed=3, split="train", padding=20
    )
    np.testing.assert_array_equal(ours, theirs)


def test_padding_is_the_lists_own_or_a_share_of_all_places():
    lengths = np.array([10, 7, 12])
    assert clipping.paddings(lengths, 10) == 3
    assert clipping.paddings(lengths, 10, padding=0.0) == 0
    assert clipping.paddings(np.array([96]), 10, padding=0.04) == 4


@pytest.mark.parametrize("noisy", [True, False])
def test_clipping_changes_the_extremes_only(noisy, inputs):
    features = read_rankings(inputs.train).first(40).features
    clipped, free = (
        clipping.simulated(features, seed=3, clipped=clipped, noisy=noisy)
        for clipped in (True, False)
    )
    np.testing.assert_allclose(clipped, np.clip(free, 0, 4), atol=1e-5)
    assert (free < 0).mean() == pytest.approx(0.05, abs=0.01)
    assert (free > 4).mean() == pytest.approx(0.05, abs=0.01)


def test_a_linear_truth_is_recovered_under_every_policy(small):
    bias = select(small, setting="clipping", variant="without either", metric="position_bias")
    assert len(bias) == 2 * 2 * 4 * POSITIONS
    np.testing.assert_allclose(bias["value"], -np.log(bias["position"].astype(float)), atol=1e-5)


def test_at_temperature_1_strength_does_not_matter(small):
    rows = select(small, setting="clipping", temperature=1)
    one, other = (select(rows, strength=s).reset_index(drop=True) for s in (-1, 1))
    np.testing.assert_allclose(one["value"], other["value"], atol=1e-9)


# Appendix A.


def test_regimes_connect_what_they_say():
    count = {"connected": 1, "content isolated": 3, appendix_a.ISOLATED: 6, appendix_a.BRIDGED: 1}
    count |= {appendix_a.OVERLAPPING: 6, appendix_a.TELLING: 6}
    assert set(count) == set(appendix_a.REGIMES)
    for name, expected in count.items():
        result = appendix_a.regime(name, seed=0, documents=300, views=10, impressions=1000)
        assert select(result, metric="components")["value"].item() == expected
        component = select(result, metric="component")
        assert component["value"].nunique() == expected
        assert list(component["position"]) == list(range(1, 31))


def test_a_constant_per_component_is_no_error_within():
    component = np.array([0, 0, 1, 1])
    assert appendix_a.within(np.array([1.0, 1.0, -2.0, -2.0]), component) == 0
    assert appendix_a.within(np.array([1.0, 1.2, -2.0, -2.0]), component) == pytest.approx(0.1)


item = partial(drawing, "hager2025")


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("seeds", [(1, 2), (1,)])
def test_items_are_drawn_from_studies(name, seeds, small):
    results = select(small, setting=ITEMS[name], seed=seeds)
    table = item(name).table(results, BANDS)
    assert list(table.columns)[-5:] == [*BAND, "source"]
    assert not table.duplicated([*table.columns[:-5], "source"]).any()
    figure = item(name).draw(table)
    assert all(panel.get_lines() for panel in figure.axes)


def test_fig7_draws_differences_within_seeds():
    noise, theirs = np.random.default_rng(0), published.results("hager2025")
    by_seed = (
        theirs.assign(
            seed=seed, value=theirs["value"] + noise.normal(scale=0.001, size=len(theirs))
        )
        for seed in (2021, 2022, 2023)
    )
    results = pd.concat(by_seed, ignore_index=True)
    levels = results.assign(value=results["value"] + 0.1 * (results["seed"] - 2022))
    tables = [item("fig7").table(frame, BANDS) for frame in (results, levels)]
    pd.testing.assert_frame_equal(*tables)
