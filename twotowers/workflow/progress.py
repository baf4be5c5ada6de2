"""Progress of a run of many jobs, and an estimate of the time to go.

The expected time of a job is the mean of its rule in this run. Without one it is the mean of its
rule in earlier runs, and without that the mean of all jobs. Standard library only.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from statistics import fmean

from twotowers.report.words import spell

SECONDS = Path(".cache/seconds_of_rules.json")
"""Mean seconds of the jobs of each rule in earlier runs."""


class Progress:
    """Counts jobs and their seconds.

    Args:
        counts: jobs of each rule in this run.
        earlier: seconds per job of each rule in an earlier run, as far as known.
        clock: a clock in seconds, with any zero.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        earlier: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._waiting = Counter(counts)
        self._total = sum(counts.values())
        self._earlier = dict(earlier or {})
        self._clock = clock
        self._begin = clock()
        self._running: dict[Hashable, tuple[str, float]] = {}
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._failed: set[Hashable] = set()

    def start(self, job: Hashable, rule: str) -> None:
        """A job of a rule begins or is tried again."""
        if job in self._failed:
            self._failed.remove(job)
        else:
            self._waiting[rule] -= 1
        self._running[job] = rule, self._clock()

    def finish(self, job: Hashable) -> None:
        """A job is done."""
        rule, begin = self._running.pop(job)
        self._seconds[rule].append(self._clock() - begin)

    def fail(self, job: Hashable) -> None:
        """A job has failed. Its time does not count."""
        self._running.pop(job)
        self._failed.add(job)

    @property
    def seconds(self) -> dict[str, float]:
        """Mean seconds per job of each rule, in this run or else an earlier one."""
        return self._earlier | {rule: fmean(values) for rule, values in self._seconds.items()}

    def to_go(self) -> float | None:
        """Seconds until the last job ends, at the pace of this run; None if no time is known.

        The pace is the mean number of jobs that ran side by side. Jobs that wait for a failed one
        count as still to come.
        """
        known = self.seconds
        if not known:
            return None
        any_rule = fmean(known.values())
        now = self._clock()
        waiting = sum(count * known.get(rule, any_rule) for rule, count in self._waiting.items())
        running = sum(
            max(known.get(rule, any_rule) - (now - begin), 0)
            for rule, begin in self._running.values()
        )
        worked = sum(map(sum, self._seconds.values()))
        worked += sum(now - begin for _, begin in self._running.values())
        elapsed = now - self._begin
        pace = max(worked / elapsed if elapsed else 0, 1)
        return (waiting + running) / pace

    def __str__(self) -> str:
        """'34 of 118 jobs done, 1 failed, 3 min 20 s so far, about 5 min to go'."""
        left = self.to_go()
        return f"{self.done} so far" + ("" if left is None else f", {_roughly(left)} to go")

    @property
    def done(self) -> str:
        """'34 of 118 jobs done, 1 failed, 3 min 20 s'."""
        done = sum(map(len, self._seconds.values()))
        failed = f", {len(self._failed)} failed" if self._failed else ""
        return f"{done} of {self._total} jobs done{failed}, {spell(self._clock() - self._begin)}"


def _roughly(seconds: float) -> str:
    """An estimate in words, in whole minutes or hours."""
    if seconds < 60:
        return "less than a minute"
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes < 90 else f"about {minutes / 60:.0f} h"
