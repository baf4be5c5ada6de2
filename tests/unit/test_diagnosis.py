"""`tt.diagnose` and `twotowers diagnose`: what it says of logs whose truth is known."""

import numpy as np
import pandas as pd
import pytest

import twotowers as tt

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
    rows = pd.DataFrame(
        {
            "query": np.repeat(query, PLACES),
            "document": order.ravel(),
            "position": np.tile(np.arange(1, PLACES + 1), len(query)),
            "impressions": 1,
            "clicks": clicks.ravel().astype(int),
        }
    )
    return rows.groupby(["query", "document", "position"], as_index=False).sum()


def colours(found) -> list[str]:
    return [each.colour for each in found.lights]


@pytest.fixture(scope="module")
def four() -> dict[str, pd.DataFrame]:
    kinds = ("strong", "bridge", "components", "fixed")
    return {kind: cells_of(*pages_of(kind)) for kind in kinds}


@pytest.fixture(scope="module")
def said(four) -> dict[str, tt.Diagnosis]:
    return {kind: tt.diagnose(log) for kind, log in four.items()}


@pytest.mark.parametrize(
    ("kind", "identified", "expected", "told"),
    [
        ("strong", True, ["green", "green", "green"], "Yes, at all 6 positions"),
        ("bridge", True, ["green", "red", "red"], "Positions 4, 5, 6 hang on the others by"),
        ("components", False, ["green", "red", "red"], "The log falls into 2 parts"),
        ("fixed", False, ["green", "red", "red"], "No document was shown at two positions"),
    ],
)
def test_four_logs(four, said, kind, identified, expected, told):
    log, found = four[kind], said[kind]
    assert colours(found) == expected
    assert told in found.lights[1].answer
    assert tt.identify(log).identified == identified
    curve = tt.propensities(log).frame()
    beyond = (curve["reason"] == "") & curve["estimate"].notna()
    assert beyond.tolist() == {"strong": [True] * 6, "fixed": [True] + [False] * 5}.get(
        kind, [True] * 3 + [False] * 3
    )
    warned = "\n".join(tt.fit(log, "pbm").beside())
    assert ("the log does not tell at" in warned) == (kind in ("components", "fixed"))
    assert ("the log hardly tells at position 4, 5, 6" in warned) == (kind == "bridge")


@pytest.mark.parametrize("kind", ["bridge", "components", "fixed"])
def test_what_is_red_says_which_swap_to_run(said, kind):
    found = said[kind]
    assert found.lights[2].action.startswith("Exchange the documents of positions")
    swaps = found.tables()["More data: the same again, or swaps"]
    errors = swaps["Worst error"].to_numpy(float)
    assert not errors[0] < 1  # of the log as it is
    assert errors[-1] < 1


def test_no_estimate_is_without_an_interval_or_a_reason(said):
    for found in said.values():
        table = found.frame()
        none = table["value"].isna()
        assert (table.loc[none, "reason"] != "").all()
        assert (table.loc[~none, ["low", "high"]].isna().sum(axis=1) != 1).all()
        assert (table["meaning"].str.len() > 10).all()
