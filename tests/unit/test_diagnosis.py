"""`tt.diagnose` and `twotowers diagnose`: what it says of logs whose truth is known."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import twotowers as tt
from tests.browser import check_page, needs_chromium, opened
from tests.simulated_logs import rows_of
from twotowers.commands.main import main
from twotowers.diagnosis.evidence import ABOVE
from twotowers.diagnosis.page import Recommendation, Words, recommendations
from twotowers.logs.features import read_features
from twotowers.logs.health import copied_lines

EXAMINATION = np.array([1, 0.87, 0.46, 0.30, 0.21, 0.12])
PLACES = len(EXAMINATION)


def orders(kind: str, pages: int, rng) -> np.ndarray:
    """[pages, places] which document of a query is where."""
    noise = rng.normal(0, 1, (pages, PLACES)) * (kind != "fixed")
    noise[:, 3:] += 100 * (kind in ("components", "bridge"))
    return np.argsort(np.arange(PLACES) + noise, 1)


def pages_of(kind: str, pages: int = 20_000, *, users: str = "product", queries: int = 200, seed=0):
    """Query, documents and clicks of some pages; of a bridge, of one more."""
    rng = np.random.default_rng(seed)
    query = rng.integers(queries, size=pages)
    attraction = -np.sort(-rng.beta(1, 4, (queries, PLACES)), 1)
    order = orders(kind, pages, rng)
    pull = attraction[query[:, None], order]
    chance = rng.random(order.shape)
    clicks = chance < pull * EXAMINATION
    if users == "cascade":
        reading = np.ones(pages, bool)
        for place in range(PLACES):
            clicks[:, place] = reading & (chance[:, place] < pull[:, place])
            reading &= rng.random(pages) < np.where(clicks[:, place], 0.3, 0.95)
    if kind == "bridge":
        again = order[0].copy()
        again[[2, 3]] = again[[3, 2]]
        bridging = clicks[0].copy()
        bridging[[2, 3]] = True
        query, order = np.append(query, query[0]), np.vstack([order, again])
        clicks = np.vstack([clicks, bridging])
    return query, order, clicks


def frame_of(query, order, clicks) -> pd.DataFrame:
    """A row per page."""
    return pd.DataFrame(
        {"query": query, "documents": list(order), "clicks": list(clicks.astype(int))}
    )


def cells_of(query, order, clicks) -> pd.DataFrame:
    """The same log, counted."""
    rows = rows_of(query, order, clicks).drop(columns="session").assign(impressions=1)
    return rows.groupby(["query", "document", "position"], as_index=False).sum()


def colours(found) -> list[str]:
    return [each.colour for each in found.recommendations]


def advice(evidence) -> Recommendation:
    return recommendations(evidence, Words(evidence))[2]


def answers(found, section: str) -> str:
    (own,) = (each["answer"] for each in found.page["sections"] if each["name"] == section)
    return " ".join(own)


@pytest.fixture(scope="module")
def four() -> dict[str, pd.DataFrame]:
    kinds = ("strong", "bridge", "components", "fixed")
    return {kind: cells_of(*pages_of(kind)) for kind in kinds}


@pytest.fixture(scope="module")
def said(four) -> dict[str, tt.Diagnosis]:
    return {kind: tt.diagnose(log) for kind, log in four.items()}


@pytest.mark.parametrize(
    ("kind", "identified", "expected", "phrase"),
    [
        ("strong", True, ["green", "green", "green"], "Yes, at all 6 positions"),
        (
            "bridge",
            True,
            ["green", "red", "red"],
            "effective swaps connect positions 4, 5, 6 to the others",
        ),
        ("components", False, ["green", "red", "red"], "The log falls into 2 parts"),
        ("fixed", False, ["green", "red", "red"], "No document was shown at two positions"),
    ],
)
def test_four_logs(four, said, kind, identified, expected, phrase):
    log, found = four[kind], said[kind]
    assert colours(found) == expected
    assert phrase in found.recommendations[1].answer
    assert tt.identify(log).identified == identified
    curve = tt.propensities(log).frame()
    beyond = (curve["reason"] == "") & curve["estimate"].notna()
    assert beyond.tolist() == {"strong": [True] * 6, "fixed": [True] + [False] * 5}.get(
        kind, [True] * 3 + [False] * 3
    )
    warned = "\n".join(tt.fit(log, "pbm").notes())
    assert ("the log has no evidence at" in warned) == (kind in ("components", "fixed"))
    assert ("the log has little evidence at position 4, 5, 6" in warned) == (kind == "bridge")


@pytest.mark.parametrize("kind", ["bridge", "components", "fixed"])
def test_what_is_red_says_which_swap_to_run(said, kind):
    found = said[kind]
    assert found.recommendations[2].action.startswith("Exchange the documents of positions")
    swaps = found.tables()["plan"]
    errors = swaps["worst"].to_numpy(float)
    assert not errors[0] < 1  # of the log as it is
    assert errors[-1] < 1


def test_no_estimate_is_without_an_interval_or_a_reason(said):
    for found in said.values():
        table = found.frame()
        none = table["value"].isna()
        assert (table.loc[none, "reason"] != "").all()
        assert (table.loc[~none, ["low", "high"]].isna().sum(axis=1) != 1).all()
        assert (table["meaning"].str.len() > 10).all()


def test_no_light_is_green_for_a_curve_of_the_wrong_form():
    rng = np.random.default_rng(3)
    document, place = (each.ravel() for each in np.indices((400, PLACES)))
    odds = np.exp(rng.normal(-0.5, 1, 400))[document] * EXAMINATION[place]
    log = pd.DataFrame({"query": document // 2, "document": document, "position": place + 1})
    log = log.assign(impressions=60, clicks=rng.binomial(60, odds / (1 + odds)))
    found = tt.diagnose(log)
    assert colours(found) == ["green", "amber", "amber"]
    assert found.recommendations[1].answer.startswith("As odds, at all 6 positions")


def test_cascade_users_are_noticed():
    users = {name: pages_of("strong", 3_000, users=name) for name in ("product", "cascade")}
    found = {name: tt.diagnose(frame_of(*pages)) for name, pages in users.items()}
    assert "Users stop after a click" in answers(found["cascade"], "models")
    assert "Users stop" not in answers(found["product"], "models")
    light = found["cascade"].recommendations[2]
    assert light.colour == "amber"
    assert light.action.split()[-1] in ABOVE


def test_equal_pages_that_chance_explains_are_no_copies():
    """Five queries in turn: pages that are five apart are alike more often than others."""
    rng, pages = np.random.default_rng(0), 3_000
    rows = pd.DataFrame(
        {
            "session": np.arange(pages),
            "query": np.arange(pages) % 5,
            "document": rng.integers(6, size=pages),
            "position": 1,
            "clicks": (rng.random(pages) < 0.3).astype(int),
        }
    )
    half = rows[: pages // 2]
    copied = pd.concat([half, half.assign(session=half["session"] + pages)])
    for given, copies in ((rows, 0), (copied, 1)):
        log = tt.read_log(given)
        assert len([*copied_lines(log)]) == copies


@pytest.mark.parametrize("renamed", [False, True])
def test_a_log_that_was_appended_twice_is_not_sound(renamed):
    rows = rows_of(*pages_of("strong", 1_500, seed=3))
    again = rows.assign(session=rows["session"] + renamed * 10_000)
    found = tt.diagnose(pd.concat([rows, again]))
    assert found.recommendations[0].colour == "red"
    assert "1,500 of 3,000 pages are there again, 1,500 pages further on" in str(found)


@pytest.mark.parametrize("kept", ["until the first click", "the last click"])
def test_no_page_with_several_clicks_is_named(kept):
    query, order, clicks = pages_of("strong", 4_000)
    if kept == "the last click":
        clicks = clicks[:, ::-1]
    clicks = clicks & (np.cumsum(clicks, 1) == 1)
    if kept == "the last click":
        clicks = clicks[:, ::-1]
    found = tt.diagnose(frame_of(query, order, clicks))
    assert [each.colour for each in found.recommendations][::2] == ["amber", "amber"]
    assert "0 pages have several clicks" in found.recommendations[0].answer
    assert found.recommendations[2].answer.startswith("Do not weigh clicks by the curve")
    assert "if all clicks are logged" in answers(found, "models")


def test_few_queries_are_no_reason_to_swap():
    """Three queries have many clicks. Swaps do not tell how much queries differ."""
    found = tt.diagnose(frame_of(*pages_of("strong", 6_000, queries=3)))
    assert found.recommendations[1].colour == "red"
    assert "queries in effect" in found.recommendations[1].answer
    alone = tt.diagnose(frame_of(*pages_of("strong", 6_000, queries=1)))
    assert "rest on 1 query in effect" in alone.recommendations[1].answer
    for light in found.recommendations[1:]:
        assert light.action.startswith("Collect pages of more queries")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "positions between others are missing on 300 pages"),
        ({"gaps": "close"}, "gaps of positions were closed"),
        ({"seen": "clicked+1"}, "left out by clicks (seen: clicked+1), which biases"),
    ],
)
def test_what_was_left_out_is_amber(how, said):
    rows = rows_of(*pages_of("strong", 600))
    kept = rows[(rows["position"] != 3) | (rows["session"] % 2 == 0)]
    sound = tt.diagnose(tt.read_log(kept, **how)).recommendations[0]
    assert sound.colour == "amber"
    assert said in sound.answer


def test_bad_rows_and_arguments_are_errors():
    rows = rows_of(*pages_of("strong", 50))
    with pytest.raises(tt.InputError, match="devise"):
        tt.diagnose(rows, bias=["position", "devise"])
    with pytest.raises(tt.InputError, match="no document was clicked"):
        tt.diagnose(cells_of(*pages_of("strong", 50)).assign(clicks=0))
    rows.loc[7, "position"] = 1
    with pytest.raises(tt.InputError, match="row 8: 1 is the position of two rows of a page"):
        tt.diagnose(rows)


@pytest.fixture(scope="module")
def featured():
    """Cells and features of additive users, whose relevance is a sum of two of three features."""
    rng = np.random.default_rng(0)
    queries, pages = 100, 2_000
    x = rng.normal(size=(queries, PLACES, 3))
    relevance = x[..., 0] + x[..., 1]
    query = rng.integers(queries, size=pages)
    order = np.argsort(-relevance[query] - rng.normal(0, 1, (pages, PLACES)), 1)
    odds = relevance[query[:, None], order] - 1 + np.log(EXAMINATION)
    clicks = rng.random(order.shape) < 1 / (1 + np.exp(-odds))
    names = ["one", "two", "three"]
    features = pd.DataFrame(x.reshape(-1, 3), columns=names).assign(
        query=np.repeat(np.arange(queries), PLACES), document=np.tile(np.arange(PLACES), queries)
    )
    return cells_of(query, order, clicks), features


@pytest.mark.parametrize(("left_out", "alarm"), [(None, False), ("two", True)])
def test_two_tower_models_of_features_are_tested(featured, left_out, alarm):
    log, features = featured
    some = features.sample(frac=0.95, random_state=0)  # in any order; others have none
    found = tt.diagnose(log, some.drop(columns=left_out or []))
    assert found.evidence.tower.missing == pytest.approx(0.05, abs=0.02)
    assert found.evidence.tower.alarm == alarm
    assert ("is misspecified (section 5)" in found.recommendations[2].answer) == alarm
    copied = replace(found.evidence.health, pages=2_000, lag=1_000, repeated=1_000)
    red = advice(replace(found.evidence, health=copied))  # There is no curve to keep fixed.
    assert (red.colour, "misspecified" in red.answer) == ("red", False)
    assert found.tables()["test"]["result"].eq("misspecified").any() == alarm


def test_an_index_of_pandas_is_no_feature(tmp_path, featured):
    _, features = featured
    for name, kept in (
        ("rows", features[::-1]),
        ("pairs", features.set_index(["query", "document"])),
    ):
        kept.to_parquet(tmp_path / f"{name}.parquet")
        found = read_features(tmp_path / f"{name}.parquet")
        assert list(found) == ["query", "document", "one", "two", "three"]
        assert len(found) == len(features)


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"one": "no number"}, "row 1: no number was found"),
        ({"query": -1, "document": range(600)}, "no query-document pair of the log has features"),
        ({"query": 0, "document": 0}, "row 2: a query and document that came before"),
    ],
)
def test_bad_features_are_refused(featured, change, phrase):
    log, features = featured
    with pytest.raises(tt.InputError, match=phrase):
        tt.diagnose(log, features.assign(**change))


def test_the_command_writes_a_page_and_its_numbers(tmp_path, capsys):
    log, out = tmp_path / "log.csv", tmp_path / "page.html"
    rows_of(*pages_of("fixed", 500)).to_csv(log, index=False)
    assert main(["diagnose", str(log), "--out", str(out)]) == 1
    assert "Can it give propensities?" in capsys.readouterr().out
    page = out.read_text()
    assert "http" not in page.replace("http://www.w3.org", "")
    numbers = json.loads(out.with_suffix(".json").read_text())
    assert [each["colour"] for each in numbers["recommendations"]] == ["green", "red", "red"]
    assert len(numbers["sections"]) == 8
    assert main(["diagnose", str(log), "--out", str(tmp_path / "page.txt")]) == 2


@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_screens(said, tmp_path, width):
    said["bridge"].save(tmp_path / "page.html")
    assert check_page(tmp_path / "page.html", width) == []
    with opened(tmp_path / "page.html", width) as tab:
        cut = "[...document.querySelectorAll('td')].filter(each => each.getBoundingClientRect()"
        assert tab.evaluate(f"{cut}.right > {width}).length") == 0


def effective(weight: np.ndarray, clicks: np.ndarray) -> float:
    return float((weight @ clicks) ** 2 / (weight**2 @ clicks) / clicks.sum())


def test_intervals_of_effective_clicks_hold_the_truth(said):
    inside = []
    for seed in range(20):
        log = cells_of(*pages_of("strong", 1_000, queries=30, seed=seed))
        product = tt.propensities(log)
        found = replace(said["strong"].evidence, product=product).weights.set_index("clip")
        clicks, curve = product.counts.clicked, product.curve.estimate
        for clip in (np.inf, 5.0):
            true, own = (np.minimum(1 / each, clip) for each in (EXAMINATION, curve))
            row = found.loc[clip]
            assert row["share"] == pytest.approx(effective(own, clicks))
            inside.append(row["low"] <= effective(true, clicks) <= row["high"])
    assert np.mean(inside) >= 0.85


def test_errors_of_doubtful_estimates_are_those_of_their_covariance(said):
    curve = said["bridge"].evidence.curve
    np.testing.assert_allclose(np.sqrt(np.diag(curve.covariance))[:3], curve.error[:3])
    assert (curve.reason[3:] != "").all()
    np.testing.assert_allclose(np.sqrt(np.diag(curve.covariance)), curve.error)
    assert np.linalg.eigvalsh(curve.covariance).min() > -1e-9


def test_without_position_no_light_is_green():
    rows = rows_of(*pages_of("strong", 2000))
    rows["device"] = np.where(rows["session"] % 2, "a", "b")
    found = tt.diagnose(rows, bias=["device"])
    assert found.recommendations[0].colour == "amber"
    assert found.recommendations[0].action == "Add it: --bias position device"
    assert "Do not debias" not in found.recommendations[2].answer


def test_rows_without_pages_are_green_nowhere():
    rows = rows_of(*pages_of("free")).rename(columns={"session": "serp"})
    rows = rows.assign(visitor=rows["serp"] % 500).drop(columns="serp")
    found = tt.diagnose(rows)
    assert {each.colour for each in found.recommendations} == {"amber"}
    assert "--page visitor query" in found.recommendations[0].action


def test_a_mixture_is_green_nowhere_and_a_column_is_named():
    """Readers of some queries click more and read further down."""
    rng, logs = np.random.default_rng(0), []
    for device, power, pull in (("desktop", 0.3, 0.06), ("mobile", 1.5, 0.03)):
        query, order, _ = pages_of("free", 40_000, seed=int(2 * power))
        chance = pull * (1 + np.arange(PLACES)) ** -power * np.ones(order.shape)
        rows = rows_of(query, order, rng.random(order.shape) < chance, device=[device] * len(query))
        logs.append(rows.assign(session=device + rows["session"].astype(str)))
        logs[-1]["query"] = device + logs[-1]["query"].astype(str)
    _, able, advice = tt.diagnose(pd.concat(logs, ignore_index=True)).recommendations
    assert (able.colour, advice.colour) == ("amber", "amber")
    assert "--bias position device" in able.action
