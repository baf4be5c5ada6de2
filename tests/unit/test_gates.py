"""Gates of fits: trivial predictors by hand, simulated fits, and claims that rest on fits."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from flax import nnx
from scipy.special import logit

from tests.tasks import task_of
from twotowers.claims.claims import CONTRADICTED, GATE, REPRODUCED, UNDECIDED, Claim
from twotowers.claims.conditions import above, shown, significant
from twotowers.claims.gates import gates_of, lines, of_failing
from twotowers.claims.judging import judge_all
from twotowers.fitting.em import Estimate, fit_em
from twotowers.fitting.prior import Prior
from twotowers.jobs.gates import compared, fall_at_limit, gates, trivial_loss
from twotowers.jobs.measures import measure
from twotowers.logs.simulated_sessions import counts_of
from twotowers.logs.simulation import Sessions
from twotowers.methods import counting, em
from twotowers.methods.descent import cell_losses, dropped_losses
from twotowers.methods.page_fits import fitted_of, statistics_of
from twotowers.methods.task import Fitted, Split, Task
from twotowers.models.additive import Additive
from twotowers.models.cascade import Cascade
from twotowers.models.click_chain import ClickChain
from twotowers.models.dependent_click import DependentClick
from twotowers.models.document_rate import DocumentRate
from twotowers.models.dynamic_bayesian import DynamicBayesian
from twotowers.models.global_rate import GlobalRate
from twotowers.models.position_based import PositionBased
from twotowers.models.rank_rate import RankRate
from twotowers.models.simplified_bayesian import SimplifiedBayesian
from twotowers.models.user_browsing import UserBrowsing
from twotowers.towers.two_towers import two_towers

QUERIES, LENGTH = 6, 4


class Baseline(nnx.Module):
    """A relevance tower that knows nothing."""

    def __init__(self, score: float, width: int, *, rngs: nnx.Rngs):
        self.score = score

    def __call__(self, inputs, key=None):
        return jnp.full(inputs.shape[:2], self.score)


INPUTS = np.arange(QUERIES * LENGTH).reshape(QUERIES, LENGTH)


def pages(sessions: int, seed: int) -> Sessions:
    """Pages of 2 to 4 documents in random order, as a position-based user clicks on them."""
    rng = np.random.default_rng(seed)
    length = np.arange(QUERIES) % 3 + 2
    query = rng.integers(QUERIES, size=sessions)
    documents = rng.permuted(np.tile(np.arange(LENGTH), (sessions, 1)), axis=1)
    # What is not on a query's list comes last.
    documents = np.take_along_axis(
        documents, np.argsort(documents >= length[query, None], axis=1, kind="stable"), 1
    )
    where = np.arange(LENGTH) < length[query, None]
    attraction = np.random.default_rng(9).uniform(0.1, 0.9, (QUERIES, LENGTH))
    examined = 1 / np.arange(1, LENGTH + 1)
    chance = attraction[query[:, None], documents] * examined
    return Sessions(query, documents, (rng.random(chance.shape) < chance) & where, where)


def split(log: Sessions, *, sessions: bool) -> Split:
    where = np.arange(LENGTH) < (np.arange(QUERIES) % 3 + 2)[:, None]
    counts = counts_of([log], QUERIES, LENGTH)
    return Split(INPUTS, where, None, counts, sessions=[log] if sessions else None)


def task(train: int = 4000, *, sessions: bool = False, model=None) -> Task:
    made = partial(split, sessions=sessions)
    splits = {"train": made(pages(train, 1)), "test": made(pages(3000, 2))}
    return task_of(splits, LENGTH, model=model or PositionBased())


def losses_by_hand(train: Sessions, test: Sessions, name: str) -> np.ndarray:
    """[sessions] mean loss of each test page, click after click."""
    ranks = np.arange(LENGTH)

    def keys(log):
        pair = log.query[:, None] * LENGTH + log.documents
        return {"constant": pair * 0, "ranks": ranks + pair * 0, "documents": pair}[name]

    constant = train.clicks[train.where].mean()
    at, found = keys(train), []
    for key, clicks, where in zip(keys(test), test.clicks, test.where, strict=True):
        own = []
        for k, click in zip(key[where], clicks[where], strict=True):
            seen = (at == k) & train.where
            rate = (train.clicks[seen].sum() + constant) / (seen.sum() + 1)
            own.append(-np.log(rate if click else 1 - rate))
        found.append(np.mean(own))
    return np.array(found)


@pytest.mark.parametrize(("few", "seed"), [(4, 3), (40, 1)])
@pytest.mark.parametrize("name", ["constant", "ranks", "documents"])
def test_trivial_predictors_are_those_by_hand(name, few, seed):
    """Pairs that four training pages lack have the constant rate."""
    train, test = pages(few, seed), pages(60, 2)
    by_hand = losses_by_hand(train, test, name).mean()
    for sessions in (False, True):
        splits = [split(log, sessions=sessions) for log in (train, test)]
        possible = RankRate().possible if sessions else None
        found = trivial_loss(*splits, 0, name, possible=possible)
        assert found == pytest.approx(by_hand, rel=1e-12)


CHAINS = (DependentClick(), ClickChain(), DynamicBayesian(), SimplifiedBayesian())
"""Models that contain rates of documents, and none of ranks."""
COMPARED = [
    *((model, {"constant": True, "ranks": True, "documents": True})
      for model in (PositionBased(), Additive(), UserBrowsing())),
    *((model, {"constant": True, "ranks": False, "documents": True}) for model in CHAINS),
    *((model, {"constant": True}) for model in (DocumentRate(), RankRate())),
    (Cascade(), {"constant": True, "ranks": False, "documents": False}),
    (GlobalRate(), {}),
]  # fmt: skip


@pytest.mark.parametrize(("model", "expected"), COMPARED, ids=lambda each: type(each).__name__)
def test_a_model_is_compared_with_what_it_contains(model, expected):
    """A smaller table than one of all pairs contains no rates of documents."""
    assert compared(model, by_pair=True) == expected
    shared = {name: contained for name, contained in expected.items() if name != "documents"}
    assert compared(model, by_pair=False) == shared
    if "documents" in expected:
        found = compared(model, by_pair=True, own=False)
        assert found == expected | {"documents": False}


def test_a_cascade_fit_is_that_of_document_rates_down_to_the_first_click():
    """So its loss there is that of the trivial predictor, under any prior."""
    of = task(sessions=True, model=Cascade())
    for prior, mean in ((2.0, 0.5), (2.0, 0.2)):
        (fitted,) = counting.fit(of, prior=prior, prior_mean=mean)
        rows = measure(fitted, of.splits["test"], 0)
        measured = {metric: value for metric, position, value in rows if position is None}
        found = numbers(fitted, of, **measured)
        assert found["gain_beside_documents"] == pytest.approx(0, abs=1e-12)
        assert found["gain_over_constant"] > 0.01
        # Over whole pages, clicks below the first cost 18 nats each.
        assert -measured["log_likelihood_pyclick"] > found["held_out_loss"] + 0.5


def test_rates_of_documents_are_smoothed_as_the_fit_is():
    """A prior far from the clicks costs both the same, and is no failure to learn."""
    of = task(train=300)
    prior = Prior(parts={"attraction": (5, 100)})
    estimate = fit_em(statistics_of(of, 0), prior=prior)
    fitted = fitted_of(of, 0, estimate)
    found = numbers(fitted, of)
    own = replace(fitted, estimate=None)
    assert numbers(own, of)["gain_over_documents"] < 0 < found["gain_over_documents"]
    train, test = of.splits["train"], of.splits["test"]
    loss = trivial_loss(train, test, 0, "documents", prior=fitted.estimate.prior)
    assert found["gain_over_documents"] == pytest.approx(loss - found["held_out_loss"])


def numbers(fitted: Fitted, task: Task, **measured) -> dict[str, float]:
    return {metric: value for metric, _, value in gates(fitted, task, 0, measured)}


@pytest.mark.parametrize("sessions", [False, True])
def test_a_fit_that_has_learnt_passes_and_one_that_guesses_does_not(sessions):
    of = task(sessions=sessions)
    (fitted,) = em.fit(of)
    found = numbers(fitted, of)
    assert 0.01 < found["gain_over_ranks"] < found["gain_over_constant"]
    assert found["gain_over_documents"] > 0.01
    assert found["fall_at_limit"] == 0

    def guessed(split):
        return fitted.cell_losses(split) + 0.05 * split.counts.of_log(0).impressions

    worse = numbers(replace(fitted, cell_losses=guessed), of)
    for metric in ("gain_over_constant", "gain_over_ranks", "gain_over_documents"):
        assert worse[metric] == pytest.approx(found[metric] - 0.05)


def test_measured_losses_are_not_computed_again_and_what_fits_nothing_has_no_gate():
    naive = numbers(Fitted(scores=None, values={"nll": 0.5}), task(model=DocumentRate()), nll=0.5)
    assert set(naive) == {"held_out_loss", "gain_over_constant"}
    of, measured = task(sessions=True), {"log_likelihood_pyclick": -0.4, "nll": 9.0}
    assert numbers(Fitted(scores=None), of, **measured)["held_out_loss"] == 0.4
    of.splits["test"].sessions[0].clicks[:] = False
    guessed = numbers(Fitted(scores=None, learns=False), of, **measured)
    assert guessed == {"held_out_loss": 0.4}
    assert numbers(Fitted(scores=None), task()) == {}


@pytest.mark.parametrize("rate", [0.3, 0.7])
def test_dropout_is_compared_in_expectation_over_what_it_drops(rate):
    """The best that a fit with dropout can make of ranks alone has learnt what ranks tell, no more.

    Without dropout it predicts worse than they do: scores are shrunk to 1 - rate of their log-odds.
    """
    of = task()
    split = of.splits["train"]
    of = replace(of, splits={"train": split, "test": split})
    counts = split.counts
    shown, clicked = (each[0].sum((0, 1)) for each in (counts.impressions, counts.clicks))
    constant = logit(clicked.sum() / shown.sum())

    def made(scores):
        build = partial(Baseline, constant)
        towers = two_towers(build, width=1, positions=LENGTH, seed=0, dropout=rate)
        towers.bias.embedding[...] = jnp.asarray(scores)[:, None]
        losses, usual = (partial(each, towers, log=0) for each in (dropped_losses, cell_losses))
        fitted = Fitted(None, cell_losses=usual, dropout=rate, dropped_losses=losses)
        return numbers(fitted, of), usual

    found, usual = made((1 - rate) * (logit(clicked / shown) - constant))
    plain = numbers(Fitted(None, cell_losses=usual), of)
    assert plain["gain_over_ranks"] < -1e-3
    assert found["held_out_loss"] == plain["held_out_loss"]
    assert found["gain_over_ranks"] == pytest.approx(0, abs=1e-5)
    assert found["gain_over_constant"] > 1e-3
    shrunk, _ = made(0.5 * (1 - rate) * (logit(clicked / shown) - constant))
    assert shrunk["gain_over_ranks"] < -1e-3


def test_losses_in_expectation_over_dropout_are_means_over_its_draws():
    split = task().splits["train"]
    build = partial(Baseline, -0.5)
    towers = two_towers(build, width=1, positions=LENGTH, seed=0, dropout=0.4)
    counts = split.counts.impressions[0], split.counts.clicks[0]
    keys = jax.random.split(jax.random.key(1), 4000)
    drawn = jax.vmap(lambda key: towers.cell_losses(split.inputs, *counts, key))(keys)
    expected = dropped_losses(towers, split, 0)
    np.testing.assert_allclose(drawn.mean(0), expected, rtol=0.03)


@pytest.mark.parametrize(
    ("history", "fall"),
    [
        ([1, 0.9, np.nan, np.nan], 0),
        ([1.0] * 18 + [0.9, 0.8], 0.2),
        ([1.0] * 10 + [0.8] * 10, 0),
        ([0.5, 1.0], 0),
        ([1.0], None),
    ],
)
def test_the_fall_at_the_limit(history, fall):
    fitted = Fitted(scores=None, history=np.array(history, float))
    assert fall_at_limit(fitted) == (None if fall is None else pytest.approx(fall))


@pytest.mark.parametrize(("converged", "fall"), [(False, 0.2), (True, 0)])
def test_em_at_its_limit_says_how_much_it_still_gained(converged, fall):
    estimate = Estimate({}, history=np.array([-10.0, -8.0]), converged=converged)
    assert fall_at_limit(Fitted(scores=None, estimate=estimate)) == pytest.approx(fall)


# Which gates fail, and which claims rest on them.


def rows(setting: str, metric: str, values, **columns) -> pd.DataFrame:
    seeds = range(1, len(values) + 1)
    return pd.DataFrame(
        {"setting": setting, "seed": seeds, "metric": metric, "value": values, **columns}
    )


SIMULATED = {"s": "simulation", "t": "simulation"}
GATED = pd.concat(
    [
        rows("s", "gain_over_ranks", [0.02, 0.03, 0.01], strength=0.5),
        rows("s", "gain_over_ranks", [-0.02, -0.03, -0.01], strength=1.0),
        rows("s", "ndcg", [0.5, 0.51, 0.52], strength=0.5),
        rows("s", "ndcg", [0.3, 0.31, 0.32], strength=1.0),
        rows("t", "fall_at_limit", [0.0, 0.001, 0.0]),
        rows("t", "ndcg", [0.4, 0.41, 0.42]),
        rows("study", "distance", [1, 2, 3]),
    ],
    ignore_index=True,
)


def test_a_gate_is_the_mean_over_seeds_of_a_lane():
    found = gates_of(GATED)
    assert found[["setting", "lane", "fails"]].to_numpy().tolist() == [
        ["s", "strength .5", False],
        ["s", "strength 1", True],
        ["t", "", False],
    ]
    failing = GATED[of_failing(GATED, found)]
    assert set(failing["metric"]) == {"ndcg", "gain_over_ranks"}
    assert set(failing["strength"]) == {1.0}


@pytest.mark.parametrize(
    ("metric", "value", "fails"),
    [
        ("gain_over_constant", 0.0, True),
        ("gain_over_documents", 1e-9, False),
        ("gain_over_ranks", np.nan, True),
        ("gain_beside_ranks", -0.4, False),
        ("fall_at_limit", 0.001, False),
        ("fall_at_limit", 0.0011, True),
        ("fall_at_limit", np.nan, True),
    ],
)
def test_the_margins(metric, value, fails):
    found = gates_of(rows("s", metric, [value] * 2))
    assert found["fails"].tolist() == [fails]
    assert [failed for _, failed in lines(found)] == [fails]


def test_starts_agree_or_not():
    def started(far):
        bias = [
            rows("s", "position_bias", [value, value], start=start, position=2, strength=strength)
            for strength, other in ((0.5, 0.01), (1.0, far))
            for start, value in (("random", 0.5), ("zero", 0.5 + other))
        ]
        stopped = [
            rows("s", "fall_at_limit", [0, 0], start=start, strength=strength)
            for start in ("random", "zero")
            for strength in (0.5, 1.0)
        ]
        return pd.concat([*bias, *stopped], ignore_index=True)

    for far, fails in ((0.09, []), (0.2, [1.0])):
        results = started(far)
        found = gates_of(results)
        own = found[found["gate"] == "starts"]
        assert own["value"].tolist() == pytest.approx([0.01, far])
        wrong = results[of_failing(results, found)]
        assert sorted(set(wrong["strength"])) == fails
        assert set(wrong["start"]) == ({"random", "zero"} if fails else set())


def of_strength(*strengths):
    def judge(results):
        own = results[(results["metric"] == "ndcg") & (results["setting"] == "s")]
        means = own[own["strength"].isin(strengths)].groupby("strength")["value"].mean()
        return means.min(), results["value"].mean()

    return judge


@pytest.mark.parametrize(
    ("strengths", "threshold", "gated", "verdict"),
    [
        ((0.5,), 0.2, True, REPRODUCED),
        ((0.5,), 0.9, True, CONTRADICTED),
        ((0.5, 1.0), 0.2, True, UNDECIDED),
        ((0.5, 1.0), 0.9, True, UNDECIDED),
        ((0.5, 1.0), 0.2, False, REPRODUCED),
        ((0.5, 1.0), 0.9, False, CONTRADICTED),
    ],
)
def test_a_claim_that_rests_on_a_fit_that_fails_is_undecided(strengths, threshold, gated, verdict):
    """Numbers that are only shown do not count."""
    conditions = [above("the gain", threshold), shown("another number")]
    judge = of_strength(*strengths)
    claim = Claim("1", "fig", "", "It gains", conditions, judge, gated=gated)
    found = judge_all(
        [claim], GATED, GATED.iloc[:0], gates_of(GATED), items={"fig": ["s", "t"]}, data=SIMULATED
    )
    assert found["verdict"].item() == verdict
    assert found["cause"].item() == (GATE if verdict == UNDECIDED else "")
    assert ("gate" in found["reason"].item()) == (verdict == UNDECIDED)
    if verdict == UNDECIDED:
        assert "s at strength 1 predicts clicks" in found["reason"].item()
        assert found["measured"].item().startswith("the gain = .3")


def test_a_mark_rests_on_fits_though_it_does_not_move_with_them():
    def judge(results):
        return np.sign(of_strength(0.5, 1.0)(results)[0])

    claim = Claim("1", "fig", "", "It gains", [significant("the mark of the gain")], judge)
    verdicts = (
        judge_all([claim], GATED, GATED.iloc[:0], gates, items={"fig": ["s"]}, data=SIMULATED)
        for gates in (gates_of(GATED), gates_of(GATED).iloc[:0])
    )
    failing, passing = (found["cause"].item() for found in verdicts)
    assert (failing, passing != GATE) == (GATE, True)


def test_a_judge_sees_single_queries_where_it_reads_them():
    """Most rows are theirs, so that other judges are asked without them."""
    alone = pd.DataFrame({"metric": "query_ndcg", "query": [0, 1], "value": 1.0})
    results = pd.concat([GATED, alone.assign(setting="s", seed=1)], ignore_index=True)
    conditions, gates = [above("it", 0)], gates_of(GATED)
    for metric, without in (("ndcg", len(alone)), ("query_ndcg", 0)):
        lengths = []

        def judge(results, metric=metric, lengths=lengths):
            lengths.append(len(results))
            return results.loc[results["metric"] == metric, "value"].mean()

        claim = Claim("1", "fig", "", "", conditions, judge, chance=False)
        judge_all([claim], results, results.iloc[:0], gates, items={"fig": ["s"]}, data=SIMULATED)
        # It is asked on both, to see whether it reads them.
        assert set(lengths[2:]) == {lengths[0] - without}
