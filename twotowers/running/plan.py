"""What is built from what: files, inputs, parameters and order of all jobs.

The rules of the Snakefile only declare; what they declare is computed here from the
configuration, without Snakemake. No file is read; only a paper's own rules, studies and published
numbers are looked for. Light imports only, since every start of Snakemake pays for them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from twotowers import LOG, ROOT, SPLITS
from twotowers.datasets.sources import Source, resolve
from twotowers.errors import InputError, nearest
from twotowers.running.experiments import Experiment
from twotowers.running.parts import TABLE, name_of
from twotowers.running.registry import find

FILES = {
    "raw": "{results}/raw/{dataset}/{split}.parquet",
    "manifest": "{results}/raw/{dataset}/manifest.json",
    "rankings": "{results}/rankings/{paper}/{dataset}/{split}.parquet",
    "policy": "{results}/policies/{paper}/{dataset}/{relevance}-{ranker}/{seed}.parquet",
    "clicks": "{results}/clicks/{paper}/{dataset}/{log}/{seed}.parquet",
    "fit": "{results}/fits/{paper}/{setting}/{seed}.parquet",
    "study": "{results}/fits/{paper}/{study}/{seed}.parquet",
    "claims": "{results}/claims/{paper}.csv",
    "item": "{figures}/{paper}/{item}.{ending}",
    "page": "{figures}/index.html",
    "verdicts": "{figures}/claims.csv",
    "crate": "{figures}/ro-crate-metadata.json",
    "workflow": "{figures}/Snakefile",
}
"""Where every artefact lies."""

LOGS = {
    "raw": "{results}/logs/raw/{dataset}/{split}.log",
    "manifest": "{results}/logs/raw/{dataset}/manifest.log",
    "rankings": "{results}/logs/rankings/{paper}/{dataset}.log",
    "policy": "{results}/logs/policies/{paper}/{dataset}/{relevance}-{ranker}/{seed}.log",
    "clicks": "{results}/logs/clicks/{paper}/{dataset}/{log}/{seed}.log",
    "fit": "{results}/logs/fits/{paper}/{setting}/{seed}.log",
    "study": "{results}/logs/fits/{paper}/{study}/{seed}.log",
    "claims": "{results}/logs/claims/{paper}.log",
    "item": "{results}/logs/items/{paper}/{item}.log",
    "page": "{results}/logs/page.log",
    "crate": "{results}/logs/crate.log",
}
"""Where the job that makes it says how that went."""

ENVIRONMENTS = {
    "generate_standin": "data",
    "fetch": "data",
    "parse": "data",
    "preprocess": "data",
    "policy": "jax-{device}",
    "clicks": "data",
    "fit": "jax-{device}",
    "study": "trees",
    "figure": "plots",
    "table": "plots",
    "claims": "plots",
    "page": "plots",
    "crate": "plots",
}
"""The environment of each rule's jobs under `--sdm conda`, a file of envs/."""

ENDINGS = {"figure": ("pdf", "svg", "csv"), "table": ("tex", "csv")}
"""The files that an item of each kind comes in."""

LOG_KEYS = ("from", "record", "user", "queries", "split", "bootstrap")
"""What a fit must know of its log."""

FIRST = 3
"""Priority of what fits and studies wait for, above theirs: data, policies, clicks."""

COSTS = {"deep": 6, "dense": 60}
"""What a visit of a query costs a tower, if not as much as one visit of a linear one."""

START, VISITS_PER_SECOND = 5, 25_000
"""Seconds to start and compile a fit, and visits of queries by linear lanes a second after."""


