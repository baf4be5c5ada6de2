"""Rankings, simulated clicks and two towers from Python, with the numbers of the pipeline."""

from dataclasses import dataclass, replace
from typing import Annotated

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from flax import nnx
from pydantic import Field
from scipy.special import logit

import twotowers as tt
from twotowers.claims.metrics import ndcg
from twotowers.experiment.objects import dumped, loaded
from twotowers.jobs.fit import fit_setting
from twotowers.methods.task import Fitted, Task, cells
from twotowers.models.chances import log_sigmoid
from twotowers.models.position_based import PositionBased
from twotowers.models.protocol import CellModel, odds_of
from twotowers.simulations.clicks import RANKERS
from twotowers.towers.head import Head
from twotowers.towers.lane import Lanes
from twotowers.towers.linear import LinearTower
from twotowers.towers.parts import number, value_of

QUICK = {"steps": 5, "epochs": 2, "batch": 8}


@pytest.fixture(scope="module")
def clicks():
    rankings = tt.stand_in("mslr30k", queries=30)
    policy = tt.policy(strength=[0, 1], temperature=0.5)
    return tt.simulate(rankings, policy=policy, user=tt.PositionBased(eta=0.5), sessions=500)


@pytest.fixture(scope="module")
def fitted(clicks):
    model = tt.TwoTower(tt.Dense([4]), click_model="position_based")
    return tt.fit(clicks, model, training=QUICK, seeds=[1, 2])


def test_a_fit_of_python_is_that_of_a_paper(clicks, fitted):
    setting = loaded(dumped(fitted.setting))  # as the plan hands it to a job
    results = fit_setting(clicks.files, setting, seed=2)
    bias = fitted.examination().query("seed == 2")
    theirs = results.query("metric == 'position_bias'")
    np.testing.assert_array_equal(bias["estimate"], theirs["value"])
    assert fitted.evaluate(clicks.rankings.test).equals(fitted.evaluate())
    ndcg = fitted.evaluate().query("seed == 2")["ndcg@10"]
    np.testing.assert_allclose(ndcg, results.query("metric == 'ndcg@10'")["value"], rtol=1e-6)


def test_a_tower_that_scores_all_documents_alike_ranks_no_better_than_chance(fitted, clicks):
    def scored(value):
        found = Fitted(scores=lambda inputs: np.full(inputs.shape[:2], value))
        return replace(fitted, fitted=[[found, found]] * 2)

    alike, labels, where = scored(0.0), fitted.test.relevance, fitted.test.where
    found = alike.evaluate()
    assert found.equals(alike.evaluate())
    assert found.equals(alike.evaluate(clicks.rankings.test))
    rng = np.random.default_rng(0)
    chance = [ndcg(rng.random(where.shape), labels, where=where).mean() for _ in range(500)]
    assert found["ndcg@10"].between(min(chance), max(chance)).all()
    with pytest.raises(tt.InputError, match=r"strength 0.*, seed 1 has scores that are not finite"):
        scored(np.nan).evaluate()


@pytest.mark.parametrize("record", ["cells", "sessions"])
def test_clicks_are_logs_of_a_split_and_lane(record):
    rankings, lanes = tt.stand_in("mslr30k", queries=30, top=6), {"eta": [0, 1]}
    user = {"kind": "position_based", **lanes}
    given = {"policy": tt.policy(temperature=1), "user": user, "record": record}
    simulated = tt.simulate(rankings, sessions={"train": [900, 20_000], "validation": 9, "test": 7},
                            **given)  # fmt: skip
    with pytest.raises(tt.InputError, match=r"eta: None is none of the lanes .*0.*1"):
        simulated.log(sessions=900)
    with pytest.raises(tt.InputError, match="eta: 3 is none of the lanes"):
        simulated.log(sessions=900, eta=3)
    for asked in (tt.read_log, tt.propensities, lambda log: tt.compare(log, ["pbm", "dctr"])):
        with pytest.raises(tt.InputError, match=r"expected a log: `clicks\.log\(\)`"):
            asked(simulated)
    with pytest.raises(tt.InputError, match=r"expected a `TwoTower`, or `clicks\.log\(\)`"):
        tt.fit(simulated, "pbm")
    few, many, steep, tested = (
        simulated.log(*split, sessions=sessions, eta=eta)
        for split, sessions, eta in (
            ([], 900, 0), ([], 20_000, 0), ([], 20_000, 1), (["test"], 900, 0),
        )
    )  # fmt: skip
    del simulated
    shown = [
        log.count().frame().query("position == 1")["impressions"].sum()
        for log in (few, many, tested)
    ]
    assert shown == [900, 20_000, 7]
    assert tt.propensities(many).frame()["estimate"][5] == pytest.approx(1, abs=0.2)
    assert tt.propensities(steep).frame()["estimate"][5] == pytest.approx(1 / 6, abs=0.1)
    assert tt.fit(many, "pbm").examination()["estimate"].iloc[5] > 0.7


