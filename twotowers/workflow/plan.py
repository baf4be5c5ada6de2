"""The plan of a run: the files, inputs and parameters of all jobs, as rules declare them.

`twotowers.workflow.planning` writes it, with the real classes of all settings. A Snakefile reads
it: whoever starts Snakemake again, as jobs on a cluster do, pays for reading one file. It is made
anew if the configuration, a paper or the code differs.

Standard library only.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from twotowers.errors import InputError
from twotowers.root import ROOT
from twotowers.splits import SPLITS

FILES = {
    "raw": "{results}/raw/{dataset}/{split}.parquet",
    "manifest": "{results}/raw/{dataset}/manifest.json",
    "rankings": "{results}/rankings/{paper}/{dataset}/{split}.parquet",
    "policy": "{results}/policies/{paper}/{dataset}/{relevance}-{ranker}/{seed}.parquet",
    "clicks": "{results}/clicks/{paper}/{dataset}/{log}/{seed}.parquet",
    "fit": "{results}/fits/{paper}/{setting}/{seed}.parquet",
    "study": "{results}/fits/{paper}/{study}/{seed}.parquet",
    "claims": "{results}/claims/{paper}.csv",
    "gates": "{results}/gates/{paper}.csv",
    "findings": "{results}/findings/{paper}.json",
    "item": "{figures}/{paper}/{item}.{ending}",
    "page": "{figures}/{paper}/index.html",
    "summary": "{figures}/{paper}/summary.json",
    "overview": "{figures}/index.html",
    "verdicts": "{figures}/claims.csv",
}
"""The path of every artefact."""

RECORDS = {
    "rankings": "{results}/logs/rankings/{paper}/{dataset}.log",
    "item": "{results}/logs/items/{paper}/{item}.log",
    "page": "{results}/logs/pages/{paper}.log",
    "overview": "{results}/logs/overview.log",
}
"""The record of the job that makes it, where it is not of the artefact's own name."""

WILDCARDS = {
    "generate_standin": ("dataset", "split"),
    "encode": ("dataset",),
    "fetch": ("dataset",),
    "parse": ("dataset", "split"),
    "preprocess": ("paper", "dataset"),
    "policy": ("paper", "dataset", "relevance", "ranker", "seed"),
    "clicks": ("paper", "dataset", "log", "seed"),
    "fit": ("paper", "setting", "seed"),
    "study": ("paper", "study", "seed"),
    "figure": ("paper", "item"),
    "table": ("paper", "item"),
    "claims": ("paper",),
    "page": ("paper",),
    "overview": (),
}
"""What tells the jobs of a rule apart."""

ENDINGS = {"figure": ("pdf", "svg", "csv"), "table": ("tex", "csv")}
"""The file endings of an item, by kind."""
FOLDER = Path(".cache/plans")
REFUSED = 3
"""Exit status of planning if the configuration or a paper is wrong."""
SOURCES = ("twotowers", "papers", "scripts", "config")
"""The folders whose files a plan is made from."""


class Places:
    """The paths of artefacts and records."""

    def __init__(self, results: str, figures: str):
        self.results, self.figures = results, figures

    def file(self, kind: str, **names: Any) -> str:
        """The path of an artefact. Names that are left out stay wildcards."""
        return self._filled(FILES[kind], names)

    def record(self, kind: str, **names: Any) -> str:
        """The path of the record of the job that makes an artefact. Wildcards as in `file`."""
        own = FILES[kind].replace("{results}", "{results}/logs").rpartition(".")[0] + ".log"
        return self._filled(RECORDS.get(kind, own), names)

    def _filled(self, template: str, names: dict) -> str:
        places = {place: f"{{{place}}}" for place in re.findall(r"{(\w+)}", template)}
        roots = {"results": self.results, "figures": self.figures}
        return template.format(**places | roots | names)

    def rankings(self, paper: str = "{paper}", dataset: str = "{dataset}") -> dict[str, str]:
        """A paper's prepared rankings of a data set, by split."""
        files = {"paper": paper, "dataset": dataset}
        return {split: self.file("rankings", **files, split=split) for split in SPLITS}


class Plan(Places):
    """All jobs of a run: the content is what `twotowers.workflow.planning.make_plan` returns."""

    def __init__(self, content: Mapping[str, Any], root: Path = ROOT):
        super().__init__(content["results"], content["figures"])
        self.content, self.root = content, Path(root)

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    def job(self, rule: str, wildcards: Any = None) -> dict[str, Any]:
        """Inputs, parameters and priority of a job, of wildcards `WILDCARDS[rule]`."""
        key = "|".join(str(getattr(wildcards, name)) for name in WILDCARDS[rule])
        return self.content["jobs"][rule][key]

    def get(self, rule: str, part: str) -> Callable:
        """A function of wildcards: a job's inputs, a list or names and paths; its priority; or gpu,
        how many GPUs it asks for, 0 or 1."""
        return lambda wildcards: self.job(rule, wildcards)[part]

    def params(self, rule: str) -> dict[str, Callable]:
        """By name a function of wildcards: the parameters of a job."""
        jobs = self.content["jobs"][rule].values()
        return {
            name: lambda wildcards, name=name: self.job(rule, wildcards)["params"][name]
            for name in next(iter(jobs), {"params": ()})["params"]
        }

    def constraint(self, rule: str, wildcard: str) -> str:
        """Regular expression of the values that a wildcard has in the jobs of a rule."""
        place = WILDCARDS[rule].index(wildcard)
        names = dict.fromkeys(key.split("|")[place] for key in self.content["jobs"][rule])
        # (?!) matches nothing.
        return "|".join(map(re.escape, names)) or "(?!)"


def read_plan(
    config: Mapping[str, Any],
    root: Path = ROOT,
    folder: Path = FOLDER,
    files: Iterable[str | Path] = ("config.yaml",),
) -> Plan:
    """The plan of a configuration. It is made if there is none, or an input of it has changed.

    `files` are those that the settings come from, for messages; later ones override earlier ones.
    """
    said = json.dumps(config, sort_keys=True, default=str)
    path = Path(folder).resolve() / f"{_state(said, Path(root))}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "twotowers.workflow.planning", str(path), str(root)]
        command += map(str, files)
        env = os.environ | {"PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}
        made = subprocess.run(command, input=said, text=True, env=env, stderr=subprocess.PIPE)
        if made.returncode == REFUSED:
            raise InputError(made.stderr.strip().splitlines()[-1])
        if made.returncode:
            raise RuntimeError(f"the plan could not be made\n{made.stderr}")
    return Plan(json.loads(path.read_text()), root)


def _state(said: str, root: Path) -> str:
    """A digest of what a plan is made from: the configuration, and dates and sizes of files."""
    digest = hashlib.sha256(f"{said} {root} {sys.version}".encode())
    for path in _files(root):
        about = path.stat()
        digest.update(f"{path} {about.st_mtime_ns} {about.st_size}\n".encode())
    return digest.hexdigest()[:16]


def _files(root: Path) -> Iterable[Path]:
    """All files but compiled ones, and hidden ones, such as those of editors."""
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("[!.]*")):
            if path.suffix not in (".pyc", ".md") and path.is_file():
                yield path
