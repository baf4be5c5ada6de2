"""A short run of every reader's fuzzing, and tests of the fuzzer on readers that fail."""

import os
import signal
import sys
import time

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz import engine
from tests.fuzz.engine import drawn, try_batch
from tests.fuzz.targets import TARGETS, Target
from twotowers.errors import InputError

INPUTS = 200


@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_is_read_or_refused(tmp_path, name):
    counts, faults = try_batch(name, 7, range(INPUTS), tmp_path / "a")
    assert faults == []
    assert counts["accepted"] >= INPUTS / 50
    assert counts["refused"] >= INPUTS / 10
    assert counts["accepted"] + counts["refused"] == INPUTS


def test_an_input_depends_on_its_number_only():
    for name in TARGETS:
        assert drawn(name, 1, 5) == drawn(name, 1, 5)
        assert len({drawn(name, seed, number) for seed in (1, 2) for number in range(20)}) > 20


def reads(path):
    """A reader with one fault of each kind."""
    number = int(path.read_bytes())
    if number == 3:
        raise KeyError(number)
    if number == 5:
        raise InputError("wrong")
    if number == 70:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 130:
        while time.monotonic():
            pass
    if number % 2:
        raise InputError("odd", path=path)


@pytest.fixture
def faulty(monkeypatch):
    """A reader that fails. Its inputs are their numbers."""
    monkeypatch.setitem(TARGETS, "faulty", Target(draw=lambda rng: b"", read=reads))
    monkeypatch.setattr(engine, "drawn", lambda name, seed, number: b"%d" % number)
    monkeypatch.setattr(engine, "MOST_SECONDS", 0.2)
    return "faulty"


def test_faults_are_found_and_numbered(faulty, tmp_path):
    counts, faults = try_batch(faulty, 1, range(8), tmp_path)
    assert [number for _, number in faults] == [3, 5]
    assert faults[0][0].startswith("KeyError at test_fuzz.py:")
    assert faults[1][0].startswith("AssertionError at targets.py:")
    assert counts == {"files": 8, "accepted": 4, "refused": 2}


def test_an_input_that_takes_too_long_is_a_fault(faulty, tmp_path):
    _, faults = try_batch(faulty, 1, range(129, 132), tmp_path)
    assert [(number, kind.split()[0]) for kind, number in faults] == [(130, "TimeoutError")]


# Other tests of this process may have started JAX. The processes made here do not use it.
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_the_command_goes_on_where_its_process_was_killed(faulty, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fuzz", faulty, "--inputs", "192"])
    assert command.main() == 1
    report = capsys.readouterr().out
    assert "faulty: 192 inputs" in report
    assert "KeyError" in report
    assert "the process was killed (-9) within the batch from here (first: --only 64)" in report
    assert "TimeoutError" in report
    assert "(first: --only 130)" in report
