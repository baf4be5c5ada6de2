"""Chen et al. (2024): what the items draw, from made-up results, and the printed numbers."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from papers.chen2024.claims import CLAIMS
from papers.chen2024.items import connection
from papers.chen2024.judges.cells import CLICKS, LISTS
from papers.chen2024.judges.synthetic import AGREES, as_another_draw
from papers.chen2024.studies import example2 as example2_study
from tests.claimed import altered, claimed, claimed_of
from tests.items import drawing, experiment
from twotowers.claims import published
from twotowers.claims.claims import CONTRADICTED, NOT_TESTABLE, REPRODUCED, judge
from twotowers.claims.data_provenance import REAL, STAND_IN
from twotowers.claims.statistics import BAND, read_results, select, write_results

BANDS = published.bands("chen2024")
TEXTS = experiment("chen2024").items
item = partial(drawing, "chen2024")


def table_of(name: str, bands: pd.DataFrame = BANDS) -> pd.DataFrame:
    return item(name).table(claimed_of("chen2024", TEXTS[name].needs), bands)


def test_all_results_of_the_paper_are_read_together(tmp_path):
    """As the claims are: a lane must not hold words in one study and numbers in another."""
    paths = []
    for name in set(claimed("chen2024")["setting"]):
        rows = claimed_of("chen2024", [name]).drop(columns=["paper", "setting", "seed"])
        paths.append(tmp_path / name)
        write_results(rows, paths[-1], paper="chen2024", setting=name, seed=1)
    assert set(read_results(paths)["setting"]) == {path.name for path in paths}


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
def test_every_printed_number_stands_beside_ours(name, numbers):
    table = table_of(name)
    if "statistic" in table:
        means = select(table, source="published", statistic=["mean", "upper bound"])
    else:
        means = select(table, source="published")
    assert len(means) == numbers
    keys = [column for column in means if column not in (*BAND, "source", "statistic")]
    ours = select(table, source="reproduced")[keys].drop_duplicates()
    assert len(means[keys].merge(ours)) == numbers
    unpublished = item(name).tex(table_of(name, BANDS.iloc[:0]))
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


# Rules of judges, against arithmetic and simulation


BY_ID = {claim.id: claim for claim in CLAIMS}
RESULTS = claimed("chen2024").assign(stands_on=REAL)


@pytest.mark.parametrize("name", ["9a", "10a", "11a", "16a"])
def test_numbers_of_queries_are_not_compared_between_sizes(name):
    nodes = {"setting": "connectivity-yahoo", "metric": "nodes"}
    smaller = altered(RESULTS, lambda rows: 0.8 * rows["value"], **nodes)
    judgement = judge(BY_ID[name], smaller)
    assert judgement.verdict == NOT_TESTABLE
    assert "another size" in judgement.reason


@pytest.mark.parametrize("name", ["10b", "15", "19"])
def test_a_study_on_real_and_other_files_is_no_evidence(name):
    mixed = RESULTS.copy()
    mixed.loc[mixed.groupby("setting").head(1).index, "stands_on"] = STAND_IN
    assert judge(BY_ID[name], mixed).verdict == NOT_TESTABLE


def test_three_means_may_each_be_farther_off_than_one():
    """2d allows for three comparisons: the plain bound is .8 times the corrected one."""
    (off, allowed), _ = (measured for _, measured in BY_ID["2d"].measure(RESULTS))
    assert off.max() < 1e-6
    lane = {"setting": LISTS, "views": CLICKS, "components": 2, "metric": "mcc"}
    for share, verdict in ((0.95, REPRODUCED), (1.05, CONTRADICTED)):
        shift = share * allowed["two_tower"]
        results = altered(
            RESULTS, lambda rows: rows["value"] + shift, **lane, method="two_tower", repair="plain"  # noqa: B023
        )  # fmt: skip
        assert judge(BY_ID["2d"], results).verdict == verdict


def test_another_draw_of_the_data_set_has_the_stated_chance():
    """A printed number from the same normal law as ten draws lies within 95 times in 100."""
    rng = np.random.default_rng(0)
    lane = {"setting": "redrawn-naive", "method": "naive", "repair": "plain", "components": 2}
    trials, held = 150, 0
    for _ in range(trials):
        values = rng.normal(0.5, 0.01, 11)
        results = pd.DataFrame({"value": values[1:], "seed": range(10), "metric": "mcc", **lane})
        found = as_another_draw(results.assign(views=CLICKS), "naive", "plain", {"mcc": values[0]})
        pairs = zip(AGREES, found, strict=True)
        held += all(condition.met_by(value) for condition, value in pairs if condition.judged)
    # Half a printed digit adds a little; three standard errors to either side.
    assert held / trials == pytest.approx(0.955, abs=3 * np.sqrt(0.05 * 0.95 / trials))
