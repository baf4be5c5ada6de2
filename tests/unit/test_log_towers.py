"""Two towers on a click log: they find the truth of simulated users, predict, and are saved."""

from dataclasses import replace

import numpy as np
import optax
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import spearmanr

import twotowers as tt
from tests.simulated_logs import rows_of
from twotowers.commands.main import main

PAGES, QUERIES, DOCUMENTS, POSITIONS = 6_000, 50, 12, 5
EXAMINED = 1 / np.arange(1, POSITIONS + 1)


@pytest.fixture(scope="module")
def users() -> dict:
    """Clicks of position-based users: relevance is linear in two of three features."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(QUERIES * DOCUMENTS, 3))
    relevance = expit(features @ [1.0, -1.5, 0.0] - 0.5)
    query = rng.integers(QUERIES, size=PAGES)
    noisy = rng.random((PAGES, DOCUMENTS)) - relevance.reshape(QUERIES, -1)[query]
    pair = query[:, None] * DOCUMENTS + np.argsort(noisy, axis=1)[:, :POSITIONS]
    click = rng.random(pair.shape) < EXAMINED * relevance[pair]
    names = np.array([f"d{each}" for each in range(len(features))], object)
    log = rows_of(query, names[pair], click).rename(columns={"clicks": "click"})
    table = pd.DataFrame(features * [1, 100, 0.01] + 5, columns=["one", "two", "three"])
    return {"log": log, "features": table.assign(document=names), "relevance": relevance}


@pytest.fixture(scope="module")
def fitted(users):
    model = tt.TwoTower("linear", click_model="pbm")
    return tt.fit(users["log"], model, features=users["features"], seeds=[0, 1])


def test_finds_relevance_and_bias(users, fitted):
    assert _agreement(fitted, users) > 0.98
    assert (fitted.gains[["constant", "ranks"]] > 0).all(axis=None)
    predicted, drawn = fitted.predict(users["log"]), fitted.sample(users["log"], seed=4)
    assert (drawn["document"] == predicted["document"]).all()
    several = drawn.groupby("position")["click"].agg(["mean", "size"])
    chance = predicted.groupby("position")["probability"].mean()
    error = np.sqrt(chance * (1 - chance) / several["size"])
    assert (np.abs(several["mean"] - chance) < 4 * error).all()
    bias = fitted.examination().groupby("position")["estimate"].mean()
    np.testing.assert_allclose(np.exp(bias), EXAMINED, rtol=0.15)


def test_counted_and_read_by_pages_alike(users, fitted):
    """The loss of held-out clicks is the same for counts as for the pages behind them."""
    found = fitted.predict(users["log"])
    click = found["click"].to_numpy(bool)
    chance = np.where(click, found["probability"], 1 - found["probability"])
    assert np.log(chance).mean() == pytest.approx(
        fitted.evaluate(users["log"])["log_likelihood"].mean(), abs=1e-3
    )
    assert found["probability"].mean() == pytest.approx(click.mean(), rel=0.03)
    cells = users["log"].assign(impressions=1).rename(columns={"click": "clicks"})
    counted = cells.groupby(["query", "document", "position"], as_index=False).sum()
    model = tt.TwoTower("linear", click_model="pbm")
    again = tt.fit(counted.drop(columns="session"), model, features=users["features"])
    pd.testing.assert_frame_equal(again.relevance(), _first(fitted).relevance())


def _agreement(fitted, users):
    """Rank correlation of scores with the truth, documents that were never shown included."""
    scores = fitted.relevance(users["features"]).set_index("document")["score"]
    return spearmanr(scores.loc[users["features"]["document"]], users["relevance"]).statistic


def _first(fitted):
    return replace(fitted, seeds=fitted.seeds[:1], fitted=fitted.fitted[:1])


def test_saved_and_loaded(users, fitted, tmp_path):
    fitted.save(tmp_path / "towers.parquet")
    again = tt.load(tmp_path / "towers.parquet")
    some = users["log"].head(100)
    with pytest.raises(tt.InputError, match="a loaded fit holds none"):
        again.predict(some)
    pd.testing.assert_frame_equal(
        again.predict(some, users["features"]), fitted.predict(some), check_exact=True
    )
    pd.testing.assert_frame_equal(again.examination(), fitted.examination())


def test_a_parameter_per_pair_needs_no_features(users, tmp_path):
    log = users["log"].head(500 * POSITIONS)
    found = tt.fit(log, tt.TwoTower("embedding", click_model="pbm"), training={"epochs": 3})
    found.save(tmp_path / "pairs.parquet")
    some = log.head(50)
    pd.testing.assert_frame_equal(
        tt.load(tmp_path / "pairs.parquet").predict(some), found.predict(some)
    )
    unknown = some.assign(document="none")
    with pytest.raises(tt.InputError, match="none of the fit's"):
        found.predict(unknown)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": None}, "'linear' reads features"),
        ({"features": "some"}, "have none, such as document 'd"),
        ({"features": "twice"}, "row 601: a document that came before"),
        ({"seeds": []}, "expected a list of seeds"),
        ({"positions": 2}, "expected .*5"),
        ({"training": {"learning_rate": [0.1, 0.2]}}, "learning_rate have several values"),
        ({"method": "softmax", "training": {"epoch": 1}}, "epoch"),
        ({"iterations": 3}, "iterations"),
    ],
)
def test_refused(users, change, message):
    table = users["features"]
    tables = {"some": table.head(40), "twice": pd.concat([table, table.tail(1)])}
    given = {"features": table} | change
    if isinstance(given["features"], str):
        given["features"] = tables[given["features"]]
    with pytest.raises(tt.InputError, match=message):
        tt.fit(users["log"], tt.TwoTower("linear", click_model="pbm"), **given)


def test_an_optimiser_by_name_and_as_a_function_are_one(users, tmp_path):
    model, clipped = tt.TwoTower("linear", click_model="pbm"), optax.clip(1e9)
    by_name = {"optimizer": "adam", "epochs": 2}
    as_function = by_name | {"optimizer": lambda rate: optax.chain(clipped, optax.adam(rate))}
    given = {"features": users["features"]}
    one, other = (
        tt.fit(users["log"], model, training=each, **given) for each in (by_name, as_function)
    )
    pd.testing.assert_frame_equal(one.relevance(), other.relevance())
    with pytest.raises(tt.InputError, match="an optimiser by its name"):
        tt.fit(users["log"], model, training=as_function, checkpoint=tmp_path / "kept", **given)


def test_other_methods_see_pages(users):
    how = {"features": users["features"], "training": {"epochs": 3}}
    found = tt.fit(users["log"], tt.TwoTower("linear"), method="softmax", **how)
    assert _agreement(found, users) > 0.5
    assert "predicts no clicks" in str(found)
    with pytest.raises(tt.InputError, match="predicts no clicks"):
        found.predict(users["log"].head(10))


def test_gaps_are_closed_for_models_without_gaps_and_the_log_is_not_replaced(users, tmp_path):
    log = users["log"].head(500 * POSITIONS)
    gone = (log["position"] == 2) & (log["session"] % 3 == 0)
    log[~gone].to_parquet(tmp_path / "log.parquet")
    how = {"features": users["features"], "training": {"epochs": 1}}
    fitted = tt.fit(tmp_path / "log.parquet", tt.TwoTower("linear", click_model="dbn"), **how)
    places = fitted.predict(tmp_path / "log.parquet").groupby("page")["position"]
    assert (places.max() == places.count()).all()
    with pytest.raises(tt.InputError, match="log"):
        fitted.save(tmp_path / "log.parquet")
    assert len(pd.read_parquet(tmp_path / "log.parquet")) == (~gone).sum()


def test_what_needs_a_click_model_says_so(users, fitted, tmp_path, capsys):
    log, saved = (str(tmp_path / name) for name in ("log.csv", "towers.parquet"))
    users["log"].head(500).to_csv(log, index=False)
    fitted.save(saved)
    assert main(["compare", log, "--fitted", saved]) == 2
    said = capsys.readouterr().err
    assert saved in said
    assert "it has towers (expected a fit of a click model)" in said
