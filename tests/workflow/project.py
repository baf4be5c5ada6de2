"""A copy of the project. The pipeline runs in it as for a user."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path

import yaml

from tests.running import ran
from twotowers.experiment.config import read_config
from twotowers.experiment.paper import Paper, load_paper
from twotowers.files.yamls import read_yaml

ROOT = Path(__file__).resolve().parents[2]
PAPER = "hager2025"
"""The only paper of most tests of the pipeline."""
FEW = ("fig2", "appendixA", "appendixA_features", "lemmas")
"""Items of PAPER that need a job of each rule. They take a quarter of the time of all items."""
PAPERS = sorted(path.parent.name for path in ROOT.glob("papers/*/experiment.yaml"))
SMOKE = ["--config", "scale=smoke"]
PLUGINS = Path(__file__).with_name("plugins")
LONG = ["--logger", "long"]
"""A plugin of PLUGINS that prints rule and files of each job instead of its message."""

# The environment variables that runs inherit. The tests' own settings of JAX are not among them,
# since they would hide a missing setting of the Snakefile.
INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH")

# The lines are indented if several jobs are submitted as one.
_JOB = re.compile(r"^( *)(?:local)?rule (\w+):\n((?:\1    .*\n)*)", re.MULTILINE)
_OUTPUT = re.compile(r"^ *output: ([^,\n]+?)(?: \(update\))?(?:,|$)", re.MULTILINE)


def jobs(text: str) -> dict[str, set[str]]:
    """The first output of every job in Snakemake's messages, by rule. `all` has none."""
    found = {}
    for _, rule, body in _JOB.findall(text):
        output = _OUTPUT.search(body)
        found.setdefault(rule, set()).update(output.groups() if output else ())
    return found


@dataclass(frozen=True)
class Run:
    """The outcome of a call of Snakemake."""

    code: int
    text: str

    @property
    def jobs(self) -> dict[str, set[str]]:
        return jobs(self.text)


