"""Fits that stop before their parameters can have left a random start."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from twotowers.methods.starts import warn_of_starts
from twotowers.methods.task import Task
from twotowers.models.document_rate import DocumentRate
from twotowers.towers.two_towers import two_towers

# 2,048 sessions are 4 steps an epoch.
TRAINING = {"learning_rate": 0.003, "batch": 512, "epochs": 500, "patience": 3, "min_delta": 0}
TASK = Task(None, "embedding", {}, [], {}, positions=5, seed=0)


def warned(caplog, epochs, *, model=None, start="random", rate=None, **training) -> int:
    """The number of warnings of a fit with one lane."""
    lane = {} if rate is None else {"learning_rate": rate}
    task = replace(TASK, training=TRAINING | training, lanes=[(0, lane)])
    towers = two_towers("embedding", width=3, pairs=3, positions=5, seed=0, model=model)
    with caplog.at_level(logging.WARNING, "twotowers"):
        warn_of_starts(task, towers, start, 2048, np.array([epochs]))
    return len(caplog.records)


# A parameter can move by .003 x 4 x epochs.
@pytest.mark.parametrize(("epochs", "warnings"), [(50, 1), (333, 1), (334, 0)])
def test_few_steps_are_warned_of(caplog, epochs, warnings):
    assert warned(caplog, epochs) == warnings


@pytest.mark.parametrize(
    ("options", "warnings"),
    [
        ({"steps": 100}, 0),
        ({"steps": 20}, 1),
        ({"rate": 0.03}, 0),
        ({"start": "zero"}, 0),
        ({"optimizer": "sgd"}, 0),
        ({"optimizer": "adam"}, 1),
        ({"model": DocumentRate()}, 0),
    ],
)
def test_other_steps_rates_starts_optimisers_and_models(caplog, options, warnings):
    assert warned(caplog, 50, **options) == warnings
