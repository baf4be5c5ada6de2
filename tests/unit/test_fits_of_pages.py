"""Fits of logs with sessions: starts, stopping, and exact optima."""

import jax
import numpy as np
import pytest
from flax import nnx

from tests.tasks import task_of
from tests.unit.simulated import POSITIONS, WIDTH, policies, read, simulated, write_world
from twotowers.errors import InputError
from twotowers.files.rankings import mask, pad
from twotowers.fitting.newton import fit_embedding
from twotowers.logs.simulated_sessions import counts_of
from twotowers.methods import descent, likelihood, newton
from twotowers.methods.likelihood import starts_of
from twotowers.methods.task import Split, Task
from twotowers.models.additive import Additive
from twotowers.models.position_based import PositionBased
from twotowers.towers.lane import Lane
from twotowers.towers.two_towers import two_towers

TRAINING = {"learning_rate": 0.05, "batch": 20, "steps": 30, "epochs": 4, "patience": 2,
            "min_delta": 1e-5}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def pages(folder):
    return simulated(folder, "pages", record="sessions")


def made(folder, pages, *, lanes, tower="embedding", model=None, users=True, paged=True) -> Task:
    found = read(folder, pages)
    splits = {}
    for split, policy in policies(folder).items():
        where = mask(policy.pairs.lengths, POSITIONS)
        splits[split] = Split(
            inputs=np.arange(where.size, dtype=np.int32).reshape(where.shape)
            if tower == "embedding"
            else np.random.default_rng(0).normal(size=(*where.shape, WIDTH)),
            where=where,
            relevance=pad(policy.relevance, policy.pairs.offsets, POSITIONS),
            counts=counts_of(found[split], 6, POSITIONS),
            sessions=found[split] if paged else None,
        )
    given = {"model": model or Additive(), "tower": tower, "lanes": lanes, "training": TRAINING}
    return task_of(splits, POSITIONS, **given, seed=3, users=[Additive()] * 4 if users else None)


def started(*starts) -> tuple[list, Lane]:
    """A task's lanes, and the start."""
    return [(3, {"start": start}) for start in starts], Lane("start", starts)


def fresh(task: Task):
    width = task.splits["train"].where.size if task.tower == "embedding" else WIDTH
    return two_towers(task.tower, width=width, positions=POSITIONS, seed=1, model=task.model)


def test_sessions_fit_in_batches_of_sessions(folder, pages):
    lanes = [(3, "none")]
    by_page, by_cell = (
        descent.split_loss(made(folder, pages, lanes=[], paged=paged).splits[split], lanes)
        for paged, split in ((True, "train"), (False, "train"))
    )
    assert (by_page.units, by_cell.units) == (900, 6)
    some = descent.some_sessions(by_page, 300)
    np.testing.assert_array_equal(some.query[0], by_page.query[0][::3])
    assert descent.some_sessions(by_page, 5000).units == 900


def test_starts(folder, pages):
    lanes, start = started("zero", "truth", "random")
    task = made(folder, pages, lanes=lanes)
    model = fresh(task)
    graph, state = nnx.split(model)
    vectors = starts_of(task, model, start)
    unravel = jax.flatten_util.ravel_pytree(state)[1]
    zero, truth, random = (nnx.merge(graph, unravel(vector)) for vector in vectors)
    train = task.splits["train"]
    assert not np.any(zero.relevance(train.inputs))
    assert not np.any(zero.position_bias)
    np.testing.assert_array_equal(random.relevance(train.inputs), model.relevance(train.inputs))
    logits = np.asarray(truth.relevance(train.inputs))
    np.testing.assert_allclose(logits[train.where], train.relevance[train.where] - 2)
    np.testing.assert_allclose(truth.position_bias, -np.log(np.arange(1, POSITIONS + 1)), rtol=1e-6)
    # With random starts only, the fit is the plain one.
    assert starts_of(made(folder, pages, lanes=[(3, {})]), model, "random") is None


def test_the_truth_of_a_position_based_user_is_finite(folder, pages):
    task = made(folder, pages, lanes=[(3, {})], model=PositionBased())
    task.users[:] = [PositionBased(eta=2)] * 4
    (vector,) = starts_of(task, fresh(task), "truth")
    assert np.isfinite(vector).all()


@pytest.mark.parametrize(
    ("start", "changes", "message"),
    [
        ("truth", {"users": False}, "the truth of a real log is unknown"),
        ("truth", {"tower": "linear"}, "a linear tower cannot start at the truth"),
        ("truth", {"model": PositionBased()}, "the user and the model have different parameters"),
        ("zero", {"tower": "deep"}, "a deep tower does not learn from zeros"),
    ],
)
def test_starts_that_there_are_not(folder, pages, start, changes, message):
    task = made(folder, pages, lanes=[(3, {})], **changes)
    with pytest.raises(InputError, match=message):
        starts_of(task, fresh(task), start)


def test_what_stops_a_fit(folder, pages):
    watched = []
    likelihood_fit = descent.gradient_fit

    def spy(model, train, validation, *more, **options):
        watched.append((train, validation))
        return likelihood_fit(model, train, validation, *more, **options)

    for paged in (True, False):
        task = made(folder, pages, lanes=[(3, {})], paged=paged)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(descent, "gradient_fit", spy)
            likelihood.fit(task, stop_on="train")
    (train, validation), (counts, same) = watched
    assert validation.units == 400
    assert np.isin(np.asarray(validation.query), np.asarray(train.query)).all()
    assert counts.counts is same.counts


def test_newton_is_the_exact_optimum_of_the_sessions_counts(folder, pages):
    task = made(folder, pages, lanes=[(log, {}) for log in (1, 3)])
    train = task.splits["train"]
    for fitted, log in zip(newton.fit(task), (1, 3), strict=True):
        counts = train.counts.of_log(log)
        exact = fit_embedding(counts.impressions[train.where], counts.clicks[train.where])
        np.testing.assert_allclose(fitted.bias, exact.bias)
        logits = fitted.scores(train.inputs)[train.where]
        known = np.isfinite(exact.relevance)
        np.testing.assert_allclose(logits[known], exact.relevance[known])
        assert np.isfinite(logits).all()
        # No other parameters have a higher likelihood, such as the true ones.
        truth = Additive().chance(train.relevance, POSITIONS)
        at_truth = -(
            counts.clicks * np.log(truth)
            + (counts.impressions - counts.clicks.astype(float)) * np.log(1 - truth)
        ).sum()
        assert fitted.cell_losses(train).sum() < at_truth
        assert np.isfinite(fitted.values["nll"])
