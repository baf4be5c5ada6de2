"""Rows of several equal pages (`page_count`): a weight, and as if each page had its row."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import twotowers as tt
from twotowers.analysis.comparison import predictions
from twotowers.commands.main import main
from twotowers.logs.unusual import unusual

MODELS = ("rctr", "pbm", "ubm", "dbn")


def pages(rows=400, length=6, bots=0.1, seed=0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of pages, and how often each is there, which is not at all for some."""
    rng = np.random.default_rng(seed)
    clicks = rng.random((rows, length)) < 0.4 / np.arange(1, length + 1)
    bot = rng.random(rows) < bots
    clicks[bot] = True
    columns = {
        "query": rng.integers(15, size=rows),
        "documents": [rng.permutation(length + 1)[:length].tolist() for _ in range(rows)],
        "clicks": clicks.astype(int).tolist(),
        "user": np.where(bot, 99, rng.integers(40, size=rows)),
    }
    return pd.DataFrame(columns), rng.integers(0, 5, rows)


def both(users=True, **how) -> tuple:
    """The log with a count, and with a row per page."""
    rows, number = pages()
    rows = rows if users else rows.drop(columns="user")
    single = rows.loc[rows.index.repeat(number)].reset_index(drop=True)
    return tt.read_log(rows.assign(page_count=number), **how), tt.read_log(single, **how)


def alike(one, other):
    pd.testing.assert_frame_equal(one, other, check_dtype=False, rtol=1e-9)


@pytest.mark.parametrize("how", [{}, {"bots": "drop"}, {"seen": "clicked+1"}], ids=str)
def test_what_is_read_and_counted(how):
    for one, other in (both(**how), both(users=False, **how)):
        assert (one.pages, one.shown, one.clicks, one.seen) == (
            other.pages, other.shown, other.clicks, other.seen
        )  # fmt: skip
        assert one.times is not None
        for by in (["query", "document", "position"], ["query", "position", "last_click"]):
            alike(one.count(by).frame(), other.count(by).frame())


@pytest.mark.parametrize("users", [True, False])
def test_bots(users):
    one, other = (unusual(each.holding()) for each in both(users))
    assert one.number == other.number > 0
    assert one.names == other.names
    for name in ("pages", "clicks", "ratio"):
        assert getattr(one, name) == pytest.approx(getattr(other, name))


@pytest.mark.parametrize("model", MODELS)
def test_fits_and_what_they_predict(model):
    (one, other), fits = both(), [tt.fit(each, model) for each in both()]
    assert fits[0].evaluate(one) == pytest.approx(fits[1].evaluate(other), rel=1e-6)
    pair = [predictions(fits[:1], each) for each in (one, other)]
    pd.testing.assert_frame_equal(*pair, check_dtype=False, rtol=1e-6)
    predicted = fits[0].predict(one)
    assert predicted["page_count"].sum() == len(fits[1].predict(other))


def test_curves_weights_and_answers():
    one, other = both()
    alike(*(tt.propensities(each).frame() for each in (one, other)))
    alike(*(tt.weights(each).frame() for each in (one, other)))
    facts = [tt.diagnose(each).frame().set_index("name")["value"] for each in (one, other)]
    order = ["clicked_alike", "repeated_pages", "unseen_pairs", "unseen_queries"]
    assert not {*facts[0].index} & {*order}
    alike(facts[0].to_frame(), facts[1].drop(index=order).to_frame())


def test_parts_are_drawn_page_by_page():
    log, _ = both()
    parts = log.split({"one": 0.5, "other": 0.3, "rest": 0.2})
    assert sum(each.pages for each in parts.values()) == log.pages
    assert sum(each.clicks for each in parts.values()) == log.clicks
    assert abs(parts["one"].pages / log.pages - 0.5) < 0.06
    again = parts["one"].split({"a": 0.5, "b": 0.5})
    assert sum(each.clicks for each in again.values()) == parts["one"].clicks
    few = parts["one"].part(np.arange(len(parts["one"].times)) < 9)
    assert few.pages == parts["one"].times[:9].sum()
    alike(few.count(["query"]).frame(), few.part(np.ones(9, bool)).count(["query"]).frame())
    with pytest.raises(tt.InputError, match=r"leave none for '[ab]'"):
        tt.read_log(pages(1, bots=0)[0].assign(page_count=1)).split({"a": 0.5, "b": 0.5})


def test_files(tmp_path, monkeypatch):
    rows, number = pages(30)
    monkeypatch.chdir(tmp_path)
    rows.assign(page_count=number).to_parquet("counted.parquet")
    rows.loc[rows.index.repeat(number)].to_parquet("single.parquet")
    for name in ("counted", "single"):
        for to, out in (("wscd", f"{name}.txt"), ("sessions", f"{name}.sessions.parquet")):
            assert main(["count", f"{name}.parquet", "--to", to, "--out", out]) == 0
        assert main(["weights", f"{name}.parquet", "--out", f"{name}.csv"]) == 0
    assert (tmp_path / "counted.txt").read_text() == (tmp_path / "single.txt").read_text()
    read = [tt.read_log(f"{name}.sessions.parquet") for name in ("counted", "single")]
    alike(*(each.count().frame() for each in read))
    weighed = pd.read_csv("counted.csv")
    assert weighed["page_count"].sum() == len(pd.read_csv("single.csv"))


@pytest.mark.parametrize("command", ["propensities", "diagnose", "fit", "count"])
def test_memory_does_not_grow_with_the_count(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"query": [1, 1, 1], "documents": [["a", "b"], ["b", "a"], ["a", "b"]],
            "clicks": [[1, 0], [0, 1], [0, 0]], "page_count": [18_000_000] * 3}  # fmt: skip
    pd.DataFrame(rows).to_parquet("log.parquet")
    how = {"fit": ["--model", "ubm", "--test", "0.2"]}.get(command, ["--out", "out.parquet"])
    how = ["--out", "out.html"] if command == "diagnose" else how
    main([command, "log.parquet", *how])  # Imports and compiled code are no part of it.
    tracemalloc.start()
    assert main([command, "log.parquet", *how]) in (0, 1)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