@pytest.mark.parametrize("ranker", RANKERS)
def test_each_ranker_ranks_documents_of_high_labels_first(ranker):
    rankings = tt.stand_in("mslr30k", queries=60, top=8)
    clicks = tt.simulate(rankings, policy=ranker, sessions=100)
    ranked = pd.read_parquet(clicks.files["policy"])
    assert ranked.query("split == 'train'")[["relevance", "score"]].corr().iloc[0, 1] > 0.1


# What callers define themselves: classes and functions in the place of names.


@dataclass(frozen=True)
class Browsing(PositionBased):
    """The position-based model under another name."""


@dataclass(frozen=True)
class Product(CellModel):
    """A product of examination, which fades by `fade`, and attraction; no more than EM needs."""

    fade: float = 0.6

    def click_logit(self, attraction, examination):
        return odds_of(log_sigmoid(attraction) + log_sigmoid(examination))

    def posteriors(self, attraction, examination):
        none = 1 - attraction * examination
        return {
            "attraction": (1, attraction * (1 - examination) / none),
            "examination": (1, examination * (1 - attraction) / none),
        }

    def truth(self, relevance, positions):
        examined = self.fade ** np.arange(1, positions + 1)
        return {"attraction": logit(0.1 + 0.2 * relevance), "examination": logit(examined)}


class Scaled(LinearTower):
    """A linear tower whose logits have a factor."""

    def __init__(
        self,
        width: int,
        *,
        scale: Lanes[Annotated[float, Field(ge=0, le=10)]] = 1.0,
        rngs: nnx.Rngs,
    ):
        super().__init__(width, rngs=rngs)
        self.scale = number(scale)

    def __call__(self, features, key=None):
        return value_of(self.scale) * super().__call__(features)


class Towards(Head):
    """Pulls relevance towards a constant."""

    def __init__(self, units: int, *, weight: Lanes[float] = 1.0, rngs: nnx.Rngs):
        self.weight = number(weight)

    def losses(self, parts, shown, clicked, key, labels):
        return value_of(self.weight) * shown * jnp.square(parts["attraction"] - 1)


def click_rates(task: Task, *, smooth: Lanes[float] = 1.0, times: int = 1) -> list[Fitted]:
    found = []
    for (log, _), more in zip(task.lanes, task.each(smooth), strict=True):
        pair, _, shown, clicked = cells(task.splits["train"], log)
        shown, clicked = (np.bincount(pair, by, task.pairs) for by in (shown, clicked))
        rates = times * (clicked + more) / (shown + 2 * more)
        found.append(Fitted(scores=lambda pairs, rates=rates: rates[pairs]))
    return found


def test_a_click_model_of_ones_own_is_a_user_and_a_model():
    rankings = tt.stand_in("mslr30k", queries=20)
    users = Browsing(eta=0.5), tt.PositionBased(eta=0.5), {"kind": Browsing, "eta": [0.5, 2]}
    own, ours, lanes = (tt.simulate(rankings, user=user, sessions=300) for user in users)
    with open(own.files["clicks"], "rb") as one, open(ours.files["clicks"], "rb") as other:
        assert one.read() == other.read()
    assert repr(own) == "<300 sessions of Browsing users on stand-in for mslr30k>"
    model = tt.TwoTower("linear", click_model=Browsing(), examination="known")
    assert tt.fit(own, model, training=QUICK).setting.model.kind == "Browsing"
    found = tt.fit(lanes, tt.TwoTower("linear"), training=QUICK).evaluate(rankings.test)
    assert found["eta"].tolist() == [0.5, 2]


@pytest.mark.parametrize("model", [Product, Product(fade=0.5)])
def test_the_position_bias_that_a_model_inherits_is_the_logarithm_of_examination(model):
    rankings, policy = tt.stand_in("mslr30k", queries=40, top=5), tt.policy(temperature=0.5)
    given = {"policy": policy, "sessions": 200_000, "queries": "train"}
    clicks = tt.simulate(rankings, user=Product(), **given)
    found = tt.fit(clicks, tt.TwoTower("embedding", click_model=model), method="em")
    expected = np.log(0.6) * np.arange(5)
    np.testing.assert_allclose(found.examination()["estimate"], expected, atol=0.05)


