"""Towers trained on pages that memory does not hold; and fits that go on after they were killed."""

import jax
import numpy as np
import pandas as pd
import pytest
from flax import nnx

import twotowers as tt
from tests.simulated_logs import linear_log
from twotowers.files import checkpoints
from twotowers.fitting import streaming
from twotowers.logs import page_stream
from twotowers.logs.page_stream import Lookup, PageStream

PAGES, QUERIES, SHOWN = 3_000, 20, 3
TRAINING = {"epochs": 4, "learning_rate": 0.02, "batch": 64, "patience": 9, "min_delta": 0}
SMALL = {"SLICE": 50, "TOGETHER": 7, "HELD_OUT": 200}
MODEL = tt.TwoTower("linear", click_model="dbn", parts={"satisfaction": "embedding"})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("pages"), np.random.default_rng(0)
    log, table = linear_log(rng, PAGES, QUERIES, SHOWN)
    log.to_parquet(folder / "log.parquet")
    table.to_parquet(folder / "features.parquet")
    return {"log": str(folder / "log.parquet"), "features": str(folder / "features.parquet")}


@pytest.fixture(scope="module", autouse=True)
def small():
    """Runs and pieces of few pages."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(page_stream, name, value)
        patch.setattr(streaming, "PIECE", 640)
        yield


@pytest.fixture(scope="module")
def streamed(files):
    """A fit to pages that are read meanwhile."""
    return fitted(files)


def fitted(files, memory="1KB", **how):
    log = tt.read_log(files["log"], memory=memory)
    return tt.fit(log, MODEL, features=files["features"], training=TRAINING, **how)


def test_every_page_once_a_pass_in_another_order(files):
    log = tt.read_log(files["log"])
    lookups = {"pair": Lookup.of(log, ["query", "document"])}
    shares = {"train": 0.8, "validation": 0.1, "test": 0.1}
    pages = PageStream(log, SHOWN, lookups, shares)
    held_out = [pages.pages(name) for name in ("validation", "test")]
    assert all(0 < len(each["page"]) <= 300 for each in held_out)
    assert pages.units + sum(len(each["page"]) for each in held_out) == PAGES

    def passes(seed, skipped=0, sizes=(pages.units // 3 + 1,)):
        pieces = pages.pieces(seed, iter(sizes * 99), skipped)
        found = np.concatenate([next(pieces)["page"] for _ in range(9)])
        pieces.close()
        return found

    first = passes(1)[: pages.units]
    assert len({*first}) == pages.units
    assert not {*first} & {*np.concatenate([each["page"] for each in held_out])}
    assert (np.diff(first) < 0).mean() > 0.4
    second = passes(1)[pages.units : 2 * pages.units]
    assert {*second} == {*first}
    assert (second != first).any()
    assert (passes(2)[:50] != first[:50]).any()
    # What was trained on is skipped, also in another pass.
    for skipped in (100, pages.units + 5):
        np.testing.assert_array_equal(passes(1, skipped)[:300], passes(1)[skipped : skipped + 300])


def test_a_page_is_as_in_the_log(files):
    log = tt.read_log(files["log"])
    lookups = {"pair": Lookup.of(log, ["query", "document"])}
    pages = PageStream(log, SHOWN, lookups, {"train": 0.4, "validation": 0.3, "test": 0.3})
    rows = pages.pages("test")
    whole = pd.read_parquet(files["log"])
    clicks = whole["clicks"].to_numpy(bool).reshape(-1, SHOWN)
    np.testing.assert_array_equal(rows["clicks"], clicks[rows["page"]])
    documents = whole["document"].to_numpy().reshape(-1, SHOWN)
    shown = lookups["pair"].ids["document"].to_numpy()[rows["pair"]]
    np.testing.assert_array_equal(shown, documents[rows["page"]])
    shown, clicked = pages.totals()
    assert 0 < shown[0] <= pages.units
    assert (shown == shown[0]).all()
    assert ((clicked > 0) & (clicked < shown)).all()


def test_streamed_as_good_as_in_memory_and_it_is_said(files, streamed):
    in_memory = fitted(files, "1GB")
    assert "pages are in memory" in str(in_memory)
    assert "pages are read while towers are trained" in str(streamed)
    log = tt.read_log(files["log"])
    one, other = (each.evaluate(log)["log_likelihood"].item() for each in (in_memory, streamed))
    assert one == pytest.approx(other, abs=0.005)
    counted = tt.fit(
        tt.read_log(files["log"], memory="1KB"),
        tt.TwoTower("linear", click_model="pbm"),
        features=files["features"],
        training=TRAINING,
    )
    assert "counts are fitted: " in str(counted)


class Killed(Exception):
    """In the place of a signal."""


@pytest.mark.parametrize("memory", ["1GB", "1KB"])
def test_goes_on_from_any_state(files, streamed, tmp_path, monkeypatch, memory):
    monkeypatch.setattr(streaming, "SECONDS", 0)
    monkeypatch.setattr("twotowers.fitting.gradient.REPORT", 1)
    kept, save, saved = tmp_path / "state", checkpoints.Checkpoint.save, []

    def killed(self, progress, state):
        save(self, progress, state)
        saved.append(progress)
        if len(saved) == 3:
            raise Killed

    monkeypatch.setattr(checkpoints.Checkpoint, "save", killed)
    with pytest.raises(Killed):
        fitted(files, memory, checkpoint=kept)
    monkeypatch.setattr(checkpoints.Checkpoint, "save", save)
    other = {"log": files["log"], "features": files["features"]}
    with pytest.raises(tt.InputError, match="it is of another fit"):
        tt.fit(
            tt.read_log(other["log"], memory=memory),
            MODEL,
            features=other["features"],
            training={**TRAINING, "learning_rate": 0.1},
            checkpoint=kept,
        )
    whole = streamed if memory == "1KB" else fitted(files, memory)
    assert parameters(fitted(files, memory, checkpoint=kept)) == parameters(whole)
    (tmp_path / "state.0").write_text("none")
    with pytest.raises(tt.InputError, match="it is no checkpoint"):
        fitted(files, memory, checkpoint=kept)


def parameters(fit) -> list:
    return [np.asarray(each).tolist() for each in jax.tree.leaves(nnx.state(fit.fitted[0].towers))]
