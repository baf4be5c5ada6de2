"""What is built from what: files, inputs and parameters of all jobs.

The rules of the Snakefile only declare. This module computes what they declare, from the
configuration and without Snakemake. It reads no file; it only looks whether a paper has rules,
studies and published numbers of its own. It imports little, since every start of Snakemake pays
for imports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from twotowers import ANNOTATIONS, DOCUMENTS, LOG, PAGES, ROOT, SPLITS
from twotowers.datasets.sources import Source, resolve
from twotowers.errors import InputError, nearest
from twotowers.experiment.experiments import Experiment
from twotowers.experiment.parts import TABLE, name_of, reads_pairs
from twotowers.experiment.registry import find
from twotowers.experiment.settling import STUDY, TRANSFER
from twotowers.experiment.settling_logs import ANNOTATED, DATASET, LISTS
from twotowers.towers.lane import KNOWN

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
    "page": "{figures}/{paper}/index.html",
    "summary": "{figures}/{paper}/summary.json",
    "overview": "{figures}/index.html",
    "verdicts": "{figures}/claims.csv",
    "crate": "{figures}/ro-crate-metadata.json",
    "workflow": "{figures}/Snakefile",
}
"""The path of every artefact."""

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
    "page": "{results}/logs/pages/{paper}.log",
    "overview": "{results}/logs/overview.log",
    "crate": "{results}/logs/crate.log",
}
"""The log of the job that makes it."""

ENVIRONMENTS = {
    "generate_standin": "data",
    "fetch": "data",
    "parse": "data",
    "preprocess": "data",
    "policy": "jax-{device}",
    "clicks": "jax-cpu",
    "fit": "jax-{device}",
    "study": "jax-cpu",
    "figure": "plots",
    "table": "plots",
    "claims": "plots",
    "page": "plots",
    "overview": "plots",
    "crate": "plots",
}
"""The environment of each rule's jobs under `--sdm conda`: a file of envs/."""

ENDINGS = {"figure": ("pdf", "svg", "csv"), "table": ("tex", "csv")}
"""The file endings of an item, by kind."""

LOG_KEYS = ("from", "record", "features", "user", "queries", "split", "bootstrap", "lists")
"""The keys of a log that a fit needs."""
CLICKS_KEYS = (
    "from", "lists", "contexts", "repairs", "lanes", "sessions", "record", "user", "queries",
    "ties", "noise",
)  # fmt: skip
"""The keys of a log that its simulation needs."""


