"""Bias features of pages: what a tower of examination reads beside the position (Listing 5.4)."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flax import nnx
from scipy.special import expit

from tests.training import short
from twotowers.errors import InputError
from twotowers.experiment.fields import read
from twotowers.experiment.settings import Setting
from twotowers.jobs.fit import fit_lanes, fit_setting
from twotowers.logs.page_arrays import read_page_arrays
from twotowers.logs.sessions import write_sessions
from twotowers.models.dependent_click import DependentClick
from twotowers.models.position_based import PositionBased
from twotowers.towers.embedding import EmbeddingTower
from twotowers.towers.linear import LinearTower
from twotowers.towers.page_towers import PageTowers

K, QUERIES, LARGE = 3, 20, 1.5
ATTRACTION = np.random.default_rng(4).uniform(0.2, 0.9, (QUERIES, K))
PLACES = np.array([1.0, -0.5, -1.5])
LOG = {
    "name": "log",
    "from": "dataset",
    "dataset": "yandex",
    "positions": K,
    "split": {"train": 0.7, "validation": 0.15, "test": 0.15},
}


def truth(query, document, large):
    """P(click) of the simulated user."""
    return ATTRACTION[query, document] * expit(PLACES + LARGE * large)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Pages of position-based users. They examine large documents more, by LARGE in log-odds."""
    rng, pages = np.random.default_rng(3), 12_000
    query = rng.integers(QUERIES, size=pages)
    order = rng.permuted(np.tile(np.arange(K), (pages, 1)), axis=1)
    large = rng.random((pages, K)) < 0.4
    clicks = rng.random((pages, K)) < truth(query[:, None], order, large)
    path = tmp_path_factory.mktemp("log") / "pages.parquet"
    columns = {
        "split": ["log"] * pages,
        "query": query,
        "documents": (query[:, None] * K + order).tolist(),
        "clicks": clicks.tolist(),
        "large": large.astype(float).tolist(),
        "word": [["a"] * K] * pages,
    }
    write_sessions(path, [pa.table(columns)])
    return path


def setting(bias=("large",), model="position_based", examination="linear", **more) -> Setting:
    return read(
        Setting,
        {
            "name": "fit",
            "log": {"record": "sessions", **LOG, "bias": list(bias)},
            "model": {"kind": model, "tower": "embedding", "examination": examination},
            "method": "likelihood",
            "training": short(learning_rate=0.03, epochs=12, batch=256),
            **more,
        },
    )


def test_the_effect_of_a_bias_feature_is_found(log):
    task, [found] = fit_lanes({"log": log}, setting(), seed=1)
    test = task.splits["test"]
    assert found.values["effect_on_examination_1"] == pytest.approx(LARGE, abs=0.2)
    alone, given = found.page_losses(test)
    assert alone == pytest.approx(given)  # Clicks of the position-based model are independent.
    _, [without] = fit_lanes({"log": log}, setting(bias=()), seed=1)
    plain, _ = without.page_losses(test)
    [pages] = test.sessions
    ids = read_page_arrays(log, positions=K).ids.to_pandas().loc[test.pair[pages.query].ravel()]
    query, document = (ids[name].to_numpy().reshape(-1, K) for name in ("query", "document"))
    chance = truth(query, document - query * K, pages.bias[..., 0])
    best = -np.log(np.where(pages.clicks, chance, 1 - chance)).mean()
    assert alone.mean() == pytest.approx(best, abs=0.003)
    assert plain.mean() > best + 0.015


@pytest.mark.parametrize("part", ["examination", "continuation"])
def test_every_part_per_position_reads_the_position_and_what_is_there(part):
    model = {"examination": PositionBased(), "continuation": DependentClick()}[part]
    more = {"of_places": LinearTower, "bias": ([1, 2], [3, 4]), "rngs": nnx.Rngs(0)}
    towers = PageTowers(model, EmbeddingTower, 4, K, **more)
    assert list(towers.places) == [part]
    assert not len(towers.tables)
    bias = np.random.default_rng(0).normal(size=(2, K, 2)).astype(np.float32)
    documents = np.array([[0, 1, 2], [3, 2, 0]])
    found = towers.chances(np.tile(np.arange(4), (2, 1)), documents, bias=bias)[part]
    tower = towers.places[part]
    for page, place in np.ndindex(2, K):
        read = np.concatenate([np.eye(K)[place], (bias[page, place] - [1, 2]) / [3, 4]])
        assert found.logits[page, place] == pytest.approx(float(tower(read)), abs=1e-6)
    weights = tower.layer.kernel[K:, 0]
    effects = towers.effects(bias, np.array([[True, True, False]] * 2))[part]
    assert effects == pytest.approx(weights / np.array([3, 4]))