@dataclass(frozen=True)
class Project:
    """A copy of the project with one paper in its config.yaml. `figures` is the folder of items and
    pages in it, and `python` runs Snakemake."""

    folder: Path
    environment: dict[str, str]
    paper: str = PAPER
    figures: str = "figures"
    python: str = sys.executable

    def start(self, *arguments: str, launcher=(), stdout=subprocess.PIPE, **environment):
        """Start Snakemake at scale smoke in a process group of its own, with messages to `stdout`.

        It prints rule and files of each job, unless `arguments` have a --logger.
        """
        snakemake = [*launcher, self.python, "-m", "snakemake"]
        more = [] if "--config" in arguments else SMOKE
        more = more if "--logger" in arguments else [*more, *LONG]
        return subprocess.Popen(
            [*snakemake, *arguments, *more],
            cwd=self.folder,
            env=self.environment | environment,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def snakemake(self, *arguments: str, **options) -> Run:
        """Run Snakemake to its end, at scale smoke unless `arguments` have a --config."""
        process = self.start(*arguments, **options)
        text, _ = process.communicate()
        return Run(process.returncode, text)

    def plan(self, *arguments: str) -> dict[str, set[str]]:
        """The jobs that a run would have, as `jobs` returns them."""
        run = self.snakemake("--dry-run", *arguments)
        assert run.code == 0, run.text
        assert bool(run.jobs) != ("Nothing to be done" in run.text), run.text
        return run.jobs

    @contextmanager
    def edited(self, path: str, change: Callable[[str], str]) -> Iterator[None]:
        """The project with another text in one file."""
        file = self.folder / path
        before, dates = file.read_text(), file.stat()
        after = change(before)
        assert after != before, f"{path} is as it was"
        file.write_text(after)
        try:
            yield
        finally:
            file.write_text(before)
            # Its old dates, so that the old plan is still that of the project.
            os.utime(file, ns=(dates.st_atime_ns, dates.st_mtime_ns))

    def pin(self) -> None:
        """Write into config.yaml that `paper` is the only one."""
        file = self.folder / "config.yaml"
        line = re.compile(r"^papers: \[.*\]", re.MULTILINE)
        text, lines = line.subn(f"papers: [{self.paper}]", file.read_text())
        assert lines == 1, "config.yaml names its papers in one line"
        file.write_text(text)

    def trim(self, items: tuple[str, ...]) -> None:
        """Remove all other items from the paper, with their settings, studies and claims."""
        folder = self.folder / "papers" / self.paper
        claims = import_module(f"papers.{self.paper}.claims").CLAIMS
        kept = {claim.id for claim in claims if {*claim.items} <= {*items}}
        experiment = yaml.safe_load((folder / "experiment.yaml").read_text())
        needed = {need for name in items for need in experiment["items"][name]["needs"]}
        for part in (experiment, *experiment["scales"].values()):
            for section, names in (("items", items), ("settings", needed), ("studies", needed)):
                if section in part:
                    part[section] = {k: each for k, each in part[section].items() if k in names}
        brief = experiment["brief"]
        brief["claims"] = sorted(kept & {*brief["claims"]}) or sorted(kept)[:1]
        text = yaml.safe_dump(experiment, sort_keys=False, default_flow_style=None, width=10**6)
        (folder / "experiment.yaml").write_text(text)
        with (folder / "claims.py").open("a") as file:
            file.write(f"CLAIMS = [claim for claim in CLAIMS if claim.id in {sorted(kept)}]\n")
        shutil.rmtree(folder / "recorded")

    def git(self, *arguments: str) -> str:
        """Run git in the copy, without the user's settings."""
        author = ["-c", "user.name=tests", "-c", "user.email=tests@example.org"]
        command = ["git", *author, *arguments]
        return ran(command, cwd=self.folder, env=self.environment, check=True).stdout

    @property
    def smoke(self) -> Paper:
        """The paper at scale smoke, as its file has it now."""
        config = read_yaml(self.folder / "config.yaml") | {"scale": "smoke"}
        return load_paper(self.paper, read_config(config), self.folder)

    def digests(self) -> dict[str, str]:
        """SHA-256 of every csv, svg and pdf below figures/."""
        figures = self.folder / "figures"
        return {
            str(path.relative_to(figures)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(figures.rglob("*"))
            if path.suffix in (".csv", ".svg", ".pdf")
        }


@dataclass(frozen=True)
class Finished:
    """A project whose pipeline has run, its messages, and the digests of its items."""

    project: Project
    run: Run
    digests: dict[str, str]

    def copy(self, folder: Path) -> Project:
        """A copy that tests may change, in a folder of this one."""
        place = folder / "two-towers"
        shutil.copytree(self.project.folder, place)
        return replace(self.project, folder=place)


def own_environment(caches: Path) -> dict[str, str]:
    """The environment variables of runs. Compiled programs are kept in `caches`."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | {
        "XDG_CACHE_HOME": str(caches / "xdg"),
        # All copies share the cache, since compiling takes a third of a smoke run.
        "JAX_COMPILATION_CACHE_DIR": str(caches / "jax"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONPATH": str(PLUGINS),
    }


def clean_project(
    folder: Path, environment: dict[str, str], paper: str = PAPER, items: tuple[str, ...] = ()
) -> Project:
    """A clean, committed copy of the project's files in a new folder, for one paper and some of its
    items, or all if none is named."""
    project = Project(folder, environment, paper)
    for path in project_files():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, file)
        # The first run in a copy would spend seconds on compiling what the tests have compiled.
        if file.suffix == ".py" and os.path.exists(compiled := cache_from_source(ROOT / path)):
            cached = Path(cache_from_source(file))
            cached.parent.mkdir(exist_ok=True)
            shutil.copy2(compiled, cached)
    project.pin()
    if items:
        project.trim(items)
    project.git("init", "--quiet")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "A clean copy")
    return project


def project_files() -> list[str]:
    """The existing files that git tracks or would track."""
    options = ["-z", "--cached", "--others", "--exclude-standard"]
    command = ["git", "-C", str(ROOT), "ls-files", *options]
    listed = ran(command, check=True).stdout
    return [path for path in listed.split("\0") if path and (ROOT / path).is_file()]
