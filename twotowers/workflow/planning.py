"""What is built from what: makes the plan of a run from its configuration and its papers.

`python -m twotowers.workflow.planning PLAN ROOT < config.json` checks everything and writes the
plan. Errors of the input are one line.
"""

import gc
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    gc.disable()  # It would take a quarter of the seconds of this short process.

from twotowers.errors import InputError, check_choice
from twotowers.experiment.config import DataSet, RunConfig, read_config
from twotowers.experiment.items import Study
from twotowers.experiment.log import Files
from twotowers.experiment.matrix import item_needs
from twotowers.experiment.objects import dumped, files_of
from twotowers.experiment.paper import Paper, load_paper
from twotowers.experiment.simulated import ANNOTATED
from twotowers.experiment.training import TowerRanker
from twotowers.files.artefacts import atomic
from twotowers.jobs.fit import TRANSFER
from twotowers.root import ROOT
from twotowers.splits import ANNOTATIONS, DOCUMENTS, IDS, LOG, PAGES, SPLITS
from twotowers.workflow import descriptions
from twotowers.workflow.dataset_jobs import dataset_jobs
from twotowers.workflow.plan import ENDINGS, REFUSED, WILDCARDS, Places
from twotowers.workflow.provenance import code_digest

STAGES = {
    **dict.fromkeys(("generate_standin", "encode", "fetch", "parse"), 3),
    **dict.fromkeys(("preprocess", "policy", "clicks"), 3),
    **dict.fromkeys(("fit", "study"), 1),
}
"""The stages of a paper, the highest first. Items, claims and the page are last: 0."""

TEMPLATES = "twotowers/report/templates/*"
PUBLISHED = "published/**/*.csv"


