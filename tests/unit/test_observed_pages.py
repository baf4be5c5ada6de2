"""Real logs page by page: read, divided, and fitted by all methods for pages."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tasks import setting_of
from tests.training import short
from twotowers.claims.metrics import page_perplexities
from twotowers.errors import InputError
from twotowers.experiment.observed import Portion
from twotowers.jobs.fit import fit_setting
from twotowers.logs.observed_pages import divide_parts, divided, observed_pages
from twotowers.logs.sessions import write_sessions
from twotowers.standins.baidu import Law, World
from twotowers.standins.baidu_files import write_part

SHARES = {"train": 0.5, "validation": 0.25, "test": 0.25}


def test_the_division_holds_every_page_once(tmp_path):
    pages = pd.DataFrame(
        {
            "split": "log",
            "query": ["a", "b", "a", "a"] * 5,
            "documents": [["x", "y"], ["x"], ["y", "x"], ["x", "y"]] * 5,
            "clicks": [[1, 0], [1], [0, 0], [0, 1]] * 5,
        }
    )
    write_sessions(tmp_path / "log.parquet", [pa.Table.from_pandas(pages, preserve_index=False)])
    found = observed_pages(tmp_path / "log.parquet", SHARES, positions=3, seed=0)
    assert [len(found.sessions[split].query) for split in SHARES] == [10, 5, 5]
    assert len(found.pair) == 3
    rows = []
    for split in SHARES:
        pages_of = found.sessions[split]
        for ranking, clicks, where in zip(
            pages_of.query, pages_of.clicks, pages_of.where, strict=True
        ):
            pair = found.pair[ranking][where]
            assert where.tolist() == found.where[ranking].tolist()
            ids = [tuple(found.ids.slice(each, 1).to_pylist()[0].values()) for each in pair]
            rows.append(str((ids, clicks[where].astype(int).tolist())))
    expected = [
        str(([(query, d) for d in documents], clicks))
        for query, documents, clicks in zip(
            pages["query"], pages["documents"], pages["clicks"], strict=True
        )
    ]
    assert sorted(rows) == sorted(expected)
    counts = found.counts("train")
    train = found.sessions["train"]
    assert counts.impressions.sum() == train.where.sum()
    assert counts.clicks.sum() == (train.clicks & train.where).sum()
    again = observed_pages(tmp_path / "log.parquet", SHARES, positions=3, seed=0)
    np.testing.assert_array_equal(again.sessions["test"].query, found.sessions["test"].query)


def test_division_of_counts_in_distribution():
    """Each impression goes to a split by chance. Each split has the click rate of the whole."""
    shown, clicked = np.full(2000, 50), np.full(2000, 20)
    parts = divided(shown, clicked, SHARES, rng=np.random.default_rng(0))
    for split, share in SHARES.items():
        size, clicks = parts[split]
        assert size.mean() == pytest.approx(50 * share, rel=0.02)
        assert size.var() == pytest.approx(50 * share * (1 - share), rel=0.15)
        assert clicks.mean() == pytest.approx(20 * share, rel=0.03)
    np.testing.assert_array_equal(sum(size for size, _ in parts.values()), shown)
    np.testing.assert_array_equal(sum(clicks for _, clicks in parts.values()), clicked)


@pytest.mark.parametrize("owned", [True, False])
def test_pairs_count_from_0_as_they_come_whether_queries_share_documents_or_not(tmp_path, owned):
    documents = [[7, 3], [5], [3, 7]] if owned else [[7, 3], [3], [3, 7]]
    clicks = [[0, 1], [1], [1, 1]]
    page = {"split": ["log"] * 3, "query": [2, 1, 2], "documents": documents, "clicks": clicks}
    write_sessions(tmp_path / "log.parquet", [pa.table(page)])
    found = observed_pages(tmp_path / "log.parquet", {"train": 1.0}, positions=2, seed=0)
    assert found.ids["query"].to_pylist() == [2, 2, 1]
    assert found.ids["document"].to_pylist() == [7, 3, 5 if owned else 3]
    assert found.pair[found.sessions["train"].query].tolist() == [[0, 1], [2, 0], [1, 0]]


def test_bad_logs_are_refused(tmp_path):
    page = {"split": ["log"], "query": [1], "documents": [[1, 2, 3]], "clicks": [[0, 1, 0]]}
    write_sessions(tmp_path / "one.parquet", [pa.table(page)])
    with pytest.raises(InputError, match="show 3 to 3 documents"):
        observed_pages(tmp_path / "one.parquet", SHARES, positions=2, seed=0)
    with pytest.raises(InputError, match="leave none for"):
        observed_pages(tmp_path / "one.parquet", SHARES, positions=3, seed=0)
    write_sessions(tmp_path / "empty.parquet", [])
    with pytest.raises(InputError, match="empty"):
        observed_pages(tmp_path / "empty.parquet", SHARES, positions=3, seed=0)


def test_perplexities_of_pages_by_hand():
    where = np.array([[True, True], [True, False]])
    alone = np.where(where, np.log(2), 0)
    given = np.where(where, [[np.log(4), 0], [0, 0]], 0)
    rows = {(metric, k): value for metric, k, value in page_perplexities(alone, given, where)}
    assert rows[("perplexity", 1)] == pytest.approx(2)
    assert rows[("perplexity", 2)] == pytest.approx(2)
    assert rows[("conditional_perplexity", 1)] == pytest.approx(2)  # the root of 4 and 1
    assert rows[("conditional_perplexity", 2)] == pytest.approx(1)
    assert rows[("mean_conditional_perplexity", None)] == pytest.approx(1.5)
    # Eq. 5.14: three documents, of which the first costs ln 4 given the clicks above.
    assert rows[("pooled_perplexity", None)] == pytest.approx(2)
    assert rows[("pooled_conditional_perplexity", None)] == pytest.approx(4 ** (1 / 3))
    assert rows[("log_likelihood_clax", None)] == pytest.approx(-np.log(4) / 3)
    assert rows[("log_likelihood_pyclick", None)] == pytest.approx(-np.log(4) / 4)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A log in four parts whose pages have gaps, its documents and annotations."""
    folder = tmp_path_factory.mktemp("parts")
    world = World(400, 0, Law.read())
    for part in ("pages", "documents", "annotations"):
        write_part(folder / f"{part}.parquet", part, world, queries=20)
    return folder


