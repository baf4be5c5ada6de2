"""Drawings: found by name, called with their parameters, refused before a job starts."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Patch

from tests.items import built, experiment
from twotowers.claims.statistics import mean_interval
from twotowers.errors import InputError
from twotowers.experiment import fields
from twotowers.experiment.components import components
from twotowers.experiment.items import Item
from twotowers.report.charts import Curves
from twotowers.root import ROOT

PAPERS = sorted(path.parent.name for path in ROOT.glob("papers/*/experiment.yaml"))
BIAS = {"kind": "position_bias", "settings": {"fit": "F"}, "where": {"strength": 1}}


TOLD = {"title": "T", "kind": "figure", "needs": ["fit"], "caption": "C", "expected": "E"}


def settled(name: str = "fig1", **item) -> Item:
    given = {"items": {name: TOLD | {"name": name} | item}}
    items = dict[str, dict[str, Item]]
    context = {"paper": "hager2025"}
    return fields.read(items, given, path="e.yaml", context=context)["items"][name]


def test_an_item_without_a_drawing_is_its_papers_own_module():
    item = settled("lemmas")
    assert item.draw == {"kind": "lemmas"}
    assert item.drawing("hager2025").source() == "papers/hager2025/items/lemmas.py"


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        ({}, ["items.fig1.draw", "'fig1' is unknown"]),
        ({"draw": BIAS | {"kind": "position_bais"}}, ["did you mean 'position_bias'"]),
        ({"draw": BIAS | {"setings": 1}}, ["setings", "did you mean 'settings'"]),
        ({"draw": "position_bias"}, ["items.fig1.draw", "'settings' is missing"]),
        ({"draw": BIAS, "needs": ["fti"]}, ["draws 'fit' and does not need", "did you mean 'fti'"]),
        ({"draw": BIAS, "kind": "table"}, ["'position_bias' cannot draw a table", "'tex'"]),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_nearest(item, parts):
    with pytest.raises(InputError) as caught:
        settled(**item)
    assert all(part in str(caught.value) for part in ["e.yaml", *parts]), caught.value


@pytest.mark.parametrize("paper", PAPERS)
def test_every_module_of_items_is_drawn_by_an_item(paper):
    known = components("drawings", paper)
    own = {name for name, kind in known.items() if kind.source().startswith("papers")}
    used = {item.draw["kind"] for item in experiment(paper).items.values()}
    assert own <= used <= set(known)


def seeded(**lanes) -> pd.DataFrame:
    """Results of two seeds for each combination of lanes: the setting's place plus the lanes."""
    grid = pd.MultiIndex.from_product([*lanes.values(), (1, 2)], names=[*lanes, "seed"])
    rows = grid.to_frame(index=False)
    place = rows["setting"].map({name: k for k, name in enumerate(lanes["setting"])})
    numbers = rows.select_dtypes("number").drop(columns="seed").sum(axis=1)
    return rows.assign(value=place + numbers / 1000 + rows["seed"] / 100)


def printed(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["seed"] == 1].drop(columns="seed").assign(sd=0.1, n=10, bound="")


def test_curves_are_settings_and_panels_are_groups_of_them():
    panels = {"Web": {"naive": "web-naive", "known": "web-pbm"}, "Istella": {"naive": "i-naive"}}
    settings = ["web-naive", "web-pbm", "i-naive", "other"]
    results = seeded(setting=settings, sessions=(100, 10_000, 10**6), metric=["ndcg"])
    drawing = built(
        "curves",
        "hager2025",
        panels=panels,
        metric="ndcg",
        along="sessions",
        label="nDCG",
        xlabel="Sessions",
    )
    table = drawing.table(results, printed(results.query("setting != 'i-naive'")))
    assert set(table["setting"]) == {"web-naive", "web-pbm", "i-naive"}
    figure = drawing.draw(table)
    assert [axes.get_title("left") for axes in figure.axes] == ["Web", "Istella"]
    assert [len(axes.lines) for axes in figure.axes] == [4, 1]


def test_dots_of_a_group_stand_on_one_line():
    rows = {"PBM": {"EM": "em-pbm", "gradient": "gradient-pbm"}, "CM": {"EM": "em-cm"}}
    metrics = {"perplexity": "Perplexity", "ndcg": "nDCG"}
    results = seeded(setting=["em-pbm", "gradient-pbm", "em-cm"], metric=list(metrics))
    drawing = built("dots", "hager2025", groups=rows, metrics=metrics, hidden={"ndcg": ["CM"]})
    figure = drawing.draw(drawing.table(results, printed(results.query("setting == 'em-pbm'"))))
    assert [axes.get_title("left") for axes in figure.axes] == ["Perplexity", "nDCG"]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["PBM", "CM"]
    heights = figure.axes[0].collections[-1].get_offsets()[:, 1]
    assert sorted(heights.round()) == [0, 0, 0, 1]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["EM", "gradient", "95 % interval", "reproduced", "published"]
    # What is off the scale is in the table alone.
    assert [len(axes.collections[-1].get_offsets()) for axes in figure.axes] == [4, 3]


def test_few_seeds_have_whiskers_of_one_standard_deviation():
    values = np.array([0.1, 0.2, 0.6])
    low, high = mean_interval(values.mean(), values.std(ddof=1), 3)
    ours = {"value": values.mean(), "low": low, "high": high, "n": 3, "source": "reproduced"}
    theirs = {**ours, "source": "published"}
    few, many = (
        Curves(pd.DataFrame([{**ours, "n": n}, theirs]).assign(c="a"), by={"c": {"a": "a"}})
        for n in (3, 40)
    )
    ends = few.table.loc[0, ["low", "high"]]
    assert ends.tolist() == pytest.approx([0.3 - values.std(ddof=1), 0.3 + values.std(ddof=1)])
    assert few.interval == "± 1 sd over seeds"
    # Of many seeds an interval, however few the published have.
    assert many.table.loc[0, ["low", "high"]].tolist() == [low, high]
    assert many.interval == "95 % interval"
    assert _whisker_or_band(few) == _whisker_or_band(many) == "|"
    assert _whisker_or_band(Curves(pd.concat([many.table] * 20), by={"c": {"a": "a"}})) is None


def _whisker_or_band(chart: Curves) -> str | None:
    """The marker of what the legend calls the interval; a band has none."""
    (entry,) = [entry for entry in chart.legend() if entry.get_label() == chart.interval]
    return None if isinstance(entry, Patch) else entry.get_marker()
