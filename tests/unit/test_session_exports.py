"""Sessions for other libraries and back, and simulated sessions."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2

from tests.logs import count_sessions, to_sessions
from twotowers.errors import InputError
from twotowers.logs import simulated_sessions as simulated
from twotowers.logs.formats.wscd import write_wscd
from twotowers.logs.log import Log
from twotowers.logs.sessions import read_sessions, write_sessions
from twotowers.logs.simulated_sessions import stream_sessions

PAGES = {
    "split": ["log"] * 4,
    "query": ["q", "9" * 30, "q", "r"],
    "documents": [["b", "a"], ["a"], ["c", "b", "a"], ["b"]],
    "clicks": [[False, True], [False], [True, True, False], [True]],
}


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "sessions.parquet"
    write_sessions(path, [pa.table(PAGES)])
    return path


def read(path, **settings):
    return pa.Table.from_batches(read_sessions(path, **settings)).to_pydict()


# PyClick


def parsed(path):
    """The pages of a file, by the rules of PyClick's YandexRelPredChallengeParser."""
    pages = []
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = line.strip().split("\t")
        if len(entry) >= 6 and entry[2] == "Q":
            pages.append((entry[0], entry[3], entry[5:], [False] * len(entry[5:])))
        elif len(entry) == 4 and entry[2] == "C" and entry[0] == pages[-1][0]:
            pages[-1][3][pages[-1][2].index(entry[3])] = True
    return [page[1:] for page in pages]


def test_wscd_and_back(log, tmp_path):
    out = tmp_path / "wscd.txt"
    assert write_wscd(Log.read(log), out) == 4
    assert parsed(out) == list(
        zip(PAGES["query"], PAGES["documents"], PAGES["clicks"], strict=True)
    )
    to_sessions(out, tmp_path / "back.parquet", format="wscd")
    assert read(tmp_path / "back.parquet") == PAGES


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"documents": [["a\tb"]]}, r"row 1: 'a\\tb'"),
        ({"documents": [["a "]]}, "row 1: 'a '"),
        ({"query": ["two\nlines"]}, "row 1: 'two"),
        ({"documents": [["a", "a"]], "clicks": [[True, False]]}, "listed twice"),
    ],
)
def test_what_the_text_cannot_hold(tmp_path, change, message):
    page = {"split": ["a"], "query": ["q"], "documents": [["a"]], "clicks": [[True]]} | change
    columns = page | {"documents": pa.array(page["documents"], pa.list_(pa.string()))}
    columns["clicks"] = pa.array(page["clicks"], pa.list_(pa.bool_()))
    write_sessions(tmp_path / "s.parquet", [pa.table(columns)])
    with pytest.raises(InputError, match=message):
        write_wscd(Log.read(tmp_path / "s.parquet"), tmp_path / "o.txt")
    assert not (tmp_path / "o.txt").exists()


# Simulation

ORDER = np.array([[1, 0, 2], [1, 0, 2]])
LENGTHS = np.array([3, 2])
CHANCE = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3, 3))


def independent(query, documents, where, *, rng):
    chance = CHANCE[query[:, None], documents, np.arange(3)]
    return rng.random(chance.shape) < chance


def simulate(**change):
    arguments = {"sessions": 30_000, "temperature": 0.4, "rng": np.random.default_rng(1)}
    arguments |= {"queries": np.arange(2), "documents": np.tile(np.arange(3), (2, 1))}
    arguments |= {"split": "train", "clicks": independent, "lanes": {}} | change
    return stream_sessions(ORDER, lengths=LENGTHS, **arguments)


def test_simulated_pages_are_distributed_as_the_plain_simulation(tmp_path):
    batches = list(simulate(lanes={"strength": 0.5}))
    assert [len(batch) for batch in batches] == [simulated.CHUNK] * 3
    count_sessions(batches, tmp_path / "c.parquet")
    found = pq.read_table(tmp_path / "c.parquet").to_pydict()
    assert set(found["strength"]) == {0.5}
    cell = tuple(np.array(found[name]) for name in ("query", "document", "position"))
    impressions, clicks = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
    impressions[cell[0], cell[1], cell[2] - 1] = found["impressions"]
    clicks[cell[0], cell[1], cell[2] - 1] = found["clicks"]
    # Expected shares: a shuffled page has each document at any position.
    share = np.zeros((2, 3, 3))
    for query, size in enumerate(LENGTHS):
        share[query, :size, :size] = 0.4 / size / 2
        share[query, ORDER[query, :size], np.arange(size)] += 0.6 / 2
    assert impressions[share == 0].sum() == 0
    expected = 30_000 * share[share > 0]
    # Cells of a page depend on each other. This only lowers the statistic on average.
    assert ((impressions[share > 0] - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, 13)
    shown = impressions > 0
    error = clicks[shown] - (impressions * CHANCE)[shown]
    variance = (impressions * CHANCE * (1 - CHANCE))[shown]
    assert (error**2 / variance).sum() < chi2.ppf(0.9999, shown.sum())


def test_any_user_may_click():
    def cascade(query, documents, where, *, rng):
        """Clicks on the first document numbered 0, and nothing else."""
        assert query.shape == (len(documents),)
        return (documents == 0) & where

    pages = pa.Table.from_batches(simulate(clicks=cascade, sessions=500)).to_pylist()
    for page in pages:
        assert page["clicks"] == [document == 0 for document in page["documents"]]
        assert sorted(page["documents"]) == list(range(LENGTHS[page["query"]]))


def test_a_seed_gives_its_log_with_ids_and_lanes(tmp_path):
    names = {"queries": np.array([7, 9]), "lanes": {"strength": 0.5}}
    names["documents"] = np.array([[11, 12, 13], [14, 15, 0]])
    for name in ("one", "two"):
        pages = simulate(rng=np.random.default_rng(3), sessions=100, **names)
        write_sessions(tmp_path / name, pages)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    found = read(tmp_path / "one")
    assert list(found) == ["strength", "split", "query", "documents", "clicks"]
    assert {d for page in found["documents"] for d in page} == {11, 12, 13, 14, 15}
    assert set(found["strength"]) == {0.5}
