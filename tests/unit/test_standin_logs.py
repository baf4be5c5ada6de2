"""The stand-ins of click logs: layout, and the figures of the real logs."""

import numpy as np
import pytest

from tests.logs import seen
from twotowers.randomness import stream
from twotowers.standins.logs import SESSIONS, YANDEX_CTR, generate_log
from twotowers.standins.wscd import LAW, draw


@pytest.fixture(scope="module")
def tiangong():
    return generate_log("tiangong", seed=0)


@pytest.fixture(scope="module")
def yandex():
    return generate_log("yandex", seed=0)


def by_position(log, column):
    return np.bincount(log["position"].to_numpy(), log[column].to_numpy())[1:]


@pytest.mark.parametrize("name", SESSIONS)
def test_the_same_seed_gives_the_same_log(name):
    assert generate_log(name, sessions=50, seed=3).equals(generate_log(name, sessions=50, seed=3))
    assert not generate_log(name, sessions=50, seed=3).equals(
        generate_log(name, sessions=50, seed=4)
    )


@pytest.mark.parametrize(("name", "vertical"), [("tiangong", ["v1", "v2"]), ("yandex", [])])
@pytest.mark.parametrize("sessions", [1, 40])
def test_layout(name, vertical, sessions):
    log = generate_log(name, sessions=sessions, seed=0)
    keys = ["query", "document", "position", *vertical]
    assert log.column_names == [*keys, "impressions", "clicks"]
    cells = [tuple(row[key] for key in keys) for row in log.to_pylist()]
    assert cells == sorted(set(cells))
    assert (log["clicks"].to_numpy() <= log["impressions"].to_numpy()).all()
    assert (log["clicks"].to_numpy() >= 0).all()
    assert seen(log)["sessions"] == sessions
    assert by_position(log, "impressions").tolist() == [seen(log)["pages"]] * 10
    # Documents belong to one query, and queries count from 0.
    pairs = log.group_by(["query", "document"]).aggregate([])
    assert pairs.num_rows == len(log["document"].unique())
    queries = log["query"].unique().to_numpy()
    assert name == "yandex" or queries.tolist() == list(range(len(queries)))


def test_a_document_keeps_its_kind_and_not_its_height(tiangong):
    pairs = tiangong.group_by(["document"]).aggregate(
        [("v1", "count_distinct"), ("v2", "count_distinct")]
    )
    assert pairs["v1_count_distinct"].unique().to_pylist() == [1]
    assert max(pairs["v2_count_distinct"].to_pylist()) > 2


def test_ctr_by_rank_of_yandex(yandex):
    pages = SESSIONS["yandex"]
    ctr = by_position(yandex, "clicks") / pages
    # Clicks are independent given the rankings, whose expected CTR is the sample's.
    error = np.sqrt(YANDEX_CTR * (1 - YANDEX_CTR) / pages)
    assert (np.abs(ctr - YANDEX_CTR) < 5 * error).all()


# WSCD-2012.

PAGES = 200_000


def measured(law):
    """Perplexities that follow from click rates, those of GCTR and RCTR, and pairs per session."""
    drawn = zip(*draw(stream("wscd stand-in", 0), PAGES, law), strict=True)
    _, documents, clicks = (np.concatenate(column) for column in drawn)
    rates = clicks.mean(0)

    def perplexity(predicted):
        bits = -rates * np.log2(predicted) - (1 - rates) * np.log2(1 - predicted)
        return (2**bits).mean()

    return perplexity(rates.mean()), perplexity(rates), len(np.unique(documents)) / PAGES


def test_the_published_perplexities_and_pairs_per_session():
    global_rate, rank_rate, pairs = measured(LAW)
    assert global_rate == pytest.approx(1.526, abs=0.01)
    assert rank_rate == pytest.approx(1.366, abs=0.01)
    assert pairs == pytest.approx(2.37, abs=0.1)