PORTIONS = {
    "train": {"parts": ["part-1", "part-2", "part-3"], "first": 0.5},
    "validation": {"parts": ["part-0"], "share": 0.5},
    "test": {"parts": ["part-0"], "share": 0.5},
}
DIVISION = {split: Portion(**portion) for split, portion in PORTIONS.items()}
LOG = {
    "name": "log", "from": "dataset", "dataset": "d", "features": True,
    "places": "positions", "positions": 22, "split": PORTIONS,
}  # fmt: skip


def fit_parts(parts, **setting):
    files = {name: parts / f"{name}.parquet" for name in ("documents", "annotations")}
    files |= {"log": parts / "pages.parquet"}
    return fit_setting(files, setting_of({"log": LOG, **setting}), seed=1)


@pytest.mark.parametrize("kind", ["dynamic_bayesian", "cascade", "mixed"])
def test_a_model_of_users_who_stop_reads_no_gaps(kind):
    mixture = {"models": ["pbm", "dbn"]} if kind == "mixed" else {}
    given = {"name": "fit", "log": LOG, "model": {"kind": kind, **mixture, "tower": "linear"},
             "training": short(learning_rate=0.1, batch=8, epochs=1)}  # fmt: skip
    with pytest.raises(InputError, match=r"model: model '.*' says nothing of pages with gaps"):
        setting_of(given)
    setting_of(given | {"log": {name: LOG[name] for name in LOG if name != "places"}})


def test_a_log_is_divided_by_its_parts(parts):
    path = parts / "pages.parquet"
    part = pq.read_table(path)["split"].to_numpy()
    found = divide_parts(part, np.zeros(len(part)), DIVISION, seed=3, path=path)
    later = np.flatnonzero(part != "part-0")
    assert found["train"].tolist() == later[: round(len(later) / 2)].tolist()
    halves = found["validation"], found["test"]
    assert sorted(np.concatenate(halves)) == np.flatnonzero(part == "part-0").tolist()
    other = divide_parts(part, np.zeros(len(part)), DIVISION, seed=4, path=path)
    assert other["test"].tolist() != found["test"].tolist()
    # Shares of the same pages stay disjoint; without shares, splits are the same pages.
    same = {split: Portion(parts=["part-0"], first=0.25) for split in DIVISION}
    alike = divide_parts(part, np.zeros(len(part)), same, seed=3, path=path)
    assert alike["test"].tolist() == alike["validation"].tolist()


