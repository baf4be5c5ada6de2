"""Damaged files: a reader reads what it promises, or refuses it. Anything else is a fault.

FUZZ is the number of inputs of each reader, whose seeds Hypothesis draws.
"""

import os
import signal
import warnings
from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, Target

INPUTS = int(os.environ.get("FUZZ", "100"))
MOST_SECONDS = 5
"""Of CPU time, so that a busy machine makes no faults."""


def too_slow(*_):
    raise TimeoutError(f"more than {MOST_SECONDS} s")


def try_inputs(target: Target, folder, inputs: int, seconds: float = MOST_SECONDS) -> Counter:
    """How many inputs are accepted and refused; a fault is an error."""
    counts = Counter()

    # A smaller seed is no simpler input, so nothing is shrunk.
    how = {"deadline": None, "derandomize": True, "suppress_health_check": HealthCheck}

    @settings(max_examples=inputs, phases=[Phase.generate], **how)
    @given(st.integers(0, 2**32 - 1))
    def try_one(seed):
        text = target.draw(Random(seed))
        note(repr(text))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            accepted = target.accepts(text, folder)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        counts["accepted" if accepted else "refused"] += 1

    before = signal.signal(signal.SIGPROF, too_slow)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try_one()
    finally:
        signal.signal(signal.SIGPROF, before)
    return counts


@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_is_read_or_refused(tmp_path, name):
    counts = try_inputs(TARGETS[name], tmp_path / "a", INPUTS)
    assert counts.total() == INPUTS
    assert counts["accepted"] >= INPUTS / 50
    assert counts["refused"] >= INPUTS / 10
