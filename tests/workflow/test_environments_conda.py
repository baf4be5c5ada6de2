"""The pipeline from a launcher that only plans, with each job in the environment of its rule.

tests/conda/bin/conda builds the environments from envs/*.yaml, with links to the packages of this
Python.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.project import PAPERS, ROOT, SMOKE, Project

# With the tests of the pipeline, since they share the finished project.
pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("pipeline")]

COMMANDS = ROOT / "tests" / "conda" / "bin"
LOG = "results/smoke/raw/yandex/log.parquet"  # by the environment of data
CLICKS = "results/smoke/clicks/hager2025/mslr30k/linear-linear/2021.parquet"  # by JAX
FIGURE = "figures/smoke/hager2025/appendixA.csv"  # by that of plots


@pytest.fixture(scope="module")
def launcher(tmp_path_factory) -> Path:
    """The Python of an environment with what the Snakefile and its plan need."""
    prefix = tmp_path_factory.mktemp("launcher")
    create = ["env", "create", "--quiet", "--no-default-packages"]
    create += ["--file", ROOT / "envs" / "launcher.yaml", "--prefix", prefix]
    subprocess.run([sys.executable, COMMANDS / "conda", *create], check=True)
    return prefix / "bin" / "python"


def launch(launcher: Path, project: Project, *arguments: str) -> str:
    """Run Snakemake in a project with the launcher's Python. Returns its messages."""
    # The stand-in first, and the Python that runs it.
    path = f"{COMMANDS}:{Path(sys.executable).parent}:{project.environment['PATH']}"
    command = [launcher, "-m", "snakemake", *arguments]
    run = subprocess.run(
        command,
        cwd=project.folder,
        env=project.environment | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:]
    return run.stdout


@pytest.mark.parametrize("package", ["duckdb", "pooch"])
def test_the_launcher_lacks_what_only_jobs_of_data_need(launcher, package):
    run = subprocess.run([launcher, "-c", f"import {package}"], capture_output=True, text=True)
    assert f"No module named '{package}'" in run.stderr


def test_the_launcher_plans_and_each_job_in_its_environment_changes_no_byte(
    launcher, finished, tmp_path
):
    project = finished.copy(tmp_path)
    for file in (CLICKS, FIGURE):
        (project.folder / file).unlink()
    # The launcher's packages suffice to plan all papers. Without the trigger of environments, what
    # has been made without conda is not made again.
    config = [*SMOKE, f"papers=[{','.join(PAPERS)}]", "--rerun-triggers", "params", "input"]
    said = launch(launcher, project, LOG, CLICKS, FIGURE, "--sdm", "conda", "--cores", "2", *config)
    made = re.findall(r"^Environment for \S*/envs/(\S+)\.yaml created", said, re.MULTILINE)
    assert sorted(made) == ["data", "jax-cpu", "plots"]
    assert (project.folder / LOG).exists()
    for file in (CLICKS, FIGURE):
        expected = finished.project.folder / file
        assert (project.folder / file).read_bytes() == expected.read_bytes()
