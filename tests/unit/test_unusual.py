"""Bots: users, or pages, whose clicks are out of line; and logs without them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, false_discovery_control

import twotowers as tt
from tests.simulated_logs import rows_of
from twotowers.commands.main import main
from twotowers.logs.unusual import _at_most, _false, _of_page, unusual

PLACES = np.arange(1, 11)


def rows(bots=0.05, clicks=1.0, number=4, spread=0.0, seed=0, pages=4000) -> pd.DataFrame:
    """Rows of people who examine rank k with 1 / k, and of bots that click with a fixed chance."""
    rng = np.random.default_rng(seed)
    attraction = rng.beta(1, 4, (40, 14))
    query = rng.integers(40, size=pages)
    order = np.argsort(rng.normal(size=(pages, 14)) - 3 * attraction[query], 1)[:, :10]
    bot = rng.random(pages) < bots
    user = np.where(bot, 1000 + rng.integers(number, size=pages), rng.integers(150, size=pages))
    habit = rng.normal(0, spread, 150)[np.where(bot, 0, user)]
    chance = attraction[query[:, None], order] * PLACES ** -(1 + habit)[:, None]
    chance = np.where(bot[:, None], clicks, np.minimum(chance, 1))
    return rows_of(query, order, rng.random(chance.shape) < chance, user=[f"u{k}" for k in user])


@pytest.mark.parametrize(
    "how",
    [{}, {"number": 1}, {"number": 20}, {"bots": 0.5}, {"clicks": 0.5}, {"clicks": 0.7}],
    ids=str,
)
def test_bots_are_found_and_people_are_not(how):
    log = rows(**how)
    found = unusual(tt.read_log(log))
    bot = log.groupby("session")["user"].first().str.len() == 5
    assert found.rows[bot].mean() > 0.98
    assert not found.rows[~bot].any()
    assert found.pages == pytest.approx(bot.mean(), abs=0.01)
    assert set(found.names) <= set(log["user"][log["user"].str.len() == 5])
    assert found.ratio > 2
    if "clicks" not in how:  # Without users, pages that are clicked all over remain.
        found = unusual(tt.read_log(log.drop(columns="user")))
        assert found.rows[bot].all()
        assert found.rows[~bot].mean() < 0.001


@pytest.mark.parametrize("spread", [0.0, 0.2])
@pytest.mark.parametrize("users", [True, False])
def test_people_who_differ_are_no_bots(spread, users):
    numbers = []
    for seed in range(3):
        log = rows(bots=0, spread=spread, seed=seed)
        numbers.append(unusual(tt.read_log(log if users else log.drop(columns="user"))).number)
    assert sum(numbers) == 0


@pytest.mark.parametrize(("length", "rate"), [(3, 0.1), (5, 0.1), (5, 0.3), (10, 0.6)])
def test_pages_that_are_clicked_all_over_are_found_on_short_pages_too(length, rate):
    """Of 2.5 % bots, where users differ by a factor of mean 1 and variance .28."""
    rng = np.random.default_rng(length)
    query, number = rng.integers(40, size=(2, 3000))
    attraction = rate * rng.gamma(2, 0.5, (40, length + 3))[query]
    order = np.argsort(0.3 * rng.normal(size=attraction.shape) - attraction, 1)[:, :length]
    chance = np.take_along_axis(attraction, order, 1) / np.arange(1, length + 1)
    chance *= np.exp(0.5 * rng.normal(size=(3000, 1)) - 0.125)
    clicks, bot = rng.random(order.shape) < chance, number == 0
    people = unusual(tt.read_log(rows_of(query, order, clicks)))
    assert people.clicks < 0.001
    clicks[bot] = True
    found = unusual(tt.read_log(rows_of(query, order, clicks)))
    assert found.rows[bot].all()
    assert found.rows[~bot].sum() < 0.1 * bot.sum()


def test_a_user_who_clicks_at_random_and_much_is_out_of_line():
    found = unusual(tt.read_log(rows(bots=0.3, number=1, clicks=0.12)))
    assert found.names == ["u1000"]


def test_bounds_are_those_of_chance():
    """Hoeffding's bound is above the binomial law, and is exact where all is clicked."""
    shown, clicked = (each.ravel() for each in np.meshgrid([1, 5, 40], np.arange(41)))
    shown, clicked = shown[clicked <= shown], clicked[clicked <= shown]
    for mean in (0.05, 0.3):
        bound = _at_most(shown, clicked, mean * shown)
        assert (bound >= binom.sf(clicked - 1, shown, mean) * (1 - 1e-9)).all()
        assert (bound == 1).tolist() == (clicked <= mean * shown).tolist()
        whole = clicked == shown
        np.testing.assert_allclose(bound[whole], mean ** shown[whole])
    # C(5, c) .1^c (1 + .5) (1 + 1), and nothing above 1.
    found = _of_page(np.full(4, 5), np.array([0, 1, 2, 3]), np.full(4, 0.5), 0.5)
    assert found == pytest.approx([1, 0.5, 0.15, 0.03])


