"""`import twotowers as tt`: names that cost nothing until used; frames in, frames out."""

import ast
import re
import sys

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import twotowers as tt
from tests.logs import shop_rows
from tests.running import ran
from twotowers.commands.main import main
from twotowers.errors import InputError
from twotowers.intervals import ratio
from twotowers.logs.counted import CELL
from twotowers.models.user_browsing import UserBrowsing
from twotowers.root import ROOT

FURTHER = ("jax", "flax", "optax", "rax", "sklearn", "lightgbm", "seaborn", "snakemake", "pydantic",
           "yaml")  # fmt: skip
"""Packages that the base does not have."""


@pytest.fixture
def rows():
    return shop_rows(200)


# The names


def test_every_name_is_there_and_documented():
    assert set(tt.__all__) <= set(dir(tt))
    for name in tt.__all__:
        assert getattr(tt, name).__doc__
    with pytest.raises(AttributeError, match="fti"):
        tt.fti  # noqa: B018


def test_type_checkers_see_the_same_names():
    tree = ast.parse((ROOT / "twotowers" / "__init__.py").read_text())
    (block,) = (each for each in tree.body if isinstance(each, ast.If))
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == {name: f"twotowers.{module}" for name, module in tt.PUBLIC.items()}
    assert list(tt.PUBLIC) == sorted(tt.PUBLIC)


def test_a_log_is_read_tested_fitted_and_compared_without_what_trains(rows, tmp_path):
    rows.to_csv(tmp_path / "log.csv", index=False)
    code = f"""
import sys
sys.modules.update(dict.fromkeys({FURTHER}))
import twotowers as tt
import twotowers.logs.simulation
log = tt.read_log({str(tmp_path / "log.csv")!r})
assert tt.identify(log, bias=["position", "device"]).identified
tt.fit(log, "dbn", prior=(2, 0.2)).relevance()
print(len(tt.compare(log)), len(log.count().frame()))
"""
    done = ran([sys.executable, "-c", code], cwd=ROOT)
    assert done.stderr == ""
    assert done.stdout == "10 45\n"


