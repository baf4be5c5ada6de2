"""Pairs that EM cannot tell apart, fitted as one."""

from dataclasses import replace

import numpy as np
import pytest

from twotowers.experiment.components import build_model
from twotowers.fitting import duplicates, em
from twotowers.fitting.duplicates import DuplicateGroups
from twotowers.fitting.em import fit_em
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.models.names import MODELS
from twotowers.models.position_based import PositionBased
from twotowers.models.protocol import PAGES, of_documents
from twotowers.models.user_browsing import UserBrowsing

PAIRS, LENGTH = 400, 4
CHAINS = [build_model(MODELS[name]) for name in ("dcm", "ccm", "dbn", "sdbn")]


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Kinds are used however many rows they leave; these logs are small."""
    monkeypatch.setattr(duplicates, "WORTH", 1)


def statistics(model, views=300, seed=0):
    """Few views of many pairs, so that many pairs are alike; pairs that were never shown, too."""
    rng = np.random.default_rng(seed)
    pair = rng.integers(PAIRS - 20, size=(views, LENGTH))
    where = np.arange(LENGTH) < rng.integers(1, LENGTH + 1, views)[:, None]
    if model.statistics == PAGES:
        # Most pages have documents of their own.
        rare = rng.permutation(PAIRS - 20)[: 80 * LENGTH].reshape(80, LENGTH)
        pair = np.concatenate([rare, rare[:5], rng.choice(rare[:10].ravel(), (20, LENGTH))])
        where = np.arange(LENGTH) < np.where(np.arange(len(pair)) % 3, LENGTH, 2)[:, None]
    clicks = (rng.random(pair.shape) < 0.5 / np.arange(1, LENGTH + 1)) & where
    return Statistics.of_pages(model, distinct_pages(pair, clicks, where, pairs=PAIRS))


@pytest.mark.parametrize("model", [PositionBased(), UserBrowsing(), *CHAINS])
@pytest.mark.parametrize("prior", [Prior(), Prior(1, 9)])
def test_estimates_are_those_of_single_pairs(model, prior, monkeypatch):
    log = statistics(model)
    log = replace(log, number=log.number * 0.25)
    settings = {"prior": prior, "iterations": 4, "tolerance": 0}
    kinds = DuplicateGroups.of(log)
    assert len(kinds.repeats) < 0.7 * PAIRS
    assert len(kinds.statistics.number) < 0.7 * len(log.number)
    sizes = []
    run_em = em.run_em

    def noted(problem, *args, **kwargs):
        sizes.append(problem.size)
        return run_em(problem, *args, **kwargs)

    monkeypatch.setattr(em, "run_em", noted)
    # A start of its own for each pair tells them apart.
    alone = fit_em(log, start={"attraction": np.full(PAIRS, 0.3)}, **settings)
    found = fit_em(log, start={"attraction": 0.3}, **settings)
    assert sizes[0] - sizes[1] == (PAIRS - len(kinds.repeats)) * len(of_documents(model.parts))
    for part, values in alone.parameters.items():
        np.testing.assert_allclose(found.parameters[part], values, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(found.trials[part], alone.trials[part], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.history, alone.history, rtol=1e-10)


@pytest.mark.parametrize("model", [PositionBased(), UserBrowsing()])
def test_pairs_are_alike_if_all_of_their_rows_are(model):
    log = statistics(model)
    kinds = DuplicateGroups.of(log)
    columns = [log.index[part][:, 0] for part in log.index if part != "attraction"]
    rows = [set() for _ in range(PAIRS)]
    for pair, *row in zip(
        log.index["attraction"][:, 0], *columns, log.clicks[:, 0], log.number, strict=True
    ):
        rows[pair].add(tuple(row))
    same = {}
    for pair, kind in enumerate(kinds.kind):
        same.setdefault(frozenset(rows[pair]), set()).add(kind)
    assert all(len(each) == 1 for each in same.values())
    assert len(same) == len(kinds.repeats)
    assert kinds.repeats.sum() == PAIRS


def test_kinds_that_leave_most_rows_are_not_used(monkeypatch):
    monkeypatch.setattr(duplicates, "WORTH", 0.5)
    assert DuplicateGroups.of(statistics(PositionBased(), views=20_000)) is None
