"""Every item of every paper, from results on which its claims hold, or from its authors' own."""

from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from tests.claimed import claimed_of
from tests.items import drawing, experiment
from twotowers.claims import published
from twotowers.claims.statistics import BAND, select
from twotowers.report.comparison import side_by_side
from twotowers.root import ROOT

# Their claims ask for less than they draw.
WIDER = {
    "clax2025": {"definitions"},
    "hager2023": {"table2.2", "marks", "choices"},
    "hager2024": {"table3.1", "table3.2", "tests"},
    "hager2025": {"appendixA", "overlap", "dimensions", "expressiveness", "padding"},
    "zhang2023": {
        "table2", "table3", "table4", "combination", "normalisation", "gradrev_start", "postulate4",
    },
}  # fmt: skip
ITEMS = [
    (paper, name)
    for paper in sorted(path.parent.name for path in ROOT.glob("papers/*/claims.py"))
    for name in experiment(paper).items
    if name not in WIDER.get(paper, ())
]
bands = cache(published.bands)


@cache
def results(paper: str, name: str) -> pd.DataFrame:
    """What an item is drawn from. Nobody may change it."""
    needs = list(experiment(paper).items[name].needs)
    own = claimed_of(paper, needs)
    return own if len(own) else select(published.results(paper), setting=needs)


@pytest.mark.parametrize(("paper", "name"), ITEMS)
def test_an_items_csv_is_what_its_page_needs(paper, name, tmp_path: Path):
    table = drawing(paper, name).table(results(paper, name), bands(paper))
    assert {*BAND, "source"} <= set(table.columns)
    table.to_csv(tmp_path / "item.csv", index=False)
    highlight = experiment(paper).items[name].highlight
    assert len(side_by_side(pd.read_csv(tmp_path / "item.csv"), highlight))
    ours = select(table, source="reproduced").dropna(subset=["low", "high"])
    assert (ours["low"] <= ours["value"] + 1e-12).all()
    assert (ours["value"] <= ours["high"] + 1e-12).all()


@pytest.mark.parametrize(("paper", "name"), ITEMS)
def test_an_item_is_drawn_with_and_without_published_numbers(paper, name):
    """A figure of one seed has something in each panel, or says so; a table is well-formed."""
    item, rows = drawing(paper, name), results(paper, name)
    for theirs in (bands(paper), bands(paper).iloc[:0]):
        if hasattr(item, "draw"):
            figure = item.draw(item.table(select(rows, seed=int(rows["seed"].min())), theirs))
            assert all(panel.has_data() or panel.patches or panel.texts for panel in figure.axes)
            break
        tex = item.tex(item.table(rows, theirs))
        assert tex.count("{") == tex.count("}")
        assert tex.count("$") % 2 == 0
        assert "nan" not in tex.lower()
        for tabular in tex.split(r"\begin{tabular}{")[1:]:
            columns, rest = tabular.split("}\n", 1)
            lines = [line for line in rest.splitlines() if line.endswith(r"\\")]
            assert {line.replace(r"\&", "").count("&") for line in lines} == {len(columns) - 1}
