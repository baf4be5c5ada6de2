"""A click model and a prior have one answer, asked by Python, by the command or by YAML."""

from itertools import cycle, product

import pandas as pd
import pytest

import twotowers as tt
from tests.tasks import setting_of
from twotowers.fits.models import model_of
from twotowers.jobs.fit import fit_setting
from twotowers.logs.sessions import write_sessions
from twotowers.models.names import MODELS
from twotowers.standins.wscd import generate_pages

POSITIONS = 10
SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}
SEED = 3
PRIORS = [None, (2.0, 0.5), (4.0, 0.2)]
WAYS = ["pbm", "cm", "dctr", "ubm", "simplified_bayesian_counted"]
"""EM of cells and of pages, counting of both, and a model without a short name."""
CASES = [*zip(WAYS, cycle(PRIORS)), *product(["dbn"], PRIORS)]
TOLERANCE = 1e-10
"""Of EM, by all three, so that what is left of its steps is below what is compared."""


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """A sessions file: pages of the stand-in for WSCD-2012."""
    path = tmp_path_factory.mktemp("log") / "sessions.parquet"
    write_sessions(path, generate_pages(sessions=300, seed=1))
    return path


@pytest.fixture(scope="module")
def parts(sessions):
    return tt.read_log(sessions).split(SHARES, seed=SEED)


def by_yaml(sessions, model, prior):
    """Metrics of the test pages, as a job measures them."""
    by_counting = model_of(model)[1].counts is not None
    method = {"kind": "counting"} if by_counting else {"kind": "em", "tolerance": TOLERANCE}
    strength, mean = prior or (1.0, 0.5)
    setting = {
        "model": {"kind": MODELS.get(model, model), "tower": "embedding"},
        "method": {**method, "prior": strength, "prior_mean": mean},
        "log": {
            "from": "dataset", "dataset": "any", "split": SHARES, "positions": POSITIONS,
        },
    }  # fmt: skip
    found = fit_setting({"log": sessions}, setting_of(setting), seed=SEED)
    return found[found["position"].isna()].set_index("metric")["value"]


@pytest.mark.parametrize(("model", "prior"), CASES)
def test_python_and_yaml_agree(sessions, parts, model, prior):
    means = by_yaml(sessions, model, prior)
    fitted = tt.fit(parts["train"], model, prior=prior, positions=POSITIONS, tolerance=TOLERANCE)
    found = fitted.evaluate(parts["test"])
    names = {"perplexity": "mean_perplexity", "conditional": "mean_conditional_perplexity"}
    names |= {"log_likelihood": "log_likelihood_clax"}
    for ours, theirs in names.items():
        assert found[ours] == pytest.approx(means[theirs], rel=1e-6), ours


@pytest.mark.parametrize("model", ["gctr", "rctr", "dctr", "pbm"])
def test_pages_and_their_counts_agree(sessions, model):
    """A model whose clicks are independent needs only counts."""
    log = tt.read_log(sessions)
    fits = [tt.fit(each, model, prior=(3, 0.3)) for each in (log, log.count().frame())]
    for part in fits[0].model.parts:
        one, other = (fit.parameters(part) for fit in fits)
        keys = [name for name in ("query", "document", "position") if name in one]
        if keys:
            one, other = (each.sort_values(keys, ignore_index=True) for each in (one, other))
        pd.testing.assert_frame_equal(one, other, rtol=1e-5, check_dtype=False)
