"""Stand-ins beside their targets: the program runs, and the committed table misses none."""

import numpy as np
import pandas as pd
import pytest

from scripts.standins import logs, rankings
from scripts.standins.__main__ import FOLDER, MEASURES, TARGETS, row_of, table_of
from tests.items import experiment
from twotowers.files.rankings import Rankings


def committed(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv", keep_default_na=False, dtype=str)


# Rank 10 has some 45 clicks, so its rate has a standard error of 15 %.
MISSED = {"baidu_mlm": ["mixed users: click rate over that of rank 1, ranks 2 to 10"]}


@pytest.mark.parametrize("name", MEASURES)
def test_the_committed_table_misses_no_other_target(name):
    found = committed(name)
    assert found["quantity"][found["missed"] != "0"].tolist() == MISSED.get(name, [])
    assert found["quantity"].tolist() == list(TARGETS[name])


@pytest.mark.parametrize("name", ["baidu_ultr_uva", "baidu_mlm"])
def test_the_committed_table_has_what_is_measured(name, monkeypatch):
    """But for the row of fits, which would take half a minute."""
    monkeypatch.setattr(logs, "fits_of", lambda files, names: dict.fromkeys(names, 0))
    monkeypatch.setattr(logs, "perplexity", float)
    found, expected = table_of(name, MEASURES[name]()).astype(str), committed(name)
    measured = ~expected["quantity"].str.startswith("perplexity of")
    pd.testing.assert_frame_equal(found[measured], expected[measured])
    assert measured.sum() > 10


def test_a_log_of_few_sessions(monkeypatch):
    """By one fit of each kind; those of clax2025's tests are of all its settings."""
    settings = experiment("clax2025", "laptop").settings
    assert {*logs.COUNTED, *logs.GRADIENT, *logs.REMEMBERING} <= {*settings}
    for kind in ("GRADIENT", "REMEMBERING"):
        monkeypatch.setattr(logs, kind, getattr(logs, kind)[:1])
    assert not table_of("wscd", logs.wscd(2_000))["measured"].str.contains("nan").any()


def test_rows():
    assert row_of("share", 0.099, published=0.1, within=0.02)[1:] == ("0.0990", "± 2%", "0.100", 0)
    longest = row_of("longest", 1251, published="1,300 (IPS)", accepted=[1000, 1250])
    assert longest == ("longest", "1,251", "1,000 to 1,250", "1,300 (IPS)", 1)
    assert row_of("rate", 1.6e8) == ("rate", "1.6e+08", "", "", 0)


@pytest.mark.parametrize(("shift", "share"), [(0.0, 0.0), (1e3, 1.0)])
def test_variance_between_queries(shift, share):
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(4), 500)
    features = rng.normal(size=(2000, 3)) + shift * query[:, None]
    lists = Rankings(query, np.tile(np.arange(500), 4), np.zeros(2000), features)
    assert rankings.likeness({"train": lists}) == pytest.approx(share, abs=0.01)
