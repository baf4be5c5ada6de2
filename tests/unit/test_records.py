"""A job's log has its facts, its messages and its outcome. Failures are found by it."""

import json
import logging
import os
import platform
import sys
from datetime import datetime

import pytest

from twotowers.errors import InputError
from twotowers.workflow.records import cost, failures, job_log, read


def test_a_log_has_facts_what_was_said_and_the_outcome(tmp_path):
    path = tmp_path / "deep" / "job.log"
    with job_log(path, {"rule": "fit", "parameters": {"seed": 3}}):
        print("to stdout")
        # A job that is killed cannot flush.
        assert "to stdout\n" in path.read_text()
        assert "outcome" not in read(path)
        print("to stderr", file=sys.stderr)
        logging.getLogger("twotowers.fitting.gradient").info("epoch %d", 7)
    facts = read(path)
    assert facts["rule"] == "fit"
    assert facts["parameters"] == '{"seed": 3}'
    assert json.loads(facts["versions"])["Python"] == platform.python_version()
    assert facts["outcome"] == "done"
    assert datetime.fromisoformat(facts["started"]) <= datetime.fromisoformat(facts["ended"])
    assert 0 <= float(facts["seconds"]) < 5
    assert 1 < float(facts["memory"].removesuffix(" MB")) < 10**5
    said = path.read_text().split("\n\n", 1)[1].splitlines()
    assert said[:2] == ["to stdout", "to stderr"]
    assert said[2].endswith(" epoch 7")


def test_jobs_take_all_their_seconds_and_the_most_memory_or_it_is_unknown(tmp_path):
    logs = [tmp_path / "a.log", tmp_path / "b.log"]
    for log, took, memory in zip(logs, (1.5, 20), (812, 97), strict=True):
        log.write_text(f"rule: fit\nprocessor: {took}\nmemory: {memory} MB\noutcome: done\n")
    assert cost(logs) == {"seconds": 21.5, "megabytes": 812}
    unknown = {"seconds": None, "megabytes": None}
    logs[0].write_text("rule: fit\n")
    assert cost(logs) == cost([*logs[1:], tmp_path / "gone.log"]) == unknown


def test_a_failure_ends_with_its_cause_after_the_traceback(tmp_path):
    path = tmp_path / "job.log"
    with pytest.raises(InputError), job_log(path, {"rule": "parse"}):
        raise InputError("2 is\nwrong", path="data.txt", line=3)
    assert read(path)["outcome"] == "failed: InputError: data.txt:3: 2 is wrong"
    assert "Traceback (most recent call last)" in path.read_text()


def test_failures_are_those_of_this_run_in_their_order(tmp_path):
    def log(name, *lines, at):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(["rule: fit", *lines]))
        os.utime(path, (at, at))
        return path

    log("a/earlier.log", "outcome: failed: OSError: old", at=99)
    log("a/well.log", "outcome: done", at=101)
    killed = log("b/killed.log", at=103)
    failed = log("a/failed.log", "outcome: failed: OSError: new", at=102)
    found = list(failures(tmp_path, since=100))
    assert [path for path, _ in found] == [failed, killed]
    assert found[0][1] == "OSError: new"
    assert "killed" in found[1][1]