class Plan:
    """All jobs of a run.

    Args:
        config: config.yaml's content, checked.
        experiments: the papers, by key, at the configured scale.
        root: the project's folder.
        seconds: mean seconds of earlier jobs, by the folder of what they made.
    """

    def __init__(
        self,
        config: dict,
        experiments: Mapping[str, Experiment],
        root: Path = ROOT,
        seconds: Mapping[str, float] | None = None,
    ):
        self.config = config
        self.experiments = experiments
        self.root = Path(root)
        self.seconds = seconds or {}
        self.results = f"{config['results']}/{config['scale']}"
        self.figures = config["figures"]

    # Files

    def file(self, kind: str, **names) -> str:
        """The path of an artefact; what `names` leaves out stays a wildcard."""
        return self._filled(FILES[kind], names)

    def log(self, kind: str, **names) -> str:
        """The path of the log of the job that makes an artefact, wildcards as in `file`."""
        return self._filled(LOGS[kind], names)

    def _filled(self, template: str, names: dict) -> str:
        places = {place: f"{{{place}}}" for place in re.findall(r"{(\w+)}", template)}
        if unknown := names.keys() - places:
            raise TypeError(f"{template} has no place for {sorted(unknown)}")
        roots = {"results": self.results, "figures": self.figures}
        return template.format(**places | roots | names)

    def rankings(self, paper: str = "{paper}", dataset: str = "{dataset}") -> dict[str, str]:
        """A paper's prepared rankings of a data set, by split."""
        files = {"paper": paper, "dataset": dataset}
        return {split: self.file("rankings", **files, split=split) for split in SPLITS}

    def results_of(self, paper: str, needs: Iterable[str] | None = None) -> list[str]:
        """The results of the given settings and studies (of all of them if None), every seed."""
        return [
            self.file("fit", paper=paper, setting=need, seed=seed)
            for need, seed in self._runs(paper, needs)
        ]

    def logs_of(self, paper: str, needs: Iterable[str] | None = None) -> list[str]:
        """The logs of the same jobs, which say how long they took."""
        return [
            self.log("fit", paper=paper, setting=need, seed=seed)
            for need, seed in self._runs(paper, needs)
        ]

    def _runs(self, paper: str, needs: Iterable[str] | None) -> list[tuple[str, int]]:
        experiment = self.experiments[paper]
        needs = experiment.needs if needs is None else needs
        return [(need, seed) for need in needs for seed in experiment.seeds_of(need)]

    def item_files(self, paper: str, item: str) -> list[str]:
        """Every file of one item."""
        endings = ENDINGS[self.experiments[paper].items[item]["kind"]]
        return [self.file("item", paper=paper, item=item, ending=ending) for ending in endings]

    def item_inputs(self, paper: str, item: str) -> list[str]:
        """The results that an item is drawn from."""
        return self.results_of(paper, self.experiments[paper].items[item]["needs"])

    def shelf(self, ending: str) -> dict:
        """Where Snakemake's own report shows the file of an item: under its paper."""
        labels = {"item": "{item}", "format": ending}
        return {"category": "{paper}", "labels": labels, "caption": "caption.rst"}

    def verdicts(self) -> list[str]:
        """The verdicts on each paper's claims."""
        return [self.file("claims", paper=key) for key in self.experiments]

    def shown(self) -> list[str]:
        """Every file of every item."""
        return [
            path
            for key, paper in self.experiments.items()
            for item in paper.items
            for path in self.item_files(key, item)
        ]

    def targets(self) -> list[str]:
        """What a run makes: some items, or the page, the claims and all items.

        Of the page alone, no item would be made again that was deleted.

        Raises:
            InputError: an item that is asked for is unknown.
        """
        known = {f"{key}/{item}" for key, paper in self.experiments.items() for item in paper.items}
        chosen = self.config.get("only", [])
        for name in chosen:
            if name not in known:
                raise InputError(
                    f"{name!r} is unknown", field="only", expected=nearest(name, known)
                )
        if chosen:
            return [path for name in chosen for path in self.item_files(*name.split("/"))]
        return [*map(self.file, ("page", "verdicts", "crate")), *self.shown()]

    def paper_rules(self) -> list[str]:
        """The rules that papers bring."""
        files = [self.root / "papers" / key / "rules.smk" for key in self.experiments]
        return [str(path) for path in files if path.is_file()]

    # What rules apply to, and where their jobs run

    def constraint(self, kind: str) -> str:
        """Regular expression of all names of one kind, over all papers.

        Args:
            kind: "standin" or "files" (data sets that are generated, or read), "setting",
                "study", "figure" or "table".
        """
        papers = self.experiments.values()
        names = {
            "standin": [name for name in self.config["datasets"] if self.is_standin(name)],
            "files": [name for name in self.config["datasets"] if not self.is_standin(name)],
            "setting": [name for paper in papers for name in paper.settings],
            "study": [name for paper in papers for name in paper.studies],
        } | {
            ending: [
                name
                for paper in papers
                for name, item in paper.items.items()
                if item["kind"] == ending
            ]
            for ending in ENDINGS
        }
        # What no name matches: (?!) matches nothing.
        return "|".join(map(re.escape, dict.fromkeys(names[kind]))) or "(?!)"

    def environment(self, rule: str) -> str:
        """The file of the environment of a rule's jobs."""
        name = ENVIRONMENTS[rule].format(device=self.config["device"])
        return str(self.root / "envs" / f"{name}.yaml")

    # Data sets and seeds

    def is_standin(self, dataset: str) -> bool:
        """Whether a data set is generated."""
        return self.config["datasets"][dataset].get("folder") is None

    def standin(self, dataset: str) -> dict:
        """How a data set is generated: queries or sessions of each part, and the seed.

        Raises:
            InputError: it has neither a folder nor a size at this scale.
        """
        scale = self.config["scale"]
        sizes = self.config["datasets"][dataset].get("standin", {}).get(scale)
        if sizes is None:
            raise InputError(
                f"there is no stand-in at scale {scale!r}",
                field=f"datasets.{dataset}",
                expected="'folder', where its files are",
            )
        return {"sizes": sizes, "seed": 0}

    def source(self, dataset: str) -> Source:
        """The entry of the table of data sources behind a data set."""
        return resolve(self.config["datasets"][dataset]["source"])

    def used_datasets(self, paper: str, needs: Iterable[str]) -> list[str]:
        """Data sets behind the given settings and studies."""
        experiment = self.experiments[paper]
        needs = list(needs)
        users = [
            experiment.logs[experiment.settings[need]["log"]]
            for need in needs
            if need in experiment.settings
        ]
        users += [experiment.studies[need] for need in needs if need in experiment.studies]
        return list(dict.fromkeys(user["dataset"] for user in users if "dataset" in user))

    def used_seeds(self, paper: str, needs: Iterable[str]) -> list[int]:
        """Seeds behind the given settings and studies."""
        return sorted({seed for _, seed in self._runs(paper, needs)})

    # Inputs and parameters. These know the keys of experiment.yaml.

    def clicks_inputs(self, paper: str, log: str, seed: int | str) -> dict[str, str]:
        """What a log is simulated from: the scores of the ranker that its policy is made of."""
        log = self.experiments[paper].logs[log]
        names = {name: log[name] for name in ("dataset", "relevance", "ranker")}
        return {"policy": self.file("policy", paper=paper, **names, seed=seed)}

    def clicks_parameters(self, paper: str, log: str) -> dict:
        """How a log is simulated, but for its seed."""
        log = self.experiments[paper].logs[log]
        names = ("lanes", "sessions", "record", "user", "queries")
        return {name: log[name] for name in names if name in log}

    def fit_inputs(self, paper: str, setting: str, seed: int | str) -> dict[str, str]:
        """What a setting is fitted to: rankings, who ranked them, and clicks; or a real log."""
        experiment = self.experiments[paper]
        name = experiment.settings[setting]["log"]
        log = experiment.logs[name]
        dataset = log["dataset"]
        if log.get("from") == "dataset":
            return {LOG: self.file("raw", dataset=dataset, split=LOG)}
        return {
            **self.rankings(paper, dataset),
            **self.clicks_inputs(paper, name, seed),
            "clicks": self.file("clicks", paper=paper, dataset=dataset, log=name, seed=seed),
        }

    def fit_parameters(self, paper: str, setting: str) -> dict:
        """How a setting is fitted, but for its seed."""
        experiment = self.experiments[paper]
        setting = experiment.settings[setting]
        log = experiment.logs[setting["log"]]
        about_log = {name: log[name] for name in LOG_KEYS if name in log}
        # A method that does not train needs no training.
        training = experiment.training.get(setting["training"], {})
        return {**setting, "log": about_log, "training": training}

    def fit_guess(self, paper: str, setting: str) -> float:
        """About how many seconds a fit takes that was never measured."""
        fit = self.fit_parameters(paper, setting)
        lanes = math.prod(len(values) for part in fit["lanes"].values() for values in part.values())
        visits = lanes * fit["training"].get("batch", 0) * fit["training"].get("steps", 0)
        cost = COSTS.get(name_of(fit["model"]["tower"]), 1)
        return START + visits * cost / VISITS_PER_SECOND

    def fit_sources(self, paper: str, setting: str) -> list[str]:
        """A setting's model, method, towers, heads and user, which are found by name."""
        experiment = self.experiments[paper]
        setting = experiment.settings[setting]
        model, method = setting["model"], setting["method"]
        examination = name_of(model.get("examination", TABLE))
        named = [
            ("models", model["kind"]),
            ("methods", method["kind"]),
            ("towers", name_of(model["tower"])),
            *([] if examination == TABLE else [("towers", examination)]),
            *(("heads", name_of(head)) for head in method.get("heads", {}).values()),
        ]
        found = [str(find(family, name, paper, self.root).path) for family, name in named]
        if "user" in experiment.logs[setting["log"]]:
            found += self.clicks_sources(paper, setting["log"])
        return list(dict.fromkeys(found))

    def clicks_sources(self, paper: str, log: str) -> list[str]:
        """The user of a log, who is found by name."""
        user = self.experiments[paper].logs[log]["user"]
        return [str(find("models", user["kind"], paper, self.root).path)]

    def study_module(self, paper: str, study: str) -> str:
        """The module of a study, among its paper's."""
        return self.experiments[paper].studies[study].get("module", study)

    def study_inputs(self, paper: str, study: str) -> dict[str, str]:
        """What a study reads: nothing, a click log, or rankings and who ranked them."""
        experiment = self.experiments[paper]
        dataset = experiment.studies[study].get("dataset")
        if dataset is None:
            return {}
        if LOG in self.source(dataset).splits:
            return {LOG: self.file("raw", dataset=dataset, split=LOG)}
        files = self.rankings(paper, dataset)
        if ranker := experiment.studies[study].get("ranker"):
            names = {"dataset": dataset, "relevance": "annotated", "ranker": ranker}
            # One for all seeds, the first's: a study's seeds differ in what it draws itself.
            seed = experiment.seeds[0]
            files["policy"] = self.file("policy", paper=paper, **names, seed=seed)
        return files

    def study_parameters(self, paper: str, study: str) -> dict:
        """What a study's module is called with, but for its seed."""
        used_here = ("module", "dataset", "ranker", "seeds")
        parameters = self.experiments[paper].studies[study]
        return {name: value for name, value in parameters.items() if name not in used_here}

    # The order of jobs

    def expected_seconds(self, paper: str, need: str) -> float | None:
        """How long a job of a setting or study takes: as measured, or guessed, or not known."""
        made = self.file("fit", paper=paper, setting=need)
        if (measured := self.seconds.get(os.path.dirname(made))) is not None:
            return measured
        is_fit = need in self.experiments[paper].settings
        return self.fit_guess(paper, need) if is_fit else None

    @cached_property
    def _longest(self) -> float:
        expected = [
            self.expected_seconds(key, need)
            for key, paper in self.experiments.items()
            for need in paper.needs
        ]
        return max(filter(None, expected), default=1)

    def priority(self, paper: str, need: str, seed: int | str) -> float:
        """The priority of a job of a setting or study; order changes no result, only time.

        Long jobs first, so that no core idles while the last one ends. But the first seed of all
        settings and studies before the other seeds, which then find their program compiled. A
        study of which no time is known fills the end.

        Returns:
            1 to 2 for a first seed, 0 to 1 for others: below `FIRST`.
        """
        seconds = self.expected_seconds(paper, need)
        if seconds is None:
            return 0
        first = int(seed) == self.experiments[paper].seeds_of(need)[0]
        return first + seconds / self._longest

    # The code behind a job, beyond the script of its rule

    def study_sources(self, paper: str, study: str) -> list[str]:
        """What a study's module is imported from.

        Raises:
            InputError: there is no such module.
        """
        folder, module = Path("papers", paper, "studies"), self.study_module(paper, study)
        known = [path.stem for path in (self.root / folder).glob("*.py")]
        if module not in known:
            raise InputError(
                f"there is no module {module!r}",
                path=folder,
                field=f"studies.{study}",
                expected=nearest(module, known),
            )
        return [str(folder / f"{module}.py")]

    def item_sources(self, paper: str, item: str) -> list[str]:
        """What draws an item, and the published numbers, which it draws too."""
        drawing = self.experiments[paper].items[item]["draw"]["kind"]
        return [str(find("drawings", drawing, paper, self.root).path), *self._published(paper)]

    def claims_sources(self, paper: str) -> list[str]:
        """What judges claims, and the published numbers that it judges by."""
        claims = f"papers/{paper}/claims.py"
        # A folder without them makes no claims.
        found = [claims] if (self.root / claims).is_file() else []
        return [*found, *self._published(paper)]

    def _published(self, paper: str) -> list[str]:
        folder = self.root / "papers" / paper
        found = [*folder.glob("published.py"), *sorted(folder.glob("published/*.csv"))]
        return [str(path.relative_to(self.root)) for path in found]
