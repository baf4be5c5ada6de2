"""Hager et al. (2025): the studies at small sizes, claims 11 to 14 on them, and their items."""

import importlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from papers.hager2025 import published
from papers.hager2025.claims import CLAIMS
from papers.hager2025.judges.studies import ISOLATED
from papers.hager2025.population import first_queries
from papers.hager2025.stopping import FITS as STOPPING
from papers.hager2025.stopping import named
from papers.hager2025.studies import appendix_a, clipping, lemmas
from twotowers import ROOT
from twotowers.files.rankings import Rankings, write_rankings
from twotowers.models.relevance import relevance
from twotowers.report.figures import save
from twotowers.results.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED, judge
from twotowers.results.longform import read_results, write_results
from twotowers.results.statistics import BAND, select
from twotowers.running.experiments import load_experiment

JUDGED = {claim.id: claim for claim in CLAIMS if int(claim.id.rstrip("abc")) > 10}
BANDS = published.bands()
ITEMS = {
    "appendixA": "appendix_a",
    "lemmas": "lemmas",
    "clipping": "clipping",
}
POSITIONS = 10
PARAMETERS = {
    "lemmas": {"queries": 40, "positions": POSITIONS, "temperatures": [0.333, 0.666, 1]},
    "appendix_a": {"documents": 300, "views": 10, "impressions": 5000},
    "clipping": {
        "queries": 40,
        "positions": POSITIONS,
        "strengths": [-1, 1],
        "temperatures": [0, 0.333, 0.666, 1],
    },
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """40 queries of 8 to 10 documents; labels that features predict in part."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(8, POSITIONS + 1, 40)
    rows = lengths.sum()
    features = rng.normal(size=(rows, 6)).astype(np.float32)
    label = np.clip(np.round(1.5 + features[:, 0] + rng.normal(size=rows)), 0, 4)
    path = tmp_path_factory.mktemp("rankings") / "train.parquet"
    lists = Rankings(
        np.repeat(np.arange(40), lengths),
        np.concatenate([np.arange(n) for n in lengths]).astype(np.int32),
        label.astype(np.float32),
        features,
    )
    write_rankings(lists, path)
    return SimpleNamespace(train=path)


@pytest.fixture(scope="module")
def loud(inputs, tmp_path_factory):
    """The same with larger features, so that noise is as small in their sum as in the real set."""
    lists = first_queries(inputs.train, 40)
    path = tmp_path_factory.mktemp("rankings") / "train.parquet"
    write_rankings(replace(lists, features=lists.features * 10), path)
    return SimpleNamespace(train=path)


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


def as_found() -> pd.DataFrame:
    """The settings behind claim 13 as they are at full size: errors that grow with ln k."""
    errors = {
        "early stopping, start default": 0.2,
        "early stopping, start zero": 0.3,
        "early stopping, start truth": 0.03,
        "no early stopping, start default": 0.02,
        "optimum": -0.09,
    }
    grown = {26.0: -0.08, 104.0: -0.02, 416.0: 0.0}
    rows = [(STOPPING[name], error) for name, error in errors.items()]
    rows += [
        ({"setting": "optimum-grown", "sessions": sessions}, error)
        for sessions, error in grown.items()
    ]
    position = np.arange(1, 26)
    frames = [
        pd.DataFrame({"position": position, "value": -np.log(position) * (1 - error / np.log(10))})
        .assign(**where, strength=strength, seed=seed)
        for where, error in rows
        for strength in (-1.0, 0.0)
        for seed in (1, 2)
    ]  # fmt: skip
    bias = pd.concat(frames, ignore_index=True)
    return bias.assign(metric="position_bias", temperature=0.333, method="likelihood")


@pytest.fixture(scope="module")
def judged(small) -> pd.DataFrame:
    """Results on which every claim holds."""
    return pd.concat([small, as_found()], ignore_index=True)


def raised(rows: pd.DataFrame, amount: float) -> pd.Series:
    return rows["value"] + amount * (rows["position"] > 1).astype(float)


def to(rows: pd.DataFrame, amount: float) -> float:
    return amount


AT_RANDOM = {"method": "well-specified", "metric": "position_bias", "temperature": 1}
LEMMAS, APPENDIX = {"setting": "lemmas"}, {"setting": "appendix_a"}
CLIPPING = {"setting": "clipping"}
FITS = {"metric": "position_bias", "strength": 0}
STOPPED = {**FITS, "setting": "stopped-early", "start": "random"}

MUTATIONS = [
    ("11a", to, 1e-4, {**LEMMAS, "method": "well-specified", "metric": "largest_cell"}),
    ("11b", to, 1e-4, {**LEMMAS, "method": "misspecified", "metric": "largest_position_mean"}),
    ("11b", to, 1e-4, {**LEMMAS, "method": "misspecified", "metric": "mean_cell"}),
    ("11c", raised, 0.01, {**LEMMAS, **AT_RANDOM}),
    ("11c", to, -2.0, {**LEMMAS, "method": "misspecified", "metric": "position_bias"}),
    ("12a", to, 2, {**APPENDIX, "method": "connected", "metric": "components"}),
    ("12a", to, 0.1, {**APPENDIX, "method": "connected", "metric": "largest_error"}),
    ("12b", to, 1, {**APPENDIX, "method": ISOLATED, "metric": "components"}),
    ("12b", to, 0.1, {**APPENDIX, "method": "content isolated", "metric": "largest_error"}),
    ("12b", to, 0.1, {**APPENDIX, "method": ISOLATED, "metric": "largest_error_within_component"}),
    ("12c", to, 0.1, {**APPENDIX, "method": "connected", "metric": "largest_effect_of_start"}),
    ("12c", to, 0, {**APPENDIX, "method": ISOLATED, "metric": "largest_effect_of_start"}),
    ("12c", to, 1, {**APPENDIX, "metric": "components"}),
    ("13", raised, -0.15, STOPPED),
    ("13", raised, 0.25, {**FITS, "setting": "optimum"}),
    ("13", raised, 0.12, {**FITS, "setting": "stopped-early", "start": "truth"}),
    ("13", raised, 0.12, {**FITS, "setting": "stopped-late"}),
    ("13", raised, -0.2, {**FITS, "setting": "optimum-grown", "sessions": 416}),
    ("14", to, -2.0, {**CLIPPING, "method": "as published"}),
    ("14", to, -2.0, {**CLIPPING, "method": "without noise"}),
    ("14", raised, 0.02, {**CLIPPING, "method": "without clipping", "temperature": 0}),
    ("14", raised, 0.02, {**CLIPPING, "method": "without either", "strength": -1}),
]


def altered(results: pd.DataFrame, change, **where) -> pd.DataFrame:
    rows = select(results, **where)
    assert len(rows), where
    results = results.copy()
    results.loc[rows.index, "value"] = change(rows)
    return results


@pytest.mark.parametrize("name", JUDGED)
def test_claims_hold(name, judged):
    judgement = judge(JUDGED[name], judged)
    assert judgement.verdict == REPRODUCED, judgement
    assert judgement.measured


@pytest.mark.parametrize(("name", "change", "value", "where"), MUTATIONS)
def test_every_judge_can_fail(name, change, value, where, judged):
    judgement = judge(JUDGED[name], altered(judged, partial(change, amount=value), **where))
    assert judgement.verdict == NOT_REPRODUCED
    assert judgement.reason.startswith("fails: ")


def test_every_condition_of_every_claim_has_a_mutation(judged):
    reasons = dict.fromkeys(JUDGED, "")
    for name, change, value, where in MUTATIONS:
        changed = altered(judged, partial(change, amount=value), **where)
        reasons[name] += judge(JUDGED[name], changed).reason
    for name, claim in JUDGED.items():
        assert [c.words for c in claim.conditions if c.words not in reasons[name]] == [], name


@pytest.mark.parametrize("name", JUDGED)
def test_a_judge_without_its_data_says_so(name):
    assert judge(JUDGED[name], published.results()).verdict == NOT_TESTABLE


# Lemmas.


def test_the_policy_is_a_distribution_over_ranks_and_documents(inputs):
    lists = first_queries(inputs.train, 40)
    exposure, chance = lemmas.population(lists, "annotated", 0.333, POSITIONS, seed=1)
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
    bias = select(small, setting="lemmas", method="well-specified", metric="position_bias")
    np.testing.assert_allclose(bias["value"], -np.log(bias["position"].astype(float)), atol=1e-6)


# Clipping.


def test_the_published_variant_is_the_published_relevance(inputs):
    features = first_queries(inputs.train, 40).features
    ours = clipping.simulated(features, seed=3, clipped=True, noisy=True)
    theirs = relevance("linear", np.zeros(len(features)), features, seed=3, split="train")
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("noisy", [True, False])
def test_clipping_changes_the_extremes_only(noisy, inputs):
    features = first_queries(inputs.train, 40).features
    clipped, free = (
        clipping.simulated(features, seed=3, clipped=clipped, noisy=noisy)
        for clipped in (True, False)
    )
    np.testing.assert_allclose(clipped, np.clip(free, 0, 4), atol=1e-5)
    assert (free < 0).mean() == pytest.approx(0.05, abs=0.01)
    assert (free > 4).mean() == pytest.approx(0.05, abs=0.01)


def test_a_linear_truth_is_recovered_under_every_policy(small):
    bias = select(small, setting="clipping", method="without either")
    assert len(bias) == 2 * 2 * 4 * POSITIONS
    np.testing.assert_allclose(bias["value"], -np.log(bias["position"].astype(float)), atol=1e-5)


def test_strengths_turn_the_ranking_upside_down(inputs):
    lists = first_queries(inputs.train, 40)
    score = clipping.simulated(lists.features, seed=3, clipped=False, noisy=False)
    best, worst = (clipping.policy(lists, score, s, 0, POSITIONS, seed=3) for s in (1, -1))
    for start, stop in zip(lists.offsets, lists.offsets[1:], strict=False):
        assert best[start:stop, 0].argmax() == score[start:stop].argmax()
        np.testing.assert_array_equal(
            best[start:stop, : stop - start], worst[start:stop, : stop - start][:, ::-1]
        )


def test_at_temperature_1_strength_does_not_matter(small):
    rows = select(small, setting="clipping", temperature=1)
    one, other = (select(rows, strength=s).reset_index(drop=True) for s in (-1, 1))
    np.testing.assert_allclose(one["value"], other["value"], atol=1e-9)


# Appendix A.


def test_regimes_connect_what_they_say():
    count = {"connected": 1, "content isolated": 3, appendix_a.ISOLATED: 6, appendix_a.BRIDGED: 1}
    assert set(count) == set(appendix_a.REGIMES)
    for name, expected in count.items():
        result = appendix_a.regime(name, seed=0, documents=300, views=10, impressions=1000)
        assert select(result, metric="components")["value"].item() == expected
        component = select(result, metric="component")
        assert component["value"].nunique() == expected
        assert list(component["position"]) == list(range(1, 31))


def test_components_are_the_shared_content_and_device():
    result = appendix_a.regime(appendix_a.ISOLATED, seed=0, documents=300, views=10, impressions=10)
    component = select(result, metric="component")["value"].to_numpy()
    kinds = [kind for _, *kind in appendix_a.CONFIGURATIONS]
    for a, b in ((0, 6), (0, 1), (5, 29), (2, 4)):
        assert (component[a] == component[b]) == (kinds[a] == kinds[b])


def test_a_constant_per_component_is_no_error_within():
    component = np.array([0, 0, 1, 1])
    assert appendix_a.within(np.array([1.0, 1.0, -2.0, -2.0]), component) == 0
    assert appendix_a.within(np.array([1.0, 1.2, -2.0, -2.0]), component) == pytest.approx(0.1)


def test_two_fits_of_isolated_configurations_differ_between_components_only():
    rng = np.random.default_rng(0)
    exposure = np.kron(np.eye(2), np.full((20, 2), 1000.0))
    clicks = rng.binomial(1000, 0.4, exposure.shape) * (exposure > 0)
    one, two = (
        appendix_a.fit_embedding(exposure, clicks, start=start).bias
        for start in (np.zeros(4), np.array([0.0, 0.0, 1.0, 1.0]))
    )
    np.testing.assert_allclose(np.diff(one)[[0, 2]], np.diff(two)[[0, 2]], atol=1e-6)
    assert abs((two - one)[2] - (two - one)[0]) > 0.5


# Early stopping, initialisation, too few sessions.


def test_fits_are_named_by_how_they_were_fitted():
    rows = named(as_found())
    assert set(rows["method"]) == set(STOPPING)
    optima = select(rows, method="optimum")
    assert sorted(optima["sessions_factor"].unique()) == [1, 4, 16]
    # The smallest of the grown logs is not the log that the other fits share.
    assert select(optima, sessions_factor=1)["setting"].eq("optimum").all()
    assert select(rows, method=list(STOPPING)[:4])["sessions_factor"].eq(1).all()


# Items.


def item(name: str):
    return importlib.import_module(f"papers.hager2025.items.{name}")


@pytest.mark.parametrize("name", [*ITEMS, "embedding"])
@pytest.mark.parametrize("seeds", [(1, 2), (1,)])
def test_items_are_drawn_from_studies_and_settings(name, seeds, judged, tmp_path):
    mine = judged["setting"].eq(ITEMS[name]) if name in ITEMS else judged["temperature"].eq(0.333)
    results = judged[mine & judged["seed"].isin(seeds)]
    table = item(name).table(results, BANDS)
    assert list(table.columns)[-5:] == [*BAND, "source"]
    assert not table.duplicated([*table.columns[:-5], "source"]).any()
    figure = item(name).draw(table)
    assert all(panel.get_lines() for panel in figure.axes)
    save(figure, [tmp_path / "figure.svg"])
    assert (tmp_path / "figure.svg").stat().st_size > 1000


def test_appendix_a_shows_one_seed_and_sums_up_all(small):
    table = item("appendixA").table(small, BANDS)
    points = select(table, metric=["truth", "estimate", "component"])
    assert points["n"].eq(1).all()
    assert len(points) == len(appendix_a.REGIMES) * 30 * 3
    sums = table.drop(points.index)
    assert sums["n"].eq(2).all()
    assert len(sums) == len(appendix_a.REGIMES) * 4


def test_the_embedding_item_compares_errors_with_the_published():
    table = item("embedding").table(as_found(), BANDS)
    theirs = select(table, source="published")
    assert set(theirs["method"]) == {"early stopping, start default"}
    at_10 = select(theirs, position=10).set_index("strength")["value"]
    assert at_10[-1] == pytest.approx(-2.0484 + np.log(10), abs=1e-4)
    assert at_10[0] == pytest.approx(-2.0717 + np.log(10), abs=1e-4)
    assert select(table, position=1)["value"].eq(0).all()


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_every_item_and_study_is_declared_and_there(scale):
    config = yaml.safe_load((ROOT / "config.yaml").read_text()) | {"scale": scale}
    experiment = load_experiment("hager2025", config)
    folder = Path(ROOT, "papers/hager2025")
    assert {path.stem for path in (folder / "items").glob("*.py")} == set(experiment.items)
    assert {path.stem for path in (folder / "studies").glob("*.py")} == set(experiment.studies)
    assert set(PARAMETERS) == set(experiment.studies)
    for name, parameters in experiment.studies.items():
        assert parameters.keys() - {"dataset"} == PARAMETERS[name].keys()
    assert {claim.item for claim in CLAIMS} <= set(experiment.items)
    for entry in experiment.items.values():
        assert "TODO" not in entry["caption"] + entry["expected"]
