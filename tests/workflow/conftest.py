"""Clean copies of the project, shared by the tests of its pipeline."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workflow.project import PAPER, ROOT, Finished, Project

# All that a run may know of the process that tests it: the tests' own settings of JAX must not
# hide what the Snakefile forgets to set.
INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH")


@pytest.fixture(scope="session")
def clean_copy(tmp_path_factory) -> Callable[..., Project]:
    """Make a clean, committed copy of the project's files, for one paper: clean_copy(name)."""
    if not (ROOT / ".git").exists():
        pytest.skip("only git knows which files are the project's")
    caches = tmp_path_factory.mktemp("caches")
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ} | {
        "XDG_CACHE_HOME": str(caches / "xdg"),
        # Shared by all copies: compiling takes a third of a smoke run.
        "JAX_COMPILATION_CACHE_DIR": str(caches / "jax"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }

    def copy(name: str, paper: str = PAPER) -> Project:
        project = Project(tmp_path_factory.mktemp(name) / "two-towers", environment, paper)
        for path in project_files():
            (project.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, project.folder / path)
        project.pin()
        project.git("init", "--quiet")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "A clean copy")
        return project

    return copy


def project_files() -> list[str]:
    """Files that git tracks, or would track, as far as they are there."""
    command = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.split("\0") if path and (ROOT / path).is_file()]


@pytest.fixture(scope="session")
def unbuilt(clean_copy) -> Project:
    """A copy in which nothing has run; for dry runs only."""
    return clean_copy("unbuilt")


@pytest.fixture(scope="session")
def finished(clean_copy) -> Finished:
    """A smoke run on two cores; tests leave its files as they are."""
    project = clean_copy("finished")
    run = project.snakemake("--cores", "2")
    assert run.code == 0, run.text[-5000:]
    return Finished(project, run, project.digests())


@pytest.fixture(scope="session")
def cluster_python(tmp_path_factory) -> str:
    """A Python that has what this one has, and Snakemake's plugin for Slurm."""
    folder = tmp_path_factory.mktemp("cluster") / "venv"
    venv.create(folder)
    python = str(folder / "bin" / "python")
    (site,) = folder.glob("lib/python*/site-packages")
    (Path(site) / "ours.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", python, "install"]
    lock = ROOT / "profiles" / "slurm" / "requirements.txt"
    run = subprocess.run(
        [*pip, "--require-hashes", "--requirement", lock], capture_output=True, text=True
    )
    if "No matching distribution" in run.stderr:
        pytest.skip("the plugin for Slurm cannot be downloaded here")
    assert run.returncode == 0, run.stderr
    return python