class Plan:
    """All jobs of a run.

    Args:
        config: the checked content of config.yaml.
        experiments: the papers, by key, at the configured scale.
        root: the project's folder.
    """

    def __init__(
        self,
        config: dict,
        experiments: Mapping[str, Experiment],
        root: Path = ROOT,
    ):
        self.config = config
        self.experiments = experiments
        self.root = Path(root)
        self.results = f"{config['results']}/{config['scale']}"
        self.figures = config["figures"]

    # Files

    def file(self, kind: str, **names) -> str:
        """The path of an artefact. Names that are left out stay wildcards."""
        return self._filled(FILES[kind], names)

    def log(self, kind: str, **names) -> str:
        """The path of the log of the job that makes an artefact. Wildcards are as in `file`."""
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
        """The results of some settings and studies (all if None), for every seed."""
        return [
            self.file("fit", paper=paper, setting=need, seed=seed)
            for need, seed in self._runs(paper, needs)
        ]

    def logs_of(self, paper: str, needs: Iterable[str] | None = None) -> list[str]:
        """The logs of the same jobs. They say how long the jobs took."""
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
        """The place of an item's file in Snakemake's own report: under its paper."""
        labels = {"item": "{item}", "format": ending}
        return {"category": "{paper}", "labels": labels, "caption": "caption.rst"}

    def of_papers(self, *kinds: str) -> list[str]:
        """Each paper's files of the given kinds, one kind after the other."""
        return [self.file(kind, paper=key) for kind in kinds for key in self.experiments]

    def items_of(self, paper: str) -> list[str]:
        """Every file of every item of a paper."""
        items = self.experiments[paper].items
        return [path for item in items for path in self.item_files(paper, item)]

    def shown(self) -> list[str]:
        """Every file of every item."""
        return [path for key in self.experiments for path in self.items_of(key)]

    def targets(self) -> list[str]:
        """What a run makes: the chosen items, or the pages, the claims and all items.

        Items are listed beside the pages, so that a deleted item is made again.

        Raises:
            InputError: a chosen item is unknown.
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
        ends = map(self.file, ("overview", "verdicts", "crate"))
        return [*ends, *self.of_papers("page", "summary"), *self.shown()]

    def paper_rules(self) -> list[str]:
        """The rules that papers bring."""
        files = [self.root / "papers" / key / "rules.smk" for key in self.experiments]
        return [str(path) for path in files if path.is_file()]

    # Names that a rule applies to, and environments of its jobs

    def constraint(self, kind: str) -> str:
        """Regular expression of all names of one kind, over all papers.

        Args:
            kind: "standin" (generated data sets), "files" (data sets read from files),
                "setting", "study", "figure" or "table".
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
        # (?!) matches nothing.
        return "|".join(map(re.escape, dict.fromkeys(names[kind]))) or "(?!)"

    def environment(self, rule: str) -> str:
        """The environment file of a rule's jobs."""
        name = ENVIRONMENTS[rule].format(device=self.config["device"])
        return str(self.root / "envs" / f"{name}.yaml")

    # Data sets and seeds

    def is_standin(self, dataset: str) -> bool:
        """Whether a data set is generated."""
        return self.config["datasets"][dataset].get("folder") is None

    def standin(self, dataset: str) -> dict:
        """Sizes (queries or sessions) of the parts of a stand-in, and its seed.

        Raises:
            InputError: the data set has neither a folder nor a size at this scale.
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

    def standin_size(self, dataset: str, part: str) -> int:
        """How many queries or sessions a part of a stand-in has.

        Raises:
            InputError: the data set has no such part.
        """
        sizes = self.standin(dataset)["sizes"]
        of = LOG if part in (PAGES, DOCUMENTS) else part
        if of not in sizes:
            raise InputError(
                f"the stand-in has no {of}", field=f"datasets.{dataset}", expected=", ".join(sizes)
            )
        return sizes[of]

    def source(self, dataset: str) -> Source:
        """The data source of a data set."""
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

    def padded_places(self, paper: str, dataset: str) -> int | None:
        """Places per query that the percentiles of synthetic relevance count, if empty ones do."""
        steps = self.experiments[paper].datasets[dataset]
        return steps["top"] if steps.get("percentiles") == "places" else None

    def clicks_inputs(self, paper: str, log: str, seed: int | str) -> dict[str, str]:
        """The input of a simulated log: the scores of its policy's ranker, if it has one. Lists
        that are ranked once for all seeds need the documents, too."""
        log = self.experiments[paper].logs[log]
        if "dataset" not in log:
            return {}
        names = {name: log[name] for name in ("dataset", "relevance", "ranker")}
        once = log.get("from") == LISTS
        seed = log["policy"]["seed"] if once else seed
        shown = {"train": self.rankings(paper, log["dataset"])["train"]} if once else {}
        return {**shown, "policy": self.file("policy", paper=paper, **names, seed=seed)}

    def positions(self, paper: str, log: str) -> int:
        """Positions on a page of a log: its own, or those of the paper."""
        experiment = self.experiments[paper]
        return experiment.logs[log].get("positions", experiment.positions)

    def clicks_parameters(self, paper: str, log: str) -> dict:
        """The parameters of a simulated log, without the seed."""
        log = self.experiments[paper].logs[log]
        return {name: log[name] for name in CLICKS_KEYS if name in log}

    def fit_inputs(self, paper: str, setting: str, seed: int | str) -> dict[str, str]:
        """The inputs of a fit: rankings, policy and clicks; clicks alone; or a real log."""
        experiment = self.experiments[paper]
        name = experiment.settings[setting]["log"]
        log = experiment.logs[name]
        dataset = log.get("dataset", LISTS)
        clicks = {"clicks": self.file("clicks", paper=paper, dataset=dataset, log=name, seed=seed)}
        if log.get("from") == LISTS:
            if "transfer" not in experiment.settings[setting]:
                return clicks
            test = {"test": self.rankings(paper, dataset)["test"]}
            return {**self.clicks_inputs(paper, name, seed), **test, **clicks}
        if log.get("from") == DATASET:
            part = PAGES if log.get("record") == "sessions" else LOG
            parts = {LOG: part}
            tower = experiment.settings[setting]["model"]["tower"]
            if log.get("features") and not reads_pairs(tower, paper):
                judged = ANNOTATIONS in self.source(dataset).splits
                parts |= {name: name for name in (DOCUMENTS, *([ANNOTATIONS] if judged else []))}
            return {
                name: self.file("raw", dataset=dataset, split=each) for name, each in parts.items()
            }
        return {
            **self.rankings(paper, dataset),
            **self.clicks_inputs(paper, name, seed),
            **clicks,
        }

    def fit_parameters(self, paper: str, setting: str) -> dict:
        """The parameters of a fit, without the seed."""
        experiment = self.experiments[paper]
        setting = {
            key: value for key, value in experiment.settings[setting].items() if key != "seeds"
        }
        log = experiment.logs[setting["log"]]
        about_log = {name: log[name] for name in LOG_KEYS if name in log}
        # A method that does not train needs no training.
        training = experiment.training.get(setting["training"], {})
        return {**setting, "log": about_log, "training": training}

    def fit_sources(self, paper: str, setting: str) -> list[str]:
        """The files of a setting's model, method, towers, heads and user."""
        experiment = self.experiments[paper]
        setting = experiment.settings[setting]
        model, method = setting["model"], setting["method"]
        examination = name_of(model.get("examination", TABLE))
        named = [
            ("models", model["kind"]),
            ("methods", method["kind"]),
            ("towers", name_of(model["tower"])),
            *([] if examination in (TABLE, KNOWN) else [("towers", examination)]),
            *(("heads", name_of(head)) for head in method.get("heads", {}).values()),
        ]
        found = [str(find(family, name, paper, self.root).path) for family, name in named]
        if "transfer" in setting:
            found.append(f"{TRANSFER.replace('.', '/')}.py")
        if "user" in experiment.logs[setting["log"]]:
            found += self.clicks_sources(paper, setting["log"])
        return list(dict.fromkeys(found))

    def clicks_sources(self, paper: str, log: str) -> list[str]:
        """The users of a log, who are found by name."""
        kinds = self.experiments[paper].logs[log]["user"]["kind"]
        names = kinds if isinstance(kinds, list) else [kinds]
        return [str(find("models", name, paper, self.root).path) for name in names]

    def study_module(self, paper: str, study: str) -> str:
        """The name of a study's module."""
        return self.experiments[paper].studies[study].get("module", study)

    def study_inputs(self, paper: str, study: str) -> dict[str, str]:
        """The inputs of a study: none, a click log, or rankings and perhaps a policy."""
        experiment = self.experiments[paper]
        dataset = experiment.studies[study].get("dataset")
        if dataset is None:
            return {}
        if LOG in self.source(dataset).splits:
            return {LOG: self.file("raw", dataset=dataset, split=LOG)}
        if experiment.studies[study].get("raw"):
            return {split: self.file("raw", dataset=dataset, split=split) for split in SPLITS}
        files = self.rankings(paper, dataset)
        if ranker := experiment.studies[study].get("ranker"):
            names = {"dataset": dataset, "relevance": ANNOTATED, "ranker": ranker}
            # All seeds of a study share the policy of the first: they differ in their own draws.
            seed = experiment.seeds[0]
            files["policy"] = self.file("policy", paper=paper, **names, seed=seed)
        return files

    def study_parameters(self, paper: str, study: str) -> dict:
        """The parameters of a study, without the seed."""
        parameters = self.experiments[paper].studies[study]
        return {name: value for name, value in parameters.items() if name not in STUDY}

    # The code of a job, besides the script of its rule

    def study_sources(self, paper: str, study: str) -> list[str]:
        """The file of a study's module.

        Raises:
            InputError: the paper has no such module.
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
        """The files of an item's drawing and of the published numbers."""
        drawing = self.experiments[paper].items[item]["draw"]["kind"]
        return [str(find("drawings", drawing, paper, self.root).path), *self._published(paper)]

    def claims_sources(self, paper: str) -> list[str]:
        """The files of a paper's claims and of the published numbers."""
        claims = f"papers/{paper}/claims.py"
        found = [claims] if (self.root / claims).is_file() else []
        return [*found, *self._published(paper)]

    def _published(self, paper: str) -> list[str]:
        folder = self.root / "papers" / paper
        found = [*folder.glob("published.py"), *sorted(folder.glob("published/*.csv"))]
        return [str(path.relative_to(self.root)) for path in found]