class Planner(Places):
    """Computes the files and all jobs of a run.

    Args:
        config: the configuration.
        papers: the papers, by key, at the configured scale.
        root: the project's folder.
    """

    def __init__(self, config: RunConfig, papers: Mapping[str, Paper], root: Path = ROOT):
        super().__init__(*(f"{root}/{config.scale}" for root in (config.results, config.figures)))
        self.config, self.papers, self.root = config, papers, Path(root)
        # Hundreds of jobs have the same code.
        self.code = cache(partial(code_digest, root=self.root))

    def sources(self, pattern: str) -> list[str]:
        """The files of a pattern that are sources of jobs as code is, relative to the project."""
        return [str(path.relative_to(self.root)) for path in sorted(self.root.glob(pattern))]

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
        if self.config.also:
            # They may be of another paper, or of data that the scale leaves out.
            keys = [path.parent.name for path in self.root.glob("papers/*/experiment.yaml")]
            every = {f"{key}/{item}" for key in keys for item in item_needs(key, self.root)}
            for name in self.config.also:
                check_choice(name, every, field="also")
        if self.config.only:
            return [path for name in self.config.only for path in self.item_files(*name.split("/"))]
        ends = map(self.file, ("overview", "verdicts"))
        items = [path for key in self.papers for path in self.items_of(key)]
        return [*ends, *self.of_papers("page", "summary"), *items]

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
        of = LOG if part in (PAGES, DOCUMENTS) else part
        check_choice(of, given, field=f"datasets.{name}", what="no part of the stand-in")
        return given[of]

    def datasets_of(self, paper: str, needs: Iterable[str]) -> list[str]:
        """Data sets behind the given settings and studies."""
        own = self.papers[paper]
        return list(dict.fromkeys(name for need in needs for name in own.datasets_of(need)))

    def raw(self, dataset: str, split: str) -> str:
        """Where a part of a data set is."""
        if self.dataset(dataset).is_standin:
            self.standin_size(dataset, split)
        return self.file("raw", dataset=dataset, split=split)

    def files(self, paper: str) -> Files:
        """The artefacts that a paper's logs may read."""

        def path(kind: str, **names: Any) -> str:
            return self.raw(**names) if kind == "raw" else self.file(kind, paper=paper, **names)

        return Files(path, self.config.datasets)

    # Jobs

    def job(
        self, script: str, inputs: Any, *sources: str, trains: bool = False, **params: Any
    ) -> dict[str, Any]:
        """A job of a script: its code is that of the script and of further files."""
        code = self.code(f"scripts/{script}.py", *sources)
        return {"inputs": inputs, "trains": trains, "params": {"code": code, **params}}

    def jobs(self) -> dict[str, dict[str, dict]]:
        """By rule and wildcards: inputs, parameters and priority."""
        jobs = {rule: {} for rule in WILDCARDS}
        run = {"papers": list(self.papers), "scale": self.config.scale}
        templates = self.sources(TEMPLATES)
        for key, paper in self.papers.items():
            self._paper_jobs(jobs, key, paper)
            judged = [self.file(kind, paper=key) for kind in ("claims", "gates", "findings")]
            shown = descriptions.page_paper(self, key)
            jobs["page"][key] = self.job(
                "build_page",
                [*self.items_of(key), *judged],
                *templates,
                *shown["recorded"],
                paper=shown,
                **run,
            )
        for name in self.config.datasets:
            dataset_jobs(self, jobs, name)
        summaries = self.of_papers("summary")
        jobs["overview"][""] = self.job("build_overview", summaries, *templates, **run)
        for rule, own in jobs.items():
            for key, job in own.items():
                job["priority"] = self._priority(rule, *key.split("|"))
                job["gpu"] = int(job.pop("trains") and self.config.device == "cuda")
        return jobs

    def _priority(self, rule: str, name: str, *names: str) -> int:
        """How early a job runs; a higher number is earlier. It changes no result.

        Papers come one after the other, as `papers` of the configuration names them, so that the
        first one is on the page early. Jobs of the next paper fill the cores that the last jobs of
        a paper leave idle. Within a paper, what other jobs wait for comes first. Next comes the
        first seed of each setting and study: the other seeds then find their program compiled.
        """
        papers = list(self.papers)
        if rule in ("generate_standin", "encode", "fetch", "parse"):
            users = [key for key in papers if name in self.papers[key].datasets]
            name = users[0] if users else papers[-1]
        stage = STAGES.get(rule, 0)
        if rule in ("fit", "study"):
            need, seed = names
            stage += int(seed) == self.papers[name].seeds_of(need)[0]
        return 4 * papers[::-1].index(name) + stage if name else stage

    def _paper_jobs(self, jobs: dict, key: str, paper: Paper) -> None:
        for dataset in self.datasets_of(key, paper.needs):
            preparation = paper.datasets[dataset]
            if preparation.prepare is not None:
                raw = {split: self.raw(dataset, split) for split in SPLITS}
                highest = self.dataset(dataset).of.label_max
                jobs["preprocess"][f"{key}|{dataset}"] = self.job(
                    "preprocess", raw, steps=preparation.steps, label_max=highest
                )
        for name, setting in paper.settings.items():
            # A seed more or less changes no other fit.
            said = dumped(setting.model_copy(update={"seeds": None}))
            trees = [f"{TRANSFER.replace('.', '/')}.py"] if setting.transfer else []
            own = sorted({*files_of(said, self.root), *trees})
            trains = setting.method.has("TRAINS") or setting.method.has("GPU")
            for seed in paper.seeds_of(name):
                inputs = setting.log.fit_inputs(self.files(key), seed, setting)
                about = {"paper": key, "name": name, "setting": said, "seed": seed}
                jobs["fit"][f"{key}|{name}|{seed}"] = self.job(
                    "fit_setting", inputs, *own, trains=trains, **about
                )
                self._clicks(jobs, key, setting.log, seed)
        for name, study in paper.studies.items():
            kind = study.kind(key, paper.root)
            trains = getattr(kind.module, "GPU", False)
            about = {"paper": key, "name": name, "module": kind.name}
            about |= {"parameters": study.parameters}
            for seed in paper.seeds_of(name):
                inputs, source = self.study_inputs(jobs, key, study), kind.source(self.root)
                jobs["study"][f"{key}|{name}|{seed}"] = self.job(
                    "run_study", inputs, source, trains=trains, **about, seed=seed
                )
        published = self.sources(f"papers/{key}/{PUBLISHED}")
        for name, item in paper.items.items():
            drawing = item.drawing(key, paper.root)
            about = {"module": drawing.module.__name__, "drawing": item.parameters, "paper": key}
            about |= {"name": name, "note": descriptions.source_note(self, key, name)}
            jobs[item.kind][f"{key}|{name}"] = self.job(
                "draw_item",
                self.results_of(key, item.needs),
                drawing.source(self.root),
                *published,
                **about,
            )
        files = [f"papers/{key}/{name}.py" for name in ("claims", "findings")]
        own = [path for path in files if (self.root / path).is_file()]
        needs = {name: list(each.needs) for name, each in paper.items.items()}
        about = {"paper": key, "needs": needs, "data": descriptions.needs_data(self, key)}
        jobs["claims"][key] = self.job(
            "judge_claims", self.results_of(key), *own, *published, **about
        )

    def _clicks(self, jobs: dict, key: str, log: Any, seed: int) -> None:
        inputs = log.clicks_inputs(self.files(key), seed)
        if inputs is None:
            return
        dataset = log.datasets[0] if log.datasets else "lists"
        name = f"{key}|{dataset}|{log.name}|{seed}"
        if name in jobs["clicks"]:
            return  # of another setting
        said = dumped(log)
        own = sorted({*files_of(said, self.root)})
        about = {"paper": key, "log": said, "seed": seed}
        jobs["clicks"][name] = self.job("simulate_clicks", inputs, *own, **about)
        if ranking := log.ranking(seed):
            self._policy(jobs, key, dataset, **ranking)

    def _policy(
        self, jobs: dict, key: str, dataset: str, relevance: str, ranker: str, seed: int
    ) -> None:
        settings = self.papers[key].rankers.get(ranker)
        preparation = self.papers[key].datasets[dataset]
        jobs["policy"][f"{key}|{dataset}|{relevance}|{ranker}|{seed}"] = self.job(
            "train_policy",
            self.rankings(key, dataset),
            trains=isinstance(settings, TowerRanker),
            relevance=relevance,
            ranker=ranker,
            settings=settings and settings.plain(),
            # Places per query that the percentiles of synthetic relevance count.
            places=preparation.top if preparation.percentiles == "places" else None,
            seed=seed,
        )

    def study_inputs(self, jobs: dict, paper: str, study: Study) -> dict[str, str]:
        """The inputs of a study: none, a click log, its pages and annotations, or rankings. Real
        files with text have ids, too.

        With rankings there may be a policy.
        """
        dataset = study.dataset
        if dataset is None:
            return {}
        about = self.dataset(dataset)
        splits = about.of.splits
        if study.raw and ANNOTATIONS in splits:
            ids = (IDS,) if about.has_texts and not about.is_standin else ()
            return {part: self.raw(dataset, part) for part in (PAGES, ANNOTATIONS, *ids)}
        if LOG in splits:
            return {LOG: self.raw(dataset, LOG)}
        if study.raw:
            return {split: self.raw(dataset, split) for split in SPLITS}
        files = self.rankings(paper, dataset)
        if study.ranker:
            names = {"dataset": dataset, "relevance": ANNOTATED, "ranker": study.ranker}
            # All seeds of a study share the policy of the first: they differ in their own draws.
            seed = self.papers[paper].seeds[0]
            files["policy"] = self.file("policy", paper=paper, **names, seed=seed)
            self._policy(jobs, paper, dataset, ANNOTATED, study.ranker, seed)
        return files

    def content(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "results": self.results,
            "figures": self.figures,
            "targets": self.targets(),
            "jobs": self.jobs(),
        }


def make_plan(
    config: Mapping[str, Any], root: Path = ROOT, files: Sequence[str] = ("config.yaml",)
) -> dict[str, Any]:
    """The plan of a configuration, and of the files that it comes from, for messages."""
    settled = read_config(config, files)
    papers = {key: load_paper(key, settled, root) for key in settled.papers}
    return Planner(settled, papers, root).content()


def main() -> None:
    path, root = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    try:
        plan = make_plan(json.load(sys.stdin), root, sys.argv[3:] or ["config.yaml"])
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(plan))


if __name__ == "__main__":
    main()
