"""De Haan and Hager (2024): its claims, its printed numbers, its study and its drawings."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from papers.dehaan2024.claims import CLAIMS
from papers.dehaan2024.items.bins import bins
from papers.dehaan2024.names import by_query
from papers.dehaan2024.studies import expert
from tests.claimed import claimed
from tests.items import drawing
from twotowers.claims.claims import REPRODUCED, judge
from twotowers.claims.data_provenance import REAL
from twotowers.claims.published import bands
from twotowers.files.rankings import Rankings
from twotowers.splits import ANNOTATIONS
from twotowers.standins.baidu import world_of
from twotowers.standins.baidu_files import write_part

JUDGED = {claim.id: claim for claim in CLAIMS}
item = partial(drawing, "dehaan2024")


RESULTS = claimed("dehaan2024").assign(stands_on=REAL)


def test_the_printed_intervals_are_those_of_the_paper():
    table = item("table2").table(RESULTS, bands("dehaan2024"))
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
    table = figure.table(RESULTS, bands("dehaan2024"))
    counts = table[table["setting"] == "policy"].groupby("metric")["n"].sum()
    assert counts.to_dict() == {"gain": 40, "ndcg@10": 40}
    random = table[(table["setting"] == "random") & (table["metric"] == "gain")]
    assert random["value"].abs().max() == 0
    assert len(figure.draw(table).axes) == 2


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "annotations.parquet"
    write_part(path, "annotations", world_of(100, 0, {}), queries=40)
    options = {"trees": 30, "leaves": 8, "learning_rate": 0.2}
    return expert.run({ANNOTATIONS: path}, seed=1, **options).assign(setting="expert", seed=1)


def test_trees_rank_queries_that_they_have_seen_better(study):
    means = study[study["metric"] == "ndcg@10"].set_index("folds")["value"]
    assert means["published"] > means["held out"] + 0.05
    assert judge(JUDGED["14"], study).verdict == REPRODUCED
    found = by_query(study, ["expert", "expert-folds"], "ndcg@10")
    assert found.mean().round(6).tolist() == means.round(6).tolist()


def labelled(queries=23, width=4) -> Rankings:
    rng = np.random.default_rng(2)
    lengths = rng.integers(3, 9, queries)
    query = np.repeat(np.arange(queries) + 50, lengths)
    document = np.concatenate([np.arange(n) for n in lengths]).astype(np.int32)
    features = rng.normal(size=(len(query), width)).astype(np.float32)
    return Rankings(query, document, rng.integers(0, 5, len(query)).astype(np.float32), features)


def test_trees_do_not_see_the_queries_that_they_score(monkeypatch):
    rankings = labelled()
    seen = []

    def memory(train, labels):
        known = {row.tobytes() for row in train.features}
        seen.append(len(known))
        return lambda features: np.array([row.tobytes() in known for row in features], float)

    monkeypatch.setattr(expert, "fit_lambdamart", memory)
    scores, published = expert.cross_fitted(rankings)
    assert not scores.any()
    assert len(seen) == 5
    first = rankings.query < 50 + 5
    np.testing.assert_array_equal(published, ~first)