def test_the_unit_of_a_bias_feature_changes_no_prediction(log, tmp_path):
    table = pq.read_table(log)
    at = table.schema.get_field_index("large")
    pixels = [[f"{300 + 500 * each:g}" for each in page] for page in table["large"].to_pylist()]
    write_sessions(tmp_path / "log.parquet", [table.set_column(at, "large", pa.array(pixels))])
    [[_, [one]], [_, [other]]] = (
        fit_lanes({"log": path}, setting(), seed=1) for path in (log, tmp_path / "log.parquet")
    )
    effects = [fitted.values["effect_on_examination_1"] for fitted in (one, other)]
    assert effects[1] == pytest.approx(effects[0] / 500, rel=1e-2)
    losses = [fitted.values["validation_loss"] for fitted in (one, other)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)


def test_a_model_of_positions_alone_reads_them(log):
    losses = []
    for bias in ([], ["large"]):
        rows = fit_setting({"log": log}, setting(bias=bias, model="rank_rate"), seed=1)
        losses.append(rows.set_index("metric").at["held_out_loss", "value"])
    assert losses[1] < losses[0] - 0.015


def test_what_reads_none_is_refused(log):
    with pytest.raises(InputError, match="examination: 'table' reads no bias features"):
        setting(examination="table")
    with pytest.raises(InputError, match="method: method 'em' reads no bias features"):
        setting(method="em")
    cells = {"record": "cells", **LOG, "bias": ["large"]}
    with pytest.raises(InputError, match="a log with bias features"):
        read(Setting, {"name": "fit", "log": cells})
    with pytest.raises(InputError, match="model: 'user_browsing' has no part per position"):
        setting(model="user_browsing")
    with pytest.raises(InputError, match="reads no bias features"):
        setting(examination={"kind": "linear", "dropout": 0.1})


@pytest.mark.parametrize(
    ("name", "message"),
    [("width", "width: the column is missing"), ("word", "word: row 1: 'a' was found .*number")],
)
def test_a_bias_feature_is_a_column_of_numbers(log, name, message):
    with pytest.raises(InputError, match=message):
        read_page_arrays(log, positions=K, bias=[name])


def test_a_bias_feature_has_no_gaps(tmp_path):
    page = {
        "split": ["log"] * 2,
        "query": [1, 1],
        "documents": [[1, 2]] * 2,
        "clicks": [[0, 1]] * 2,
    }
    day = dt.datetime(2026, 1, 1)
    for heights, message in (
        ([[1, 2], [1.0, np.inf]], "height: row 2: inf was found"),
        ([[1.0, 1e300], [1, 2]], r"height: row 1: 1e\+300 was found"),
        ([[day, day]] * 2, "height: row 1: datetime"),
    ):
        write_sessions(tmp_path / "log.parquet", [pa.table(page | {"height": heights})])
        with pytest.raises(InputError, match=message):
            read_page_arrays(tmp_path / "log.parquet", positions=2, bias=["height"])


def test_a_bias_feature_that_never_varies_tells_nothing(log, tmp_path):
    table = pq.read_table(log)
    at = table.schema.get_field_index("large")
    same = pa.array([[2] * K] * len(table))
    write_sessions(tmp_path / "log.parquet", [table.set_column(at, "large", same)])
    with pytest.raises(InputError, match="large: 2 on every training page"):
        fit_setting({"log": tmp_path / "log.parquet"}, setting(), seed=1)


def test_pages_that_are_cut_keep_what_belongs_to_their_documents(tmp_path):
    pages = {
        "split": ["log"] * 2,
        "query": [1, 2],
        "documents": [[1, 2, 3], [4]],
        "clicks": [[0, 1, 0], [1]],
        "height": [[1, 2, 3], [4]],
    }
    write_sessions(tmp_path / "log.parquet", [pa.table(pages)])
    found = read_page_arrays(tmp_path / "log.parquet", positions=2, cut=True, bias=["height"])
    assert found.bias[..., 0].tolist() == [[1, 2], [4, 0]]
