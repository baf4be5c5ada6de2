"""What needs no JAX: reading, counting, identifiability, and click models by counting and EM."""

import subprocess
import sys

from twotowers import ROOT

WITHOUT = """
import sys

for heavy in ("jax", "flax", "optax", "rax"):
    sys.modules[heavy] = None  # An import of it fails.

import numpy as np
import twotowers.identifiability.diagnosis
import twotowers.logs.formats
import twotowers.logs.simulation
import twotowers.logs.warehouse
import twotowers.methods.newton
from twotowers.experiment.kinds import kinds
from twotowers.fitting.em import fit_counts, fit_em
from twotowers.fitting.information import intervals
from twotowers.fitting.prior import Prior
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.methods import counting, em

rng = np.random.default_rng(0)
pages = distinct_pages(
    rng.integers(20, size=(500, 4)), rng.random((500, 4)) < 0.3, np.ones((500, 4), bool)
)
for name, kind in kinds("models").items():
    model = kind.holds()
    statistics = Statistics.of_pages(model, pages)
    if model.counts is not None:
        estimate = fit_counts(statistics)
    elif model.expectations is not None:
        estimate = fit_em(statistics, prior=Prior(1, 2), iterations=3)
    else:
        continue
    intervals(statistics, estimate.parameters)
    print(name)
"""


def test_click_models_are_fitted_without_jax():
    command = [sys.executable, "-W", "error", "-c", WITHOUT]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not found.returncode, found.stderr
    assert {"position_based", "user_browsing", "dynamic_bayesian"} <= set(found.stdout.split())
