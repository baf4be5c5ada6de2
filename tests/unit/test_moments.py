"""Means and deviations over runs, the strict selection of rows, and their words."""

import numpy as np
import pandas as pd
import pytest

from twotowers.claims import published
from twotowers.claims.statistics import measured, moments, runs, whole, with_most
from twotowers.errors import InputError
from twotowers.report.drawings import counts

RESULTS = pd.DataFrame(
    [
        (setting, method, clicks, seed, "mcc", seed / 10 + (method == "dla"))
        for setting in ("one", "two")
        for method in ("naive", "dla")
        for clicks in (10.0, 100.0)
        for seed in (1, 2, 3)
    ],
    columns=["setting", "method", "clicks", "seed", "metric", "value"],
)
PRINTED = pd.DataFrame(
    {
        "method": ["dla", "naive"],
        "metric": "mcc",
        "value": [1.2, 0.5],
        "sd": [0.1, np.nan],
        "n": 10,
        "bound": ["", "<"],
    }
)


def test_a_selection_names_what_is_missing():
    assert set(measured(RESULTS, ["one", "two"], method="dla")["setting"]) == {"one", "two"}
    with pytest.raises(InputError, match=r"lane: 'one' has no results with this column"):
        measured(RESULTS, "one", lane=1)
    with pytest.raises(InputError, match=r"method: 'three' has no results with this column"):
        measured(RESULTS, ["one", "three"], method="dla")
    with pytest.raises(InputError, match=r"method: no results of 'one', 'two' for 'em'.*'naive'"):
        measured(RESULTS, ["one", "two"], method=["dla", "em"])
    some = RESULTS.assign(lane=RESULTS["seed"].where(RESULTS.eval("setting == 'one' and seed < 3")))
    assert set(measured(some, "one", lane=2)["seed"]) == {2}
    with pytest.raises(InputError, match=r"lane: 'two' has no results with this column"):
        measured(some, ["one", "two"], lane=2)


def test_mean_and_deviation_are_rows_of_their_own_beside_the_printed():
    ours = with_most(measured(RESULTS, "one"), "clicks")
    table = moments(ours, PRINTED, ["method", "metric"], {"method": ["naive"]})
    assert table["method"].tolist() == ["naive"] * 3 + ["dla"] * 4
    cells = table.set_index(["method", "statistic", "source"])["value"]
    assert cells["dla", "mean", "reproduced"] == pytest.approx(1.2)
    assert cells["dla", "sd", "reproduced"] == pytest.approx(0.1)
    assert cells["dla", "sd", "published"] == 0.1
    assert cells["naive", "upper bound", "published"] == 0.5
    assert ("naive", "sd", "published") not in cells


def test_every_run_is_a_row_and_whole_numbers_are_integers():
    table = runs(measured(RESULTS, "one", method="dla"), ["method", "clicks"])
    assert table["statistic"].tolist() == ["run 1", "run 2", "run 3"] * 2
    assert table["clicks"].dtype == "Int64"
    shares = pd.DataFrame({"share": [0.5, 1.0], "number": [1.0, np.nan]})
    kinds = whole(shares, ["share", "number"]).dtypes.astype(str)
    assert kinds.to_dict() == {"share": "float64", "number": "Int64"}


def test_a_paper_without_printed_numbers_is_drawn_without_them():
    none = published.bands("own")
    assert none.empty
    assert published.results("own").empty
    where = {"metric": {"mcc": "MCC"}}
    parameters = {
        "rows": {"method": {"dla": "DLA"}},
        "columns": where,
        "keys": ["method", "metric"],
    }
    ours = with_most(RESULTS, "clicks")
    table = counts.table(ours, none, needs=["one"], **parameters)
    assert table["source"].tolist() == ["reproduced"]
