"""Drawings: found by name, given what they name, refused before anything runs."""

import pandas as pd
import pytest

from tests.items import experiment
from twotowers import ROOT
from twotowers.errors import InputError
from twotowers.report.figures import save
from twotowers.running.registry import MADE_BY, build_drawing, find, kinds
from twotowers.running.settling import settle_item

PAPERS = sorted(path.parent.name for path in ROOT.glob("papers/*/experiment.yaml"))
BIAS = {"kind": "position_bias", "settings": {"fit": "F"}, "where": {"strength": 1}}


def settled(name: str = "fig1", **item) -> dict:
    return settle_item(
        name, {"kind": "figure", "needs": ["fit"]} | item, path=ROOT / "e.yaml", paper="hager2025"
    )


def test_an_item_without_a_drawing_is_its_papers_own_module():
    assert settled("lemmas")["draw"] == {"kind": "lemmas"}
    assert find("drawings", "lemmas", "hager2025").path.parts[:3] == (
        "papers",
        "hager2025",
        "items",
    )


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        ({}, ["items.fig1.draw", "'fig1' is unknown"]),
        ({"draw": BIAS | {"kind": "position_bais"}}, ["did you mean 'position_bias'"]),
        ({"draw": BIAS | {"setings": 1}}, ["no parameter 'setings'", "did you mean 'settings'"]),
        ({"draw": "position_bias"}, ["items.fig1.draw", "needs 'settings'"]),
        ({"draw": BIAS, "needs": ["fti"]}, ["'fit' is drawn and not needed", "did you mean 'fti'"]),
        ({"draw": BIAS, "kind": "table"}, ["'position_bias' draws no table", "'tex'"]),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_nearest(item, parts):
    with pytest.raises(InputError) as caught:
        settled(**item)
    assert all(part in str(caught.value) for part in ["e.yaml", *parts]), caught.value


def test_a_drawing_is_told_what_its_item_needs():
    draw = {"kind": "counts", "rows": {}, "columns": {}, "keys": []}
    settled_draw = settled(kind="table", draw=draw)["draw"]
    assert settled_draw == {**draw, "needs": ["fit"]}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_module_of_items_is_drawn_by_an_item(paper):
    own = {
        name for name, kind in kinds("drawings", paper).items() if kind.path.parts[0] == "papers"
    }
    used = {item["draw"]["kind"] for item in experiment(paper).items.values()}
    assert own <= used <= set(kinds("drawings", paper))


def test_parameters_are_those_of_both_functions():
    lines = find("drawings", "lines")
    assert lines.holds == MADE_BY["figure"]
    assert lines.parameters["settings"] is None
    assert lines.parameters["levels"] == "True"
    assert lines.parameters["span"] == "0.0"


def test_each_function_gets_the_parameters_that_it_names(tmp_path):
    parameters = {"settings": {"a": "A", "b": "B"}, "metric": "ndcg", "where": {"weighting": "ips"}}
    drawing = build_drawing(
        "lines", "hager2025", **parameters,
        label="nDCG", along="temperature", xlabel="τ", curves="strength", symbol="α",
    )  # fmt: skip
    results = pd.DataFrame(
        [
            (setting, strength, temperature, weighting, "ndcg", seed, strength + seed)
            for setting in ("a", "b", "c")
            for strength in (-1.0, 1.0)
            for temperature in (0.0, 1.0)
            for weighting in ("none", "ips")
            for seed in (1, 2)
        ],
        columns=["setting", "strength", "temperature", "weighting", "metric", "seed", "value"],
    )
    published = results.iloc[:0].assign(sd=0.0, n=1)
    table = drawing.table(results, published)
    assert set(table["setting"]) == {"a", "b"}
    assert set(table["weighting"]) == {"ips"}
    figure = drawing.draw(table)
    assert [axes.get_title("left") for axes in figure.axes[:2]] == ["A", "B"]
    assert len(figure.axes) == 4
    save(figure, [tmp_path / "figure.svg"])
