"""Clean copies of the project, shared by the tests of its pipeline."""

import os
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.running import ran
from tests.workflow.project import (
    FEW,
    PAPER,
    ROOT,
    Finished,
    Project,
    clean_project,
    own_environment,
)


@pytest.fixture(scope="session")
def clean_copy(tmp_path_factory) -> Callable[..., Project]:
    """Make a clean, committed copy of the project's files, for one paper and some of its items."""
    if not (ROOT / ".git").exists():
        pytest.skip("only git knows which files are the project's")
    caches = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        caches = caches.parent  # All workers share it.
    environment = own_environment(caches / "caches")

    def copy(name: str, paper: str = PAPER, items: tuple[str, ...] = ()) -> Project:
        folder = tmp_path_factory.mktemp(name) / "two-towers"
        return clean_project(folder, environment, paper, items)

    return copy


@pytest.fixture(scope="session")
def unbuilt(clean_copy) -> Project:
    """A copy in which nothing has run, for dry runs only."""
    return clean_copy("unbuilt")


@pytest.fixture(scope="session")
def finished(clean_copy) -> Finished:
    """A smoke run on two cores. Tests do not change its files."""
    project = clean_copy("finished", items=FEW)
    run = project.snakemake("--cores", "2")
    assert run.code == 0, run.text[-5000:]
    return Finished(project, run, project.digests())


@pytest.fixture(scope="session")
def cluster_python(tmp_path_factory) -> str:
    """A Python with the packages of this one and Snakemake's plugin for Slurm."""
    folder = tmp_path_factory.mktemp("cluster") / "venv"
    venv.create(folder)
    python = str(folder / "bin" / "python")
    (site,) = folder.glob("lib/python*/site-packages")
    (Path(site) / "ours.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", python, "install"]
    lock = ROOT / "profiles" / "slurm" / "requirements.txt"
    run = ran([*pip, "--require-hashes", "--requirement", lock])
    if "No matching distribution" in run.stderr:
        pytest.skip("the plugin for Slurm cannot be downloaded here")
    assert run.returncode == 0, run.stderr
    return python
