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
from twotowers.experiment.registry import kinds
from twotowers.fitting.pages import fit_counts, fit_pages
from twotowers.fitting.information import intervals
from twotowers.fitting.statistics import Statistics, distinct_pages
from twotowers.methods import counting, em
from twotowers.models.independent import as_pages

rng = np.random.default_rng(0)
pages = distinct_pages(
    rng.integers(20, size=(500, 4)), rng.random((500, 4)) < 0.3, np.ones((500, 4), bool)
)
for name, kind in kinds("models").items():
    model = as_pages(kind.load()())
    statistics = Statistics.of_pages(model, pages)
    if hasattr(model, "counts"):
        estimate = fit_counts(statistics)
    elif hasattr(model, "expectations"):
        estimate = fit_pages(statistics, prior=(1, 1), iterations=3)
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
