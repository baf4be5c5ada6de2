"""Counts and estimates of a run, with a fake clock."""

from __future__ import annotations

import pytest

from twotowers.workflow.progress import Progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_nothing_is_estimated_from_nothing(clock):
    progress = Progress({"fit": 2}, clock=clock)
    progress.start(1, "fit")
    assert progress.to_go() is None
    assert str(progress) == "0 of 2 jobs done, 0 s so far"


def test_one_after_the_other(clock):
    progress = Progress({"fit": 3}, clock=clock)
    progress.start(1, "fit")
    clock.now = 60
    progress.finish(1)
    progress.start(2, "fit")
    assert progress.to_go() == 120
    clock.now = 80
    # 40 s of this job, 60 s of the last.
    assert progress.to_go() == 100
    assert str(progress) == "1 of 3 jobs done, 1 min 20 s so far, about 2 min to go"


def test_side_by_side_goes_twice_as_fast(clock):
    progress = Progress({"fit": 6}, clock=clock)
    for job in (1, 2):
        progress.start(job, "fit")
    clock.now = 10
    for job in (1, 2):
        progress.finish(job)
    assert progress.to_go() == 4 * 10 / 2


def test_a_rule_is_judged_by_its_own_jobs_then_by_an_earlier_run_then_by_the_mean(clock):
    progress = Progress({"parse": 2, "fit": 1, "page": 1}, {"fit": 100, "parse": 7}, clock)
    progress.start(1, "parse")
    clock.now = 2
    progress.finish(1)
    # parse takes 2 s in this run, not 7; fit took 100 s before; page has the mean of all.
    assert progress.to_go() == 2 + 100 + (2 + 100) / 2
    assert progress.seconds == {"fit": 100, "parse": 2}


def test_a_job_that_takes_longer_than_expected_is_about_to_end(clock):
    progress = Progress({"fit": 1}, {"fit": 10}, clock)
    progress.start(1, "fit")
    clock.now = 50
    assert progress.to_go() == 0


def test_failures_are_counted_and_tell_nothing_of_time(clock):
    progress = Progress({"fit": 2}, {"fit": 10}, clock)
    progress.start(1, "fit")
    clock.now = 1
    progress.fail(1)
    assert progress.done == "0 of 2 jobs done, 1 failed, 1 s"
    assert progress.to_go() == 10
    progress.start(1, "fit")
    assert progress.done == "0 of 2 jobs done, 1 s", "tried again"
    assert progress.to_go() == 20


@pytest.mark.parametrize(
    ("seconds", "text"), [(59, "less than a minute"), (300, "about 5 min"), (7300, "about 2 h")]
)
def test_an_estimate_has_few_digits(clock, seconds, text):
    assert str(Progress({"fit": 1}, {"fit": seconds}, clock)).endswith(f"{text} to go")
