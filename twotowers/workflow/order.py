"""The order of jobs: it changes no result, only the time at which each is there.

Papers come one after the other, in the order in which `papers` of the configuration names them. So
the first one is on the page while the others still run. Jobs of the next paper fill the cores that
the last jobs of a paper leave idle.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from twotowers.workflow.plan import Plan

if TYPE_CHECKING:
    from twotowers.experiment.settings import Setting

PAPER = 4
"""What a paper's jobs have more than those of the next paper."""

FIRST = 3
"""Priority of data, policies and clicks. Fits and studies wait for them and have lower ones."""

LAST = 0
"""Priority of items, claims and pages. They wait for fits and studies."""

COSTS = {"deep": 6, "dense": 60}
"""The cost of a visit of a query, by tower, in visits of a linear tower."""

START, VISITS_PER_SECOND = 5, 25_000
"""Seconds to start and compile a fit; visits of queries per second of linear lanes."""


class Order:
    """Priorities of all jobs of a plan.

    Args:
        plan: the plan.
        seconds: mean seconds of earlier jobs, by the folder of what they made.
    """

    def __init__(self, plan: Plan, seconds: Mapping[str, float] | None = None):
        self.plan = plan
        self.seconds = seconds or {}
        self.papers = plan["order"]
        keys = list(self.papers)
        self._papers = {key: PAPER * (len(keys) - 1 - keys.index(key)) for key in keys}

    def of_dataset(self, dataset: str) -> int:
        """The priority of jobs that make a data set: that of the first paper to use it."""
        users = [key for key, paper in self.papers.items() if dataset in paper["datasets"]]
        return max((self.of_inputs(key) for key in users), default=FIRST)

    def of_inputs(self, paper: str) -> int:
        """The priority of what a paper's fits and studies wait for."""
        return self._papers[paper] + FIRST

    def of_result(self, paper: str, need: str, seed: int | str) -> float:
        """The priority of a job of a setting or study.

        The first seeds of all settings and studies of a paper come first. The other seeds then
        find their program compiled. Within both groups long jobs come first, so that no core idles
        at the end. Studies that were never measured come last.
        """
        seconds = self.expected_seconds(paper, need)
        if seconds is None:
            return self.of_page(paper)
        first = int(seed) == self.papers[paper]["needs"][need]["seed"]
        return self._papers[paper] + first + seconds / self._longest

    def of_page(self, paper: str) -> int:
        """The priority of a paper's items, claims and page."""
        return self._papers[paper] + LAST

    def expected_seconds(self, paper: str, need: str) -> float | None:
        """Seconds of a job of a setting or study: measured, else guessed, else None."""
        made = self.plan.file("fit", paper=paper, setting=need)
        guess = self.papers[paper]["needs"][need]["guess"]
        return self.seconds.get(os.path.dirname(made), guess)

    @cached_property
    def _longest(self) -> float:
        expected = [
            self.expected_seconds(key, need)
            for key, paper in self.papers.items()
            for need in paper["needs"]
        ]
        return max(filter(None, expected), default=1)


def fit_guess(setting: Setting) -> float:
    """A guess of the seconds of a fit that was never measured."""
    lanes = math.prod(len(values) for part in setting.lanes.values() for values in part.values())
    training = setting.training
    # Without steps, an epoch is a pass over a log of a size that nobody knows yet.
    visits = lanes * training.batch * (training.steps or 40) if training else 0
    return START + visits * COSTS.get(setting.model.tower.name, 1) / VISITS_PER_SECOND
