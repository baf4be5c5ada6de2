"""Chen et al. (2024): what the items draw, from made-up results, and the printed numbers."""

from functools import cache, partial

import matplotlib
import pandas as pd
import pytest

from papers.chen2024.items import connection
from papers.chen2024.studies import example2 as example2_study
from tests.claimed import claimed
from tests.items import drawing, experiment
from twotowers.claims import published
from twotowers.claims.statistics import BAND, read_results, select, write_results
from twotowers.report.comparison import side_by_side

matplotlib.use("agg")

BANDS = published.bands("chen2024")
TEXTS = experiment("chen2024").items
FIGURES = sorted(name for name, text in TEXTS.items() if text.kind == "figure")
TABLES = sorted(TEXTS.keys() - {*FIGURES})


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """From settings and studies to their results, written and read as jobs and items do."""
    folder = tmp_path_factory.mktemp("fits")
    paths = {}
    for (name, seed), rows in claimed("chen2024").groupby(["setting", "seed"]):
        path = folder / f"{name}-{seed}.parquet"
        rows = rows.drop(columns=["paper", "setting", "seed"])
        empty = [column for column in rows if rows[column].isna().all() and column != "position"]
        write_results(rows.drop(columns=empty), path, paper="chen2024", setting=name, seed=seed)
        paths.setdefault(name, []).append(path)
    read = cache(lambda *names: read_results([path for name in names for path in paths[name]]))
    return lambda names: read(*names)


item = partial(drawing, "chen2024")


def table_of(name: str, results, bands: pd.DataFrame = BANDS) -> pd.DataFrame:
    return item(name).table(results(TEXTS[name].needs), bands)


def test_all_results_of_the_paper_are_read_together(results):
    """As the claims are: a lane must not hold words in one study and numbers in another."""
    studies = set(claimed("chen2024")["setting"])
    assert set(results(studies)["setting"]) == studies


def test_the_study_of_example2_has_the_lanes_that_its_item_takes():
    sizes = [{"features": 3, "factors": 2, "rows": [4, 8]}]
    limit = {"features": 3, "factors": [5], "rows": 7}
    studied = example2_study.run(None, seed=1, sizes=sizes, repeats=5, limit=limit)
    drawn = select(claimed("chen2024"), setting="example2").drop(
        columns=["paper", "setting", "seed"]
    )
    assert set(studied) - {"position"} == set(drawn.dropna(axis=1))
    lanes = studied[["feature_vectors", "bias_factors", "rows"]].drop_duplicates()
    assert lanes.to_numpy().tolist() == [[3, 2, 4], [3, 2, 8], [3, 5, 7]]


@pytest.mark.parametrize("name", FIGURES + TABLES)
def test_an_items_csv_is_what_the_page_needs(name, results, tmp_path):
    table = table_of(name, results)
    assert {*BAND, "source"} <= set(table.columns)
    table.to_csv(tmp_path / "item.csv", index=False)
    read = pd.read_csv(tmp_path / "item.csv")
    compared = side_by_side(read, TEXTS[name].highlight)
    assert 0 < len(compared) <= 60
    assert compared["reproduced"].notna().any()
    ours = select(table, source="reproduced")
    banded = ours.dropna(subset=["low", "high"])
    assert (banded["low"] <= banded["value"] + 1e-12).all()
    assert (banded["value"] <= banded["high"] + 1e-12).all()


@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw_what_there_is(name, results):
    """One run, and nothing published."""
    one = results(TEXTS[name].needs).query("seed == 0")
    figure = item(name).draw(item(name).table(one, BANDS.iloc[:0]))
    assert all(panel.has_data() or panel.patches for panel in figure.axes)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("bands", [BANDS, BANDS.iloc[:0]], ids=["published", "unpublished"])
def test_tables_are_well_formed(name, bands, results):
    tex = item(name).tex(table_of(name, results, bands))
    assert tex.count("{") == tex.count("}")
    assert tex.count("$") % 2 == 0
    assert "nan" not in tex.lower()
    for tabular in tex.split(r"\begin{tabular}{")[1:]:
        columns, rest = tabular.split("}\n", 1)
        body, _ = rest.split(r"\end{tabular}")
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(lines) > 1
        assert {line.replace(r"\&", "").count("&") for line in lines} == {len(columns) - 1}
        assert set(body.splitlines()) - set(lines) <= {r"\toprule", r"\midrule", r"\bottomrule"}


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("table1", 10 * 6),
        ("table2", 2 * 3 * 6),
        ("table3", 8),
        ("table4", 12),
        ("table5", 5),
        ("table6", 2 * 5 * 6),
    ],
)
def test_every_printed_number_stands_beside_ours(name, numbers, results):
    table = table_of(name, results)
    if "statistic" in table:
        means = select(table, source="published", statistic=["mean", "upper bound"])
    else:
        means = select(table, source="published")
    assert len(means) == numbers
    keys = [column for column in means if column not in (*BAND, "source", "statistic")]
    ours = select(table, source="reproduced")[keys].drop_duplicates()
    assert len(means[keys].merge(ours)) == numbers
    unpublished = item(name).tex(table_of(name, results, BANDS.iloc[:0]))
    shown = item(name).tex(table)
    # Counts have no columns then.
    assert "gray" not in unpublished or unpublished.count("--") == shown.count("--") + numbers


def draws(sweep: str, chances: dict[float, list[int]]) -> pd.DataFrame:
    rows = [
        {"sweep": sweep, "amount": amount, "repeat": repeat, "metric": "connected", "value": value}
        for amount, values in chances.items()
        for repeat, value in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(setting="connectivity-yahoo", seed=1, dataset="yahoo")


@pytest.mark.parametrize(
    ("sweep", "chances", "metric", "turn"),
    [
        ("contexts", {0: [1, 1], 5: [1, 0], 10: [0, 0], 20: [0, 0]}, "disconnected_from", 10),
        ("contexts", {0: [1, 1], 5: [1, 1]}, "disconnected_from", None),
        ("features", {2: [1, 1], 4: [0, 0], 8: [1, 0]}, "disconnected_from", 4),
        ("sampling", {0.1: [1, 1], 0.2: [0, 1], 0.5: [1, 1], 1: [1, 1]}, "connected_from", 0.5),
        ("sampling", {0.5: [1, 1], 1: [0, 1]}, "connected_from", None),
    ],
)
def test_where_the_graph_turns(sweep, chances, metric, turn):
    frame = draws(sweep, chances)
    table = connection.table(frame, BANDS.iloc[:0], dataset="yahoo", sweep=sweep)
    found = select(table, metric=metric)["value"].tolist()
    assert found == ([] if turn is None else [turn])
