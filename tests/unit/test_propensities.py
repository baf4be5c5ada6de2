"""`tt.propensities` and `twotowers propensities`: curves from raw logs, and their weak places."""

import numpy as np
import pandas as pd
import pytest

import twotowers as tt
from twotowers.analysis.propensities import AUTOMATIC, ESTIMATORS, SEQUENTIAL, WITHOUT_GRAPH
from twotowers.commands.main import main
from twotowers.fits import defaults

EXAMINATION = np.array([1, 0.6, 0.3])


def cells(pairs: int, *, apart: bool = False, ordered: bool = False, seed: int = 0) -> pd.DataFrame:
    """Documents shown 200 times at each of their places; their attraction is uniform."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(pairs):
        attraction = rng.uniform(0.1, 0.9)
        places = {0: [0, 1], 1: [1, 2], 2: [0, 2]}[number % 3]
        if apart:
            places = [[0, 1], [2]][number % 2]
        if ordered:
            places = [number % 3]
        for k in places:
            clicks = rng.binomial(200, attraction * EXAMINATION[k])
            rows.append((number // 2, number, k + 1, 200, clicks))
    columns = ["query", "document", "position", "impressions", "clicks"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name != "odds"])
def test_the_curve_is_found_whatever_the_estimator(estimator):
    found = tt.propensities(cells(300), estimator=estimator).frame()
    np.testing.assert_allclose(found["estimate"], EXAMINATION, rtol=0.06)
    away = np.abs(np.log(found["estimate"] / EXAMINATION))[1:] / found["error"][1:]
    assert (away < 4).all()  # coverage itself is measured by benchmarks/validate/coverage.py
    assert found.loc[0, ["estimate", "low", "high", "error"]].tolist() == [1, 1, 1, 0]


def test_the_reference_is_the_most_shown_factor_of_the_first_position():
    log = pd.concat([cells(60).assign(device=name) for name in ("phone", "web")])
    log.loc[log["device"] == "web", "impressions"] *= 2
    found = tt.propensities(log, bias=["position", "device"])
    assert found.frame().iloc[found.curve.reference][["position", "device"]].tolist() == [1, "web"]
    assert len(found.frame()) == 6


def test_one_page_that_links_two_halves_is_named_as_a_bridge():
    log = cells(60, apart=True)
    bridge = pd.DataFrame({"query": 99, "document": 99, "position": [1, 3], "impressions": [1, 1],
                           "clicks": [1, 1]})  # fmt: skip
    found = tt.propensities(pd.concat([log, bridge]))
    assert found.frame().loc[2, "reason"].startswith("doubtful")
    weakest = found.strength.links.iloc[0]
    assert weakest[["one", "other", "share"]].tolist() == pytest.approx([0, 2, 1])
    assert weakest["error"] == pytest.approx(found.strength.between, rel=0.01)
    assert found.strength.halves.tolist() == [0, 0, 1]
    assert "nothing else ties the two" in str(found)
    assert found.frame().loc[2, "high"] / found.frame().loc[2, "low"] > 1000


def test_a_fixed_order_tells_nothing():
    found = tt.propensities(cells(30, ordered=True))
    assert found.frame()["estimate"].isna().tolist() == [False, True, True]
    assert "no amount of such logs gives the others an estimate" in str(found)
    assert found.swaps(pages=100, steps=2)["joins"].tolist() == [True, True]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_curve_is_written(tmp_path, capsys, ending):
    log, out = tmp_path / "cells.csv", tmp_path / f"curve.{ending}"
    cells(60).to_csv(log, index=False)
    assert main(["propensities", str(log), "--out", str(out), "--swaps", "1000"]) == 0
    written = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    expected = tt.propensities(log).frame()
    np.testing.assert_allclose(written["estimate"], expected["estimate"], rtol=1e-5)
    assert "swaps to run, on 1,000 pages each way" in capsys.readouterr().out


@pytest.mark.parametrize("estimator", WITHOUT_GRAPH)
def test_harvesting_weighs_no_links(estimator):
    found = tt.propensities(cells(60), estimator=estimator)
    assert "weakest" not in str(found)
    with pytest.raises(tt.InputError, match="weighs no links"):
        found.swaps(pages=100)


@pytest.mark.parametrize("bias", ["position", [], [1], None, 3])
def test_bias_is_a_list_of_names(bias):
    for asked in (tt.propensities, tt.diagnose, tt.weights, tt.identify):
        with pytest.raises(tt.InputError, match=r"bias: .*a list of names of columns"):
            asked(cells(30), bias=bias)
    assert len(tt.propensities(cells(30), bias=np.array(["position", "position"])).frame()) == 3


def test_each_estimator_that_commands_name_is_there():
    assert {*ESTIMATORS, AUTOMATIC, SEQUENTIAL} == {*defaults.ESTIMATORS}


@pytest.mark.parametrize(("estimator", "other"), [("conditional", "odds"), ("odds", "conditional")])
def test_clicks_of_the_other_form_are_noticed(estimator, other):
    rng = np.random.default_rng(1)
    document, position = (each.ravel() for each in np.indices((600, 3)))
    attraction = rng.uniform(0.05, 0.95, 600)[document]
    chance = attraction * EXAMINATION[position]
    if estimator == "conditional":  # Log-odds add up.
        odds = attraction / (1 - attraction) * EXAMINATION[position]
        chance = odds / (1 + odds)
    log = pd.DataFrame({"query": document // 2, "document": document, "position": position + 1})
    log = log.assign(impressions=200, clicks=rng.binomial(200, chance))
    wrong = "form that this curve supposes"
    assert wrong in str(tt.propensities(log, estimator=estimator))
    assert wrong not in str(tt.propensities(log, estimator=other))
    assert tt.propensities(log, estimator="all_pairs").slope is None
    assert bool(tt.weights(log).warnings) == (estimator == "conditional")


def test_counts_that_are_there_twice_are_noticed():
    log = cells(60)
    twice = pd.concat([log, log]).sort_values(["query", "document"])
    said = "every count of this log is a multiple of 2: was each row written 2 times? "
    said += "Then swaps and tests count each click 2 times"
    for found, copied in ((log, False), (twice, True)):
        assert (said in str(tt.propensities(found))) == copied
        assert (said in "".join(tt.weights(found).lines())) == copied
        light = tt.diagnose(found).recommendations[0]
        assert (light.colour == "red", "Every count" in light.answer) == (copied, copied)
    assert said not in str(tt.propensities(twice[:12]))  # Six pairs may have even counts by chance.