def test_false_discoveries_are_controlled_as_by_scipy():
    chance = np.random.default_rng(0).random(200) ** 6
    for level in (0.01, 0.2):
        expected = false_discovery_control(chance) <= level
        assert _false(chance, np.ones(200), level).tolist() == expected.tolist()
    assert not _false(np.ones(3), np.ones(3), 0.5).any()
    # So many equal pages in one row are as many tests.
    one, often = np.array([0.02, 0.5]), np.array([1.0, 9.0])
    assert not _false(one, often, 0.05).any()
    assert _false(one, often[::-1], 0.05).tolist() == [True, False]


def test_without_bots_the_curve_is_that_of_people(tmp_path, capsys):
    log = rows(bots=0.1)
    with_bots, without = (tt.propensities(tt.read_log(log, bots=each)) for each in ("keep", "drop"))
    truth = 1 / PLACES[1:]

    def inside(found):
        table = found.frame().iloc[1:]
        return table["low"].le(truth).to_numpy() & table["high"].ge(truth).to_numpy()

    assert inside(with_bots).mean() < 0.2
    assert inside(without).mean() > 0.8
    log.to_csv(tmp_path / "log.csv", index=False)
    assert main(["propensities", str(tmp_path / "log.csv"), "--bots", "drop"]) == 0
    capsys.readouterr()
    people = tt.read_log(log[log["user"].str.len() < 5])
    assert tt.read_log(log, bots="drop").pages == people.pages
    assert tt.read_log(log, bots="drop").seen["pages_of_bots"] == 4000 - people.pages


def diagnosed(log: pd.DataFrame, **how) -> tuple[tt.Diagnosis, str]:
    found = tt.diagnose(tt.read_log(log, **how))
    return found, str(found)


def test_bots_are_amber_and_named_and_the_curve_without_them_is_given():
    log = rows(bots=0.05, number=1)
    found, text = diagnosed(log)
    assert all(each.colour != "green" for each in found.recommendations)
    assert "1 user (u1000) with " in text
    assert "--bots drop" in text
    _, with_bots, without = found.evidence.without_bots
    assert without < with_bots / 1.5
    facts = found.frame().set_index("name")["value"]
    share = 100 * (log["user"] == "u1000").mean()
    assert facts["unusual_pages"] == pytest.approx(share)
    assert facts["largest_pages"] == pytest.approx(share)
    assert facts["unusual_clicks"] > share
    people, text = diagnosed(log, bots="drop")
    assert people.recommendations[0].colour == "green"
    assert "out of line" not in text


def test_a_bot_that_makes_most_clicks_is_what_is_said_first():
    found, text = diagnosed(rows(bots=0.5, number=1, pages=1500))
    assert "1 user (u1000) with " in found.recommendations[0].answer
    assert "may have been left out" not in text


def test_a_position_of_its_own_is_amber_and_named():
    log = rows(bots=0, pages=8000)
    rng = np.random.default_rng(1)
    advert = (log["position"] == 4) & (rng.random(8000) < 0.7)[log["session"]]
    log["clicks"] *= np.where(advert & (rng.random(len(log)) < 0.7), 0, 1)
    log["sponsored"] = advert.astype(int)
    found, text = diagnosed(log)
    assert found.recommendations[0].colour == "amber"
    assert "position 4 breaks with the positions above and below" in text
    assert "an advert, a module" in text
    assert "--bias position sponsored" in text
    known = tt.diagnose(log, bias=["position", "sponsored"])
    assert not len(known.evidence.odd)


def test_adverts_that_stand_nowhere_else_are_named_and_no_swap_is_proposed():
    log = rows(bots=0, pages=8000)
    log.loc[log["position"] == 4, "document"] += 100
    _, text = diagnosed(log)
    assert "Position 4 has documents that stand at no other position: an advert, a module?" in text
    assert "Exchange" not in text


def test_a_curve_is_drawn_with_a_line_for_each_device():
    log = rows(bots=0, pages=1500)
    log["device"] = np.where(log["session"] % 2, "web", "phone")
    found = tt.propensities(log, bias=["position", "device"])
    axes = found.plot()
    assert axes.get_legend_handles_labels()[1] == ["phone", "web"]
    assert axes.containers[0][0].get_xdata().tolist() == PLACES.tolist()
    html = found._repr_html_()
    assert html.count("<polyline") == 2
    assert html.count("<circle") == 20 + 2
    assert "array(" not in html + repr(found)
    assert "<svg" in tt.diagnose(log)._repr_html_()
    assert "<pre>" in tt.weights(log)._repr_html_()
