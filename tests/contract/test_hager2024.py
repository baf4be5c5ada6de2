"""Chapter 3 of the thesis: its claims, its printed numbers and its drawings."""

from functools import cache, partial

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import ttest_rel

from papers.hager2024.claims import CLAIMS
from papers.hager2024.methods.monobert import click_loss
from papers.hager2024.significance import UNITS, against_baseline, changes
from papers.hager2024.studies import counts
from tests.items import drawing
from twotowers.claims.claims import CONTRADICTED, NOT_TESTABLE, REPRODUCED, UNDECIDED, judge
from twotowers.claims.published import bands, results
from twotowers.root import ROOT

JUDGED = {claim.id: claim for claim in CLAIMS}
item = partial(drawing, "hager2024", scale="paper")
OF_QUERIES = JUDGED.pop("37")


@cache
def printed():
    return results("hager2024")


def test_means_of_the_authors_runs_are_the_printed_means():
    runs = pd.read_csv(ROOT / "papers/hager2024/published/runs/reranking.csv")
    means = runs[runs["metric"] == "dcg@10"].groupby("setting")["value"].mean()
    table = bands("hager2024")
    table = table[(table["metric"] == "dcg@10") & table["setting"].isin(means.index)]
    assert len(table) == 27
    assert (table.set_index("setting")["value"] - means).abs().max() < 0.0015


def per_query(values, runs=2):
    """Runs of a group whose methods have these values of four queries."""
    rows = [
        (f"ltr-{name}", "query_dcg@10", query, seed, value + seed / 100)
        for name, own in values.items()
        for query, value in enumerate(own)
        for seed in range(1, runs + 1)
    ]
    return pd.DataFrame(rows, columns=["setting", "metric", "query", "seed", "value"])


def test_a_method_is_compared_with_its_naive_model():
    naive = [1.0, 2.0, 3.0, 4.0]
    found = per_query(
        {
            "list-naive": naive,
            "list-ips": [value + 1 + place / 1e3 for place, value in enumerate(naive)],
            "list-dla": [4.0, 3.0, 2.0, 1.0],
        }
    )
    marks = changes(found, "ltr").set_index("setting")["value"]
    assert marks.to_dict() == {"ltr-list-ips": 1, "ltr-list-dla": 0}
    without = changes(found[found["setting"] != "ltr-list-dla"], "ltr")
    assert without.values.tolist() == [["ltr-list-ips", "dcg@10", 1]]
    assert changes(found[found["setting"] != "ltr-list-naive"], "ltr").empty


def test_more_is_significant_where_runs_of_a_query_count():
    naive = np.array([1.0, 2.0, 3.0, 4.0])
    other = {"list-ips": [1, 1.3, 0.7, 1.2], "list-dla": [0.1, -0.1, 0.1, -0.1]}
    values = {name: list(naive + gain) for name, gain in other.items()}
    found = per_query({"list-naive": list(naive), **values}, runs=5)
    assert judge(OF_QUERIES, found).verdict == REPRODUCED
    few = judge(OF_QUERIES, found[found["seed"] < 5])
    assert (few.verdict, few.reason) == (UNDECIDED, "the thesis tests over 5 runs, and here are 4")
    values["list-ips"] = list(naive + np.array([1, 1, 1, 1.1]))
    sure = per_query({"list-naive": list(naive), **values}, runs=5)
    assert judge(OF_QUERIES, sure).verdict == CONTRADICTED
    assert judge(OF_QUERIES, printed()).verdict == NOT_TESTABLE
    table = item("tests")
    rows = table.table(found, bands("hager2024"))
    own = rows[(rows["features"] == "ltr") & (rows["sign"] == 1)].set_index("unit")["value"]
    assert own.to_dict() == {"run": 1, "query": 0}
    assert r"LTR features & $1$ & $0$ & $0$ & $0$ \\" in table.tex(rows)


def test_click_losses_of_cross_encoders():
    scores, bias = jnp.array([[1.0, -1.0, 0.5]]), jnp.array([0.0, -1.0, -2.0])
    clicks, where = jnp.array([[True, True, False]]), jnp.array([[True, True, True]])
    given = scores, bias, clicks, where
    weights = np.array([1.0, 2.0, 4.0])
    naive = click_loss("naive", weights)(*given)
    assert naive == pytest.approx(float(np.logaddexp(0, [-1, 1, 0.5]).mean()))
    shifted = click_loss("two_tower", weights)(*given)
    assert shifted == pytest.approx(float(np.logaddexp(0, [-1, 2, -1.5]).mean()))
    chosen = np.log(np.exp([1, -1, 0.5]).sum()) - np.array([1, -1])
    assert click_loss("softmax", weights)(*given) == pytest.approx(chosen.sum(), rel=1e-5)
    weighted = (chosen * [1, 2]).sum() / 3
    assert click_loss("softmax_ips", weights)(*given) == pytest.approx(weighted, rel=1e-5)
    # A click on the first document shown has no weight to undo.
    assert np.isfinite(click_loss("dla", weights)(*given)).all()


