"""De Haan and Hager (2024): its claims, its printed numbers, its study and its drawings."""

from functools import cache, partial

import numpy as np
import pandas as pd
import pytest

from papers.dehaan2024.claims import CLAIMS
from papers.dehaan2024.items.bins import bins
from papers.dehaan2024.names import MODELS, by_query
from papers.dehaan2024.studies.expert import run
from tests.items import drawing
from tests.judging import mutation_tests, to
from twotowers.claims.claims import NOT_TESTABLE, REPRODUCED, judge
from twotowers.claims.data_provenance import REAL, STAND_IN
from twotowers.claims.published import bands, results
from twotowers.splits import ANNOTATIONS
from twotowers.standins.baidu import world_of
from twotowers.standins.baidu_files import write_part

JUDGED = {claim.id: claim for claim in CLAIMS}
PRINTED = {"1", "2", "3", "4", "5", "6", "7", "8"}
"""Claims that printed numbers decide."""
item = partial(drawing, "dehaan2024")


@cache
def printed():
    return results("dehaan2024").assign(stands_on=REAL)


@cache
def made_up():
    """The printed means, values of 200 queries with these means, and what is not printed."""
    rng, table = np.random.default_rng(0), printed()
    level = table[table["metric"] == "ndcg@10"].set_index("setting")["value"]
    policy = rng.uniform(0, 2 * level["policy"], 200)
    # Where the policy ranks well, the expert leads by less, and two towers gain more.
    tilt = {"expert": -0.1, "two-tower": 0.05, "policy": 1.0}
    parts = [table.assign(folds="published")]
    for name in MODELS:
        values = level[name] + tilt.get(name, 0) * (policy - level["policy"])
        rows = {"setting": name, "metric": "query_ndcg@10", "query": range(200), "value": values}
        parts.append(pd.DataFrame(rows).assign(seed=0, folds="published"))
    more = [
        ("expert", "held out", "ndcg@10", None, 0.5),
        ("bias-layers", "", "ndcg@10", None, 0.374),
        ("backdoor", "", "position_bias", 9, -0.8),
        ("backdoor-log", "", "position_bias", 9, -2.2),
    ]
    columns = ["setting", "folds", "metric", "position", "value"]
    parts.append(pd.DataFrame(more, columns=columns).assign(seed=0))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("name", JUDGED)
def test_the_printed_numbers_bear_out_what_the_paper_says(name):
    expected = REPRODUCED if name in PRINTED else NOT_TESTABLE
    assert judge(JUDGED[name], printed()).verdict == expected
    assert judge(JUDGED[name], made_up()).verdict == REPRODUCED


def test_a_generated_log_says_nothing_of_how_well_baidu_s_order_is_predicted():
    found = judge(JUDGED["1"], printed().assign(stands_on=STAND_IN))
    assert found.verdict == NOT_TESTABLE
    assert "a generated log: nDCG@10 of its order is .933" in found.reason


def ndcg(setting, **more):
    return {"setting": setting, "metric": "ndcg@10", **more}


def each(setting):
    return {"setting": setting, "metric": "query_ndcg@10"}


def turned(rows):
    return -rows["value"]


def reversed_values(rows):
    return 2 * rows["value"].mean() - rows["value"]


MUTATIONS = [
    ("1", to(0.8), {"setting": "policy", "metric": "logged_ndcg@10"}, "logged order"),
    ("2", to(0.3), ndcg("policy"), "random ranking"),
    ("3", to(0.3), ndcg("dropout"), "random ranking"),
    ("4", to(0.35), ndcg("backdoor"), "of the policy"),
    ("5", to(0.36), ndcg("two-tower"), "two towers less"),
    ("5", to(0.4), ndcg("two-tower"), "the same difference"),
    ("6", to(0.38), ndcg("dropout"), "of the correction"),
    ("7", to(0.38), ndcg("backdoor"), "difference in nDCG"),
    ("8", to(0.45), ndcg("expert", folds="published"), "best of them"),
    ("9", reversed_values, each("two-tower"), "slope of the gain"),
    ("10", to(1), each("naive"), "in the bin where it is least"),
    ("11", reversed_values, each("expert"), "slope of the lead"),
    ("13", to(0.39), ndcg("bias-layers"), "hidden layer"),
    ("14", to(0.53), ndcg("expert", folds="held out"), "as published less"),
    ("15", to(0.4), ndcg("expert", folds="held out"), "best of them"),
    ("16", turned, {"setting": "backdoor-log", "position": 9}, "with logarithms"),
    ("16", to(-1.2), {"setting": "backdoor", "position": 9}, "as published"),
]


test_that_judges_fail, test_that_mutations_are_all = mutation_tests(JUDGED, made_up, MUTATIONS)


def test_the_printed_intervals_are_those_of_the_paper():
    table = item("table2").table(made_up(), bands("dehaan2024"))
    rows = table[(table["source"] == "published") & (table["setting"] == "two-tower")]
    half = (rows["high"] - rows["value"]).set_axis(rows["metric"])
    assert half.round(4).to_dict() == {"ndcg@10": 0.0063, "dcg@10": 0.16}
    tex = item("table2").tex(table)
    assert r"$0.375 \pm .0063$" in tex
    assert tex.count("Two-tower") == 1


def test_queries_are_binned_by_the_policy():
    policy = pd.Series([0.0, 0.05, 0.5, 0.99, 1.0])
    assert bins(policy).tolist() == [0.05, 0.05, 0.45, 0.95, 0.95]
    figure = item("fig1")
    table = figure.table(made_up(), bands("dehaan2024"))
    counts = table[table["setting"] == "policy"].groupby("metric")["n"].sum()
    assert counts.to_dict() == {"gain": 200, "ndcg@10": 200}
    random = table[(table["setting"] == "random") & (table["metric"] == "gain")]
    assert random["value"].abs().max() == 0
    assert len(figure.draw(table).axes) == 2


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "annotations.parquet"
    write_part(path, "annotations", world_of(100, 0, {}), queries=40)
    options = {"trees": 30, "leaves": 8, "learning_rate": 0.2}
    return run({ANNOTATIONS: path}, seed=1, **options).assign(setting="expert", seed=1)


def test_trees_rank_queries_that_they_have_seen_better(study):
    means = study[study["metric"] == "ndcg@10"].set_index("folds")["value"]
    assert means["published"] > means["held out"] + 0.05
    assert judge(JUDGED["14"], study).verdict == REPRODUCED
    found = by_query(study, ["expert", "expert-folds"], "ndcg@10")
    assert found.mean().round(6).tolist() == means.round(6).tolist()