def test_a_click_model_of_ones_own_is_fitted_to_a_frame_under_its_name(tmp_path):
    import pyarrow as pa

    pages = pa.table({"documents": [["a", "b"], ["b", "a"]] * 5, "clicks": [[1, 0], [0, 1]] * 5})
    own, ours = tt.fit(pages, Browsing), tt.fit(pages, "pbm")
    assert repr(own) == "<Browsing fitted to 2 query-document pairs>"
    assert own.examination().equals(ours.examination())
    own.save(tmp_path / "fit.parquet")
    with pytest.raises(tt.InputError, match="model: 'Browsing'"):
        tt.load(tmp_path / "fit.parquet")
    both = pages.append_column("query", pa.array([*range(5), *range(5)]))
    assert sorted(tt.compare(both, ["pbm", Browsing()])["model"].to_pylist()) == ["Browsing", "pbm"]


def test_a_tower_and_a_head_of_ones_own_are_given_as_classes(clicks):
    own = tt.fit(clicks, tt.TwoTower(tt.Tower(Scaled, scale=[1, 3])), training=QUICK)
    ours = tt.fit(clicks, tt.TwoTower("linear"), training=QUICK)
    found, theirs = (each.evaluate(clicks.rankings.test) for each in (own, ours))
    assert found["tower_scale"].tolist() == [1, 1, 3, 3]
    np.testing.assert_allclose(found["ndcg@5"][:2], theirs["ndcg@5"], rtol=1e-5)
    heads = tt.Method("likelihood", heads={Towards: {"weight": [0, 1000]}})
    pulled = tt.fit(clicks, tt.TwoTower("linear", examination=Scaled), method=heads, training=QUICK)
    assert pulled.evaluate(clicks.rankings.test)["Towards_weight"].tolist() == [0, 0, 1000, 1000]


def test_a_method_of_ones_own_is_given_as_a_function():
    log = tt.simulate(tt.stand_in("mslr30k", queries=20), sessions=300, queries="train")
    method = tt.Method(click_rates, smooth=[1, 4], times=3)
    fitted = tt.fit(log, tt.TwoTower("embedding"), method=method)
    assert [lane["smooth"] for lane in fitted.lanes] == [1, 4]
    assert fitted.evaluate()["ndcg@10"].between(0.3, 1).all()
    with pytest.raises(tt.InputError, match="knows the pairs of its log only"):
        fitted.evaluate(log.rankings.test)
    assert repr(fitted).startswith("<embedding tower, additive, by click_rates: 2 lanes")
    with pytest.raises(tt.InputError, match="unknown setting 'tmies'"):
        tt.fit(log, tt.TwoTower("embedding"), method=tt.Method(click_rates, tmies=3))


def test_lists_have_the_features_that_a_tower_was_fitted_to(fitted, clicks):
    test = clicks.rankings.test
    with pytest.raises(tt.InputError, match="of their 9 features the tower would read 9, and was"):
        fitted.evaluate(replace(test, features=test.features[:, :9]))


@dataclass(frozen=True)
class Untold(Product):
    """A model of clicks, and not of users."""

    def truth(self, relevance, positions):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "pbm"}, "expected a `TwoTower`"),
        ({"model": tt.TwoTower(click_model="pbn")}, "model: 'pbn' is unknown"),
        ({"model": tt.TwoTower("embedding")}, "model.tower: an embedding per pair"),
        ({"model": tt.TwoTower(dict)}, "tower: .*a class derived from Tower"),
        ({"model": tt.TwoTower(tt.Tower(Scaled, scale=-1))}, "tower.scale: -1 "),
        ({"training": {"bacth": 3}}, "training.bacth: unknown .*did you mean 'batch'"),
        ({"seeds": ["a"]}, "seeds: 'a' is out of range"),
        ({"seeds": 1}, r"seeds: 1 was given \(expected a list of seeds"),
        ({"seed": 1}, "fit: 'seed' is no option .*did you mean 'seeds'"),
    ],
)
def test_a_wrong_argument_of_a_fit_is_named(clicks, change, message):
    given = {"model": tt.TwoTower("linear"), **change}
    with pytest.raises(tt.InputError, match=message):
        tt.fit(clicks, **{"training": QUICK, **given})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user": Untold()}, "user: Untold is no user .*a method `truth`"),
        ({"user": "pbm"}, "user: 'pbm' is unknown .*'position_based', its full name"),
        ({"policy": tt.policy(strengt=1)}, "policy.strengt: unknown setting"),
        ({"policy": "exprt"}, "policy: .*'svm'; did you mean 'expert'"),
        ({"policy": ["expert", "linear"]}, "policy: .*expected a mapping"),
        ({"seed": "a"}, "seed: 'a' is out of range"),
        ({"queries": {"split": "train", "first": 5000}}, "queries.first: 5000 is out of range"),
        ({"positions": 3}, "positions: 3 is out of range"),
        ({"sessions": {"train": 5}}, "sessions: 'validation' is missing"),
    ],
)
def test_a_wrong_simulation_is_named(clicks, change, message):
    with pytest.raises(tt.InputError, match=message):
        tt.simulate(clicks.rankings, **{"sessions": 100, **change})