def test_pages_are_chosen_by_their_clicks_and_keep_their_gaps(parts):
    once = {
        split: Portion(parts=each["parts"], share=each.get("share", 1), clicks=(1, 1))
        for split, each in PORTIONS.items()
    }
    found = observed_pages(parts / "pages.parquet", once, positions=22, seed=1, places="positions")
    for pages in found.sessions.values():
        assert ((pages.clicks & pages.where).sum(1) == 1).all()
        assert (~pages.where[:, 0]).any()
        assert pages.where[:, 8].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": Portion(parts=["part-9"])}, "no part 'part-9'"),
        ({"test": Portion(parts=["part-0"], share=0.8)}, "add up to 1.3"),
        ({"test": Portion(parts=["part-0"], clicks=(99, 99))}, "leave none for 'test'"),
    ],
)
def test_wrong_parts_are_refused(parts, change, message):
    path, portions = parts / "pages.parquet", DIVISION | change
    with pytest.raises(InputError, match=message):
        observed_pages(path, portions, positions=22, seed=1, places="positions")


def test_a_setting_reads_some_features_of_a_log_in_parts(parts):
    training = short(0.01, batch=64, epochs=1)

    def run(columns):
        model = {"kind": "document_rate", "tower": "linear", "features": columns}
        return fit_parts(parts, model=model, training=training, measure=["queries"])

    found = run([1, 12])
    pd.testing.assert_frame_equal(run([1, -1]), found)
    assert not run([3, -1]).equals(found)
    rows = found.groupby("metric")["value"].mean()
    for name in ("dcg@1", "dcg@5", "dcg@10", "mrr@10", "ndcg@10"):
        assert rows[name] == pytest.approx(rows[f"query_{name}"])
    # A test page for each annotated query, 0 where no test page has its number.
    joined = found.loc[found["metric"] == "query_nll", "value"]
    whole = observed_pages(
        parts / "pages.parquet", DIVISION, positions=22, seed=1, places="positions"
    )
    pages = whole.sessions["test"].page
    assert (joined > 0).tolist() == np.isin(np.arange(20), pages).tolist()
    assert rows["joined_nll"] == pytest.approx(joined[joined > 0].mean())
    counts = found.groupby("metric").size()
    assert counts["query_nll"] == counts["query_dcg@10"] == 20
    assert 0.5 < rows["logged_ndcg@10"] < 1
    with pytest.raises(InputError, match="the first and the last of 12 features"):
        run([3, 14])


def test_pages_may_be_cut(parts):
    path, given = parts / "pages.parquet", {"seed": 1, "places": "positions"}
    with pytest.raises(InputError, match="expected 1 to 9"):
        observed_pages(path, DIVISION, positions=9, **given)
    whole = observed_pages(path, DIVISION, positions=22, **given)
    found = observed_pages(path, DIVISION, positions=9, cut=True, **given)
    for split, pages in found.sessions.items():
        same = whole.sessions[split]
        assert pages.where.tolist() == same.where[:, :9].tolist()
        assert pages.clicks.tolist() == same.clicks[:, :9].tolist()
    with pytest.raises(InputError, match="shows nothing down to position 1"):
        observed_pages(path, DIVISION, positions=1, cut=True, **given)


def test_examination_is_harvested_and_weights_clicks(parts):
    def bias(method, model, **more):
        rows = fit_parts(parts, model=model, method=method, **more)
        return rows[rows["metric"] == "position_bias"].set_index("position")["value"]

    by_pair = {"kind": "position_based", "tower": "embedding"}
    curve = bias({"kind": "harvesting", "estimator": "all_pairs"}, by_pair)
    training = {"learning_rate": 0.01, "batch": 64, "epochs": 1, "patience": 1, "min_delta": 0}
    weights = bias(
        {"kind": "ips", "propensities": "all_pairs"},
        {"kind": "document_rate", "tower": "linear"},
        training=training,
    )
    assert 1 < len(curve) < len(weights)  # Not all positions are known.
    assert np.isfinite(curve).all()
    # A weight has a floor: of so few pages, a position may have next to no clicks.
    known = np.clip(curve, np.log(1e-6), 0)
    assert known.tolist() == pytest.approx(weights[curve.index].tolist())
    assert (weights <= 0).all()
    assert np.isfinite(weights).all()
