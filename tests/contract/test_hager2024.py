"""Chapter 3 of the thesis: its claims, its printed numbers and its drawings."""

from functools import cache, partial

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from papers.hager2024.claims import CLAIMS
from papers.hager2024.methods.monobert import click_loss
from papers.hager2024.significance import changes
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
        (f"ltr-{name}", f"query_{metric}", query, seed, value + seed / 100)
        for name, own in values.items()
        for metric in ("dcg@10",)
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