def test_what_the_readme_shows_runs(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    practitioner, author = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    rows.to_parquet(tmp_path / "clicks.parquet")
    prices = rows[["sku"]].drop_duplicates().assign(price=range(rows["sku"].nunique()))
    prices.to_parquet(tmp_path / "features.parquet")
    brief = "training={'steps': 5, 'epochs': 1}"
    smaller = [
        (practitioner, {"[32, 16]": "[4]", '"features.parquet"': f'"features.parquet", {brief}'}),
        (author, {"[32, 16]": "[4]", "queries=300": "queries=30", "seeds=[1, 2, 3]":
                  f"seeds=[1], {brief}", "eta=1), ": "eta=1), sessions=99, "}),
    ]  # fmt: skip
    for code, parts in smaller:
        for shown, here in parts.items():
            assert shown in code
            code = code.replace(shown, here)
        names = {}
        exec(code, names)  # noqa: S102 (our own documentation)
        names.clear()
    assert len(tt.load(tmp_path / "fit.parquet").relevance()) == 15


# Frames in and out


def frames(rows):
    table = pa.Table.from_pandas(rows, preserve_index=False)
    yield rows, pd.DataFrame
    yield rows.astype({"q": "category", "sku": "category"}), pd.DataFrame
    yield table, pa.Table
    yield duckdb.from_arrow(table), pa.Table
    try:
        import polars
    except ImportError:
        return
    yield polars.from_arrow(table), polars.DataFrame
    yield polars.from_arrow(table).lazy(), polars.DataFrame


def test_frames_of_all_sorts(rows):
    expected = tt.fit(rows, "pbm").relevance()
    for frame, kind in frames(rows):
        log = tt.read_log(frame)
        assert log.pages == 200
        fitted = tt.fit(log, "pbm")
        answers = [
            fitted.relevance(),
            fitted.examination(),
            log.count().frame(),
            tt.compare(log, ["pbm"]),
        ]
        answers.append(tt.identify(log).components)
        assert all(isinstance(each, kind) for each in answers)
        relevance = answers[0] if isinstance(answers[0], pd.DataFrame) else answers[0].to_pandas()
        pd.testing.assert_frame_equal(relevance, expected)


def test_an_index_with_a_name_is_a_column(rows):
    for index in ("sid", ["sid", "rank"]):
        pd.testing.assert_frame_equal(
            tt.fit(rows.set_index(index), "pbm").relevance(), tt.fit(rows, "pbm").relevance()
        )
    assert tt.read_log(rows.set_index("sid")).pages == 200


REFUSED = [
    (lambda rows: tt.read_log([1, 2]), r"log: a list was given \(expected a path, or a frame"),
    (lambda rows: tt.read_log(rows.assign(sku=[1, "a"] * 300)), "the frame: sku: cannot be read: "),
    (
        lambda rows: tt.propensities(rows.assign(sku=1.0 * np.tile([1, 2, 3], 200))),
        "the frame: document: has type double .* pandas makes",
    ),
    (
        lambda rows: tt.fit(rows.assign(click=rows["click"].where(rows.index != 7)), "pbm"),
        "the frame: clicks: row 8: a value is missing",
    ),
    (lambda rows: tt.read_log(rows, document="skv"), "no column 'skv' .*did you mean 'sku'"),
    (lambda rows: tt.read_log(rows, gaps="closed"), "gaps: 'closed'"),
    (lambda rows: tt.read_log(rows[["sid", "device"]]), "the columns are sid, device"),
    (lambda rows: tt.fit(rows, "user_browsin"), "did you mean 'user_browsing'"),
    (lambda rows: tt.fit(rows, 3), "model: a int was given"),
    (lambda rows: tt.fit(rows, "additive"), "additive has neither counts nor expectations"),
    (lambda rows: tt.fit(rows, "pbm", priors=None), "'priors' is no option .*did you mean 'prior'"),
    (lambda rows: tt.fit(rows, "pbm", positions=2), "a page shows 3 documents"),
    (lambda rows: tt.fit(rows, "gctr").relevance(), "gctr has one probability"),
    (lambda rows: tt.fit(rows, "dbn").examination(), "dbn has no examination .*continuation"),
    (
        lambda rows: tt.fit(rows, "pbm").parameters("atraction"),
        "pbm has no part 'atraction'.*did you mean 'attraction'",
    ),
    (lambda rows: tt.compare(rows, ["pbm"], test=0), "test: 0 is out of range"),
    (lambda rows: tt.propensities(rows).swaps(pages=10, steps=0), "steps: 0 is out of range"),
]


@pytest.mark.parametrize(("asked", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused_is_named_by_row_column_and_option(rows, asked, message):
    with pytest.raises(InputError, match=message):
        asked(rows)


# Layouts


def test_the_layout_is_said_in_words(rows):
    renamed = rows.rename(columns={"q": "Query_ID", "sku": "url", "rank": "pos"})
    assert str(tt.read_log(renamed).layout) == (
        "format 'rows', with session in 'sid', query in 'Query_ID', document in 'url', "
        "position in 'pos', clicks in 'click'"
    )


def test_the_layout_may_be_given(rows):
    odd = rows.rename(columns={"q": "was gefragt wurde", "rank": "position", "sku": "rank"})
    with pytest.raises(InputError, match="the columns are"):
        tt.read_log(odd)
    log = tt.read_log(odd, query="was gefragt wurde", document="rank")
    pd.testing.assert_frame_equal(log.count().frame(), tt.read_log(rows).count().frame())


def test_a_folder_of_several_kinds(tmp_path):
    (tmp_path / "a.csv").touch()
    (tmp_path / "b.parquet").touch()
    with pytest.raises(InputError, match=r"these kinds: \.csv, \.parquet"):
        tt.read_log(tmp_path)


def test_rows_without_a_session_are_impressions(rows):
    without = rows.drop(columns="sid")
    log = tt.read_log(without)
    assert log.counted
    pd.testing.assert_frame_equal(log.count().frame(), tt.read_log(rows).count().frame())
    with pytest.raises(InputError, match="ubm needs pages, and the log is counted"):
        tt.fit(log, "ubm")
    with pytest.raises(InputError, match="its pages are not known"):
        tt.compare(log)
    with pytest.raises(InputError, match=r"row 1: 5 clicks in 1 impressions .*column of impress"):
        tt.fit(without.assign(click=5), "pbm")


# Identifiability


def test_bias_columns_are_those_of_the_source(rows):
    apart = rows.assign(device=np.where(rows["sid"] % 2, "phone", "desk"))
    apart["sku"] += apart["device"]
    found = tt.identify(tt.read_log(apart), bias=["position", "device"])
    assert not found.identified
    components = found.components.groupby("device")["component"].nunique()
    assert components.tolist() == [1, 1]
    assert len(found.swaps) == 1
    assert {"query", "document", "position", "device", "position_to", "cost"} <= set(found.swaps)


def test_positions_are_a_bias_feature_under_another_name(tmp_path):
    """Page 1 misses its second place: its documents are first and second, shown at 0 and 2."""
    path, out = tmp_path / "log.csv", tmp_path / "out.parquet"
    path.write_text("sid,q,sku,rank,click\n1,7,a,0,0\n1,7,b,2,1\n2,7,a,0,1\n2,7,b,1,0\n")
    kept = ["--column", "shown_at=rank", "--first", "0", "--gaps", "close", "--bias"]
    assert main(["count", str(path), *kept, "shown_at", "--out", str(out)]) == 0
    expected = [["a", 1, 0, 2, 1], ["b", 2, 1, 1, 0], ["b", 2, 2, 1, 1]]
    columns = ["document", "position", "shown_at", "impressions", "clicks"]
    assert pd.read_parquet(out)[columns].to_numpy().tolist() == expected
    assert main(["count", str(path), *kept, "shown_at", "--to", "sessions", "--out", str(out)]) == 0
    assert pd.read_parquet(out)["shown_at"].map(list).tolist() == [[0, 2], [0, 1]]
    table, weights = tmp_path / "table.csv", tmp_path / "weights.csv"
    assert main(["propensities", str(path), *kept, "shown_at", "--out", str(table)]) == 1
    assert pd.read_csv(table)["shown_at"].tolist() == [0, 1, 2]
    assert main(["weights", str(path), *kept, "shown_at", "--out", str(weights)]) == 0
    assert pd.read_csv(weights)["shown_at"].tolist() == [0, 2, 0, 1]
    # Document b is shown at 1 and 2, and no document at 0 and elsewhere.
    assert main(["identify", str(path), *kept, "shown_at"]) == 1
    wrong = ["count", str(path), "--column", "shown_at=rank", "--bias", "shwon_at"]
    assert main([*wrong, "--out", str(out)]) == 2
    settings = {"columns": {"shown_at": "rank"}, "bias": ["shown_at"], "first": 0, "gaps": "close"}
    log = tt.read_log(path, **settings)
    assert log.count([*CELL, "shown_at"]).frame()[columns].to_numpy().tolist() == expected
    assert log.count().frame()["impressions"].tolist() == [2, 2]
    assert log.count().write(tmp_path / "cells.parquet") == log.pages == 2


# Fits


def test_a_model_may_be_an_object_or_the_name_of_a_file(rows):
    names = ("ubm", "user_browsing", UserBrowsing())
    one, *others = (tt.fit(rows, model).examination() for model in names)
    for other in others:
        pd.testing.assert_frame_equal(one, other)
    # The best model is compared with itself, so its difference has no error.
    assert tt.compare(rows, ["pbm", "dctr"])["error"].isna().tolist() == [True, False]


def test_relevance_with_satisfaction_is_the_product(rows):
    fitted = tt.fit(rows, "dbn")
    keys = ["query", "document"]
    found = fitted.relevance().set_index(keys)
    parts = [fitted.parameters(part).set_index(keys) for part in ("attraction", "satisfaction")]
    one, other = (part.loc[found.index] for part in parts)
    np.testing.assert_allclose(found["estimate"], one["estimate"] * other["estimate"])
    relative = [part["error"] / part["estimate"] for part in (one, other)]
    np.testing.assert_allclose(found["error"] / found["estimate"], sum(relative))
    assert (found["low"] < found["estimate"]).all()
    assert (found["high"] <= 1).all()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_no_writer_replaces_the_log_itself(rows, tmp_path, ending):
    path = tmp_path / f"log.{ending}"
    rows.to_csv(path, index=False) if ending == "csv" else rows.to_parquet(path)
    before, log = path.read_bytes(), tt.read_log(path)
    fitted = tt.fit(log, "pbm")
    writers = [
        tt.propensities(log).write,
        tt.diagnose(log).propensities.write,
        tt.weights(log).write,
        lambda path: tt.weights(log).write(path, per="position"),
        lambda path: fitted.judgments().write(path, "csv"),
        *([fitted.save] if ending == "parquet" else []),
    ]
    for write in writers:
        with pytest.raises(tt.InputError, match="is the log itself"):
            write(path)
        assert path.read_bytes() == before
        write(tmp_path / f"other.{ending}")


def test_a_part_of_a_log(rows):
    parts = tt.read_log(rows).split({"train": 0.8, "test": 0.2}, seed=1)
    assert (parts["train"].pages, parts["test"].pages) == (160, 40)
    assert "160 of its pages" in repr(parts["train"])
    assert tt.fit(parts["train"], "pbm").relevance()["impressions"].sum() == 3 * 160
    again = parts["train"].split({"a": 0.5, "b": 0.5})
    assert (again["a"].rows | again["b"].rows).tolist() == parts["train"].rows.tolist()
    assert again["a"].pages == again["b"].pages == 80
    for shares in ({"a": 0.5, "b": 0.4}, {"a": 1.5, "b": -0.5}):
        with pytest.raises(InputError, match="shares"):
            tt.read_log(rows).split(shares)


def test_a_part_of_a_log_is_asked_what_a_log_is(rows, tmp_path):
    path = tmp_path / "rows.csv"
    rows.assign(device=np.where(rows["sid"] % 2, "phone", "desk")).to_csv(path, index=False)
    part = tt.read_log(path).split({"train": 0.8, "test": 0.2}, seed=1)["train"]
    own = pd.read_csv(path)
    own = own[np.repeat(part.rows, 3)]
    assert part.seen == {"pages": 160, "clicks": own["click"].sum()}
    by = ["position", "device"]
    for of in (["position"], by):
        found, expected = (tt.propensities(log, bias=of).frame() for log in (part, own))
        pd.testing.assert_frame_equal(found, expected)
        assert tt.identify(part, bias=of).identified == tt.identify(own, bias=of).identified
        tt.weights(part, bias=of).write(tmp_path / "weights.csv")
        assert len(pd.read_csv(tmp_path / "weights.csv")) == len(own)
        assert tt.diagnose(part, bias=of).evidence.health.pages == 160
    pd.testing.assert_frame_equal(
        part.count([*CELL, "device"]).frame(), tt.read_log(own).count([*CELL, "device"]).frame()
    )
    for write in (tt.weights(part).write, tt.diagnose(part).propensities.write):
        with pytest.raises(InputError, match="is the log itself"):
            write(path)


def test_pages_longer_than_the_fit(rows):
    fitted = tt.fit(rows[rows["rank"] < 3], "pbm")
    with pytest.raises(InputError, match="a page shows 3 documents"):
        fitted.evaluate(rows)
    assert tt.fit(rows[rows["rank"] < 3], "pbm", positions=3).evaluate(rows)["perplexity"] > 1


def test_errors_of_differences_hold_the_truth():
    """The error of a ratio of sums over clusters, in 2,000 samples whose true ratio is known."""
    rng, inside = np.random.default_rng(0), 0
    for _ in range(2000):
        sizes = rng.integers(5, 15, 60)
        query = np.repeat(np.arange(30), 2)
        shared = np.repeat(rng.normal(0, 0.3, 30), 2)
        sums = sizes * (0.5 + shared) + rng.normal(0, 1, 60)
        value, error = ratio(np.bincount(query, sums), np.bincount(query, sizes))
        inside += abs(value - 0.5) < 2.045 * error  # Student's t of 29 degrees of freedom
    assert 0.93 < inside / 2000 < 0.97
