"""Each click model, part and kind of parameter: what runs, and that it finds simulated users."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from flax import nnx
from scipy.special import expit

import twotowers as tt
from tests.simulated_logs import rows_of
from tests.tasks import task_of
from twotowers.experiment.fields import read
from twotowers.experiment.parts import relevance_tower
from twotowers.experiment.settings import Model
from twotowers.fits.models import model_of
from twotowers.logs.described import inputs_of
from twotowers.methods.likelihood import built
from twotowers.methods.task import Split
from twotowers.models.chances import Chance
from twotowers.models.names import MODELS
from twotowers.models.protocol import ONCE, PER_DOCUMENT, PER_JUMP, PER_POSITION
from twotowers.root import ROOT
from twotowers.simulations.towers import TwoTower

OF_NUMBERS = {
    "linear": "linear",
    "deep": "deep",
    "dense": tt.Dense([4]),
    "deep-cross, stacked": tt.Tower("deep_cross", hidden=4),
    "deep-cross, parallel": tt.Tower("deep_cross", hidden=4, combination="parallel"),
}
OF_DOCUMENTS = {
    "embedding": "embedding",
    "baseline": "baseline",
    "hashed": tt.Tower("hashed", ratio=2),
    "quotient-remainder": tt.Tower("quotient_remainder", ratio=2),
    **OF_NUMBERS,
    "linear, of positions": tt.Tower("linear", reads="positions"),
    "linear, of both": tt.Tower("linear", reads="both"),
}
OF_PLACES = {
    "table": "table",
    **OF_NUMBERS,
    "linear, of documents": tt.Tower("linear", reads="documents"),
    "linear, of both": tt.Tower("linear", reads="both"),
}
"""Kinds of parameters (thesis, Section 5.4.2 and Listings 5.1 to 5.5)."""
NAMES = [*MODELS, "pbm+dbn"]
PAGES, DOCUMENTS, POSITIONS, WIDTH = 6, 5, 2, 2


def kinds_of(kind: str) -> dict:
    return OF_DOCUMENTS if kind == PER_DOCUMENT else OF_PLACES


def test_the_table_of_what_runs():
    """docs/towers.md has the models, parts and kinds of parameters that the next test runs."""
    rows = ["| parts | parameters |", "|---|---|"]
    rows += [
        f"| per document | {'; '.join(OF_DOCUMENTS)} |",
        f"| others | {'; '.join(OF_PLACES)} |",
    ]
    rows += ["", "| model | parts per document | other parts |", "|---|---|---|"]
    for name in NAMES:
        parts = model_of(name)[1].parts
        of_documents = [part for part, kind in parts.items() if kind == PER_DOCUMENT]
        others = [part for part in parts if part not in of_documents]
        rows.append(f"| {name} | {', '.join(of_documents)} | {', '.join(others)} |")
    page = (ROOT / "docs" / "towers.md").read_text()
    _, table, _ = re.split("<!-- /?what-runs -->\n", page)
    assert table == "\n".join([*rows, ""])


@pytest.mark.parametrize("name", NAMES)
def test_what_runs(name):
    """Every kind of every part has a finite loss, and each array of some of them a gradient."""
    rng = np.random.default_rng(0)
    pair = rng.integers(9, size=(PAGES, DOCUMENTS))
    of = {"pair": pair, "features": rng.normal(size=(*pair.shape, WIDTH)).astype(np.float32)}
    of["bias"] = rng.normal(size=(*pair.shape, 1)).astype(np.float32)
    documents = np.argsort(rng.random(pair.shape), axis=1)[:, :POSITIONS]
    position = np.broadcast_to(np.arange(POSITIONS), documents.shape)
    shown, clicks = np.ones(documents.shape, bool), rng.random(documents.shape) < 0.3
    parts = model_of(name)[1].parts
    most = max(len(kinds_of(kind)) for kind in parts.values())
    for number in range(most):
        given = {}
        for part, kind in parts.items():
            kinds = [*kinds_of(kind).values()]
            given[part] = kinds[number % len(kinds)]
        model = read(Model, TwoTower(click_model=name, parts=given).settled())
        read_of = [*(model.needs or {"pair"}), *(["bias"] if number % 2 else [])]
        inputs = jax.tree.map(jnp.asarray, inputs_of({each: of[each] for each in read_of}, {}))
        kinds = {"tower": relevance_tower(model.tower), "parts": model.parts}
        kinds |= {"model": model.of, "examination": model.examination.arguments()}
        split = Split(inputs, np.ones(inputs.shape[:2], bool), None, None)
        towers = built(task_of(split, POSITIONS, **kinds))

        def loss(towers):
            rows = jax.tree.map(jnp.asarray, (documents, position, shown, clicks))
            return towers.row_losses(inputs, *rows).sum()  # noqa: B023

        with jax.disable_jit():
            assert np.isfinite(loss(towers)), given
            gradient = nnx.grad(loss)(towers) if number in (1, most - 1) else {}
        for where, each in jax.tree_util.tree_leaves_with_path(gradient):
            # A model of cells has a table of positions, which a model without examination ignores.
            if "examination" in parts or where[0].key != "bias":
                assert 0 < np.abs(each).max() < np.inf, (given, where)


QUERIES, SHOWN, SESSIONS = 8, 4, 4_000
USERS = {
    "gctr": {"rate": "linear"},
    "rctr": {"examination": "linear"},
    "dctr": {"attraction": "embedding"},
    "pbm": {"attraction": "baseline", "examination": tt.Tower("linear", reads="both")},
    "cm": {"attraction": tt.Tower("deep_cross", hidden=8, combination="parallel")},
    "ubm": {"attraction": "linear", "examination": "linear"},
    "dcm": {"attraction": tt.Tower("quotient_remainder", ratio=1), "continuation": "linear"},
    "ccm": {"attraction": "deep", "after_none": "linear"},
    "dbn": {"satisfaction": "linear", "continuation": tt.Tower("linear", reads="both")},
    "sdbn": {"attraction": "baseline", "satisfaction": tt.Tower("deep_cross", hidden=8)},
    "pbm+dbn": {"attraction": "linear", "satisfaction": "attraction", "examination": "linear"},
}
"""Models with kinds of parameters that hold the truth of the users below."""


@pytest.fixture(scope="module")
def shown() -> dict:
    """Pages in random order, with three features of documents and one of places."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(QUERIES * SHOWN * 2, 3))
    # Towers with layer normalisation see no more of a row than this.
    features -= features.mean(1, keepdims=True)
    features /= features.std(1, keepdims=True)
    query = rng.integers(QUERIES, size=SESSIONS)
    order = np.argsort(rng.random((SESSIONS, SHOWN * 2)), axis=1)[:, :SHOWN]
    table = pd.DataFrame(features, columns=["one", "two", "three"])
    table["document"] = np.arange(len(features))
    height = rng.integers(1, 5, size=order.shape).astype(float)
    return {
        "query": query, "pair": query[:, None] * SHOWN * 2 + order, "height": height,
        "features": features, "table": table,
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_finds_users_whose_truth_is_known(shown, name):
    """Users act by the model's parts: by features of documents, and by the height of places."""
    model = model_of(name)[1]
    of_documents = shown["features"][shown["pair"]] @ [1.5, -1.0, 0.0]
    of_places = 2 - 0.6 * np.arange(SHOWN) + 0.8 * (shown["height"] - 2.5)
    logits = {
        PER_DOCUMENT: of_documents,
        PER_POSITION: of_places,
        PER_JUMP: of_places[..., None] + 0.4 * np.arange(SHOWN),
        ONCE: of_places,
    }
    reads = {"pbm": "examination", "dbn": "continuation"}  # These read documents, too.
    parts = {part: logits[kind] for part, kind in model.parts.items()}
    parts |= {"share_1": np.float64(1.0)} if "+" in name else {}
    if name in reads:
        parts[reads[name]] = of_places + 0.7 * shown["features"][shown["pair"]][..., 1]
    if name == "dcm":
        parts["continuation"] = 1 - 0.6 * np.arange(SHOWN)
    truth = {part: Chance.of(expit(each)) for part, each in parts.items()}
    where, rng = np.ones(shown["pair"].shape, bool), np.random.default_rng(2)
    clicks = model.sample(truth, where, rng=rng)["clicks"]
    log = rows_of(shown["query"], shown["pair"], clicks).assign(height=shown["height"].ravel())
    by_pair = {"gctr", "rctr", "dctr", "dcm"}
    how = {} if name in by_pair else {"features": shown["table"]}
    fitted = tt.fit(
        log,
        TwoTower("linear", click_model=name, parts=USERS[name]),
        bias=[] if name in ("dctr", "cm", "sdbn", "dcm") else ["height"],
        training={"epochs": 12, "learning_rate": 0.03, "batch": 64, "steps": 50, "averaged": True},
        **how,
    )
    found = fitted.predict(log)["given_above"].to_numpy().reshape(where.shape)
    expected = np.broadcast_to(model.conditional(truth, clicks).value, where.shape)
    reached = expected > 1e-6  # A cascade ends behind a click.
    assert np.corrcoef(found[reached], expected[reached])[0, 1] > 0.95
    assert np.abs(found - expected)[reached].mean() < 0.04
    if name == "pbm+dbn":
        assert fitted.parameters("share_1")["estimate"].item() == pytest.approx(expit(1), abs=0.15)
    if name == "dcm":
        curve = fitted.parameters("continuation")["estimate"]
        np.testing.assert_allclose(curve[:-1], expit(parts["continuation"])[:-1], atol=0.1)
