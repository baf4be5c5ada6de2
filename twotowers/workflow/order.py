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

from twotowers.experiment.parts import name_of
from twotowers.workflow.plan import Plan

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
        papers = list(plan.experiments)
        self._papers = {key: PAPER * (len(papers) - 1 - papers.index(key)) for key in papers}

    def of_dataset(self, dataset: str) -> int:
        """The priority of jobs that make a data set: that of the first paper to use it."""
        users = [key for key, paper in self.plan.experiments.items() if dataset in paper.datasets]
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
        first = int(seed) == self.plan.experiments[paper].seeds_of(need)[0]
        return self._papers[paper] + first + seconds / self._longest

    def of_page(self, paper: str) -> int:
        """The priority of a paper's items, claims and page."""
        return self._papers[paper] + LAST

    def expected_seconds(self, paper: str, need: str) -> float | None:
        """Seconds of a job of a setting or study: measured, else guessed, else None."""
        made = self.plan.file("fit", paper=paper, setting=need)
        if (measured := self.seconds.get(os.path.dirname(made))) is not None:
            return measured
        is_fit = need in self.plan.experiments[paper].settings
        return self.fit_guess(paper, need) if is_fit else None

    def fit_guess(self, paper: str, setting: str) -> float:
        """A guess of the seconds of a fit that was never measured."""
        fit = self.plan.fit_parameters(paper, setting)
        lanes = math.prod(len(values) for part in fit["lanes"].values() for values in part.values())
        # Without steps, an epoch is a pass over a log of a size that nobody knows yet.
        visits = lanes * fit["training"].get("batch", 0) * fit["training"].get("steps", 40)
        cost = COSTS.get(name_of(fit["model"]["tower"]), 1)
        return START + visits * cost / VISITS_PER_SECOND

    @cached_property
    def _longest(self) -> float:
        expected = [
            self.expected_seconds(key, need)
            for key, paper in self.plan.experiments.items()
            for need in paper.needs
        ]
        return max(filter(None, expected), default=1)
