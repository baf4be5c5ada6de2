"""What a run makes: the files of its papers, items and data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from twotowers.errors import InputError, check_choice
from twotowers.experiment.config import DataSet, RunConfig
from twotowers.experiment.matrix import item_needs
from twotowers.experiment.paper import Paper
from twotowers.root import ROOT
from twotowers.splits import DOCUMENTS, LOG, PAGES
from twotowers.workflow.plan import Places

ENDINGS = {"figure": ("pdf", "svg", "csv"), "table": ("tex", "csv")}
"""The file endings of an item, by kind."""


class Targets(Places):
    """The files that a run makes, and where its data come from.

    Args:
        config: the configuration.
        papers: the papers, by key, at the configured scale.
        root: the project's folder.
    """

    def __init__(self, config: RunConfig, papers: Mapping[str, Paper], root: Path = ROOT):
        super().__init__(*(f"{root}/{config.scale}" for root in (config.results, config.figures)))
        self.config, self.papers, self.root = config, papers, Path(root)

    def runs(self, paper: str, needs: Iterable[str] | None = None) -> list[tuple[str, int]]:
        """Setting or study and seed of each job; of all needs if None."""
        own = self.papers[paper]
        return [(need, seed) for need in needs or own.needs for seed in own.seeds_of(need)]

    def results_of(self, paper: str, needs: Iterable[str] | None = None) -> list[str]:
        """The results of some settings and studies (all if None), for every seed."""
        return [
            self.file("fit", paper=paper, setting=need, seed=seed)
            for need, seed in self.runs(paper, needs)
        ]

    def records_of(self, paper: str, needs: Iterable[str]) -> list[str]:
        """The records of such jobs. They say how long the jobs took."""
        return [
            self.record("fit", paper=paper, setting=need, seed=seed)
            for need, seed in self.runs(paper, needs)
        ]

    def item_files(self, paper: str, item: str) -> list[str]:
        """Every file of one item."""
        endings = ENDINGS[self.papers[paper].items[item].kind]
        return [self.file("item", paper=paper, item=item, ending=ending) for ending in endings]

    def items_of(self, paper: str) -> list[str]:
        """Every file of every item of a paper."""
        return [path for item in self.papers[paper].items for path in self.item_files(paper, item)]

    def of_papers(self, *kinds: str) -> list[str]:
        """Each paper's files of the given kinds, one kind after the other."""
        return [self.file(kind, paper=key) for kind in kinds for key in self.papers]

    def targets(self) -> list[str]:
        """What a run makes: the chosen items, or the pages, the claims and all items.

        Items are listed beside the pages, so that a deleted item is made again.
        """
        made = {f"{key}/{item}" for key, paper in self.papers.items() for item in paper.items}
        for name in self.config.only:
            check_choice(name, made, field="only")
        if unmade := set(self.config.also) - made:
            # They may be of another paper, or of data that the scale leaves out.
            declared = self._declared()
            for name in sorted(unmade):
                check_choice(name, declared, field="also")
        if self.config.only:
            return [path for name in self.config.only for path in self.item_files(*name.split("/"))]
        ends = map(self.file, ("overview", "verdicts"))
        items = [path for key in self.papers for path in self.items_of(key)]
        return [*ends, *self.of_papers("page", "summary"), *items]

    def _declared(self) -> set[str]:
        """Every item of every paper."""
        keys = [path.parent.name for path in self.root.glob("papers/*/experiment.yaml")]
        return {f"{key}/{item}" for key in keys for item in item_needs(key, self.root)}

    # Data sets

    def dataset(self, name: str) -> DataSet:
        """A data set of the configuration."""
        return self.config.datasets[name]

    def standin_size(self, name: str, part: str) -> int:
        """How many queries or sessions a part of a stand-in has."""
        given = self.dataset(name).standin.get(self.config.scale)
        if given is None:
            raise InputError(
                f"there is no stand-in at scale {self.config.scale!r}",
                field=f"datasets.{name}",
                expected="'folder', where its files are",
            )
        sizes = given.parts
        of = LOG if part in (PAGES, DOCUMENTS) else part
        if of not in sizes:
            raise InputError(
                f"the stand-in has no {of}", field=f"datasets.{name}", expected=", ".join(sizes)
            )
        return sizes[of]

    def datasets_of(self, paper: str, needs: Iterable[str]) -> list[str]:
        """Data sets behind the given settings and studies."""
        own = self.papers[paper]
        return list(dict.fromkeys(name for need in needs for name in own.datasets_of(need)))