def test_counts_are_those_of_a_log_by_hand(tmp_path):
    pages, annotations = tmp_path / "pages.parquet", tmp_path / "annotations.parquet"
    rows = {
        "split": ["part-0", "part-1", "part-3"],
        "query": [1, 1, 1],
        "documents": [[4, 5], [4, 5, 6], [6, 4]],
        "clicks": [[False, False], [True, False, True], [True, False]],
    }
    pq.write_table(pa.table(rows), pages)
    pq.write_table(pa.table({"query": [7, 7, 8], "document": [1, 2, 1]}), annotations)
    found = counts.run({"pages": str(pages), "annotations": str(annotations)}, seed=1)
    values = found.set_index(["part", "metric"])["value"]
    assert values["annotations"].to_dict() == {"queries": 2, "pairs": 3}
    one_query = {"queries": 1, "sessions": 2, "impressions": 5}
    assert values["train"].to_dict() == {**one_query, "pairs": 3}
    assert values["test"].to_dict() == {**one_query, "sessions": 1, "impressions": 2, "pairs": 2}
    assert values["all"].to_dict() == pytest.approx(
        {
            "documents_per_session": 7 / 3,
            "clicks_per_session": 1,
            "clicks_per_document": 3 / 7,
            "percent_clicked": 200 / 3,
            "percent_several": 100 / 3,
        }
    )


# The paired tests, against SciPy's and by their level


def runs(effect=0.05, queries=60, seeds=5) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    level, own = rng.normal(size=(queries, 1)), rng.normal(size=(queries, 3, 1))
    rows = []
    for number, method in enumerate(("naive", "ips", "dla")):
        noise = rng.normal(size=(queries, seeds))
        values = level + 0.3 * own[:, number] + 0.1 * noise + effect * number
        for query, seed in np.ndindex(queries, seeds):
            rows.append((method, query, seed, values[query, seed]))
    return pd.DataFrame(rows, columns=["setting", "query", "seed", "value"])


def test_published_tests():
    """`ttest_rel` pairs rows by query and run. Alpha is divided by the number of methods."""
    values = runs()
    found = against_baseline(values, "naive", unit="run", level=0.01 / 3).set_index("setting")
    base = values[values["setting"] == "naive"]["value"].to_numpy()
    for method in ("ips", "dla"):
        other = values[values["setting"] == method]["value"].to_numpy()
        theirs = ttest_rel(base, other)
        np.testing.assert_allclose(found.loc[method, "p"], theirs.pvalue, rtol=1e-9)
        improved = theirs.pvalue <= 0.01 / 3 and theirs.statistic < 0
        assert (found.loc[method, "value"] == 1) == improved
        assert found.loc[method, "n"] == 300


def test_runs_of_a_query_are_no_new_queries():
    """Methods that differ by what they do to each query: five runs do not make five samples."""
    values = runs()
    p = {
        unit: against_baseline(values, "naive", unit=unit, level=0.01).set_index("setting")["p"]
        for unit in UNITS
    }
    assert (p["run"] < p["query"]).all()
    means = values.groupby(["query", "setting"])["value"].mean().unstack()
    for method in ("ips", "dla"):
        np.testing.assert_allclose(
            p["query"][method], ttest_rel(means["naive"], means[method]).pvalue, rtol=1e-9
        )


def test_levels_of_tests_over_queries_and_runs():
    """Without a difference in the population, tests over queries keep their level. Those over
    (query, run) rows do not."""
    wrong = dict.fromkeys(UNITS, 0)
    trials, level = 150, 0.05
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        own = rng.normal(size=(2, 30, 1)) + 0.2 * rng.normal(size=(2, 30, 5))
        method, query, seed = np.indices(own.shape).reshape(3, -1)
        values = pd.DataFrame({
            "setting": np.array(["naive", "other"])[method], "query": query, "seed": seed,
            "value": own.ravel(),
        })  # fmt: skip
        for unit in wrong:
            change = against_baseline(values, "naive", unit=unit, level=level)["value"]
            wrong[unit] += abs(change.item())
    # Within four standard errors of the level, and far above it.
    assert abs(wrong["query"] / trials - level) < 4 * np.sqrt(level * (1 - level) / trials)
    assert wrong["run"] / trials > 0.2
