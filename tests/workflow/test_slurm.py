"""The pipeline through a real Slurm with one node, which tests/slurm/start.sh sets up.

Two items have jobs of every kind. The scheduler kills the fit among them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import replace

import pytest

from tests.workflow.project import PAPER, ROOT, Project, Run

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]

pytestmark = [
    pytest.mark.workflow,
    # The group with the plain run.
    pytest.mark.xdist_group("pipeline"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

ITEMS = ("fig1", "appendixA")
SETTING = "example-expert"
"""The only setting that they need."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> dict[str, str]:
    """Environment variables for Slurm."""
    folder = tmp_path_factory.mktemp("slurm")
    scripts = ROOT / "tests" / "slurm"
    subprocess.run([scripts / "start.sh", folder], check=True, timeout=60)
    environment = {
        "SLURM_CONF": str(folder / "slurm.conf"),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
    }
    yield environment
    slurm(environment, "scancel", "--user", str(os.getuid()))
    subprocess.run([scripts / "stop.sh", folder], check=True)


def slurm(cluster: dict[str, str], *command: str) -> str:
    """The output of one of Slurm's commands."""
    run = subprocess.run(command, env=os.environ | cluster, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def submitted(clean_copy, cluster, cluster_python) -> tuple[Project, Run, str]:
    """A run whose fit was killed, and the number of the fit's job."""
    copy = clean_copy("submitted")
    project = replace(copy, environment=copy.environment | cluster, python=cluster_python)
    process = project.start(
        *(f"figures/smoke/{PAPER}/{item}.csv" for item in ITEMS),
        *("--workflow-profile", "profiles/slurm", "--latency-wait", "5"),
        *("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2"),
    )
    # The runner opens the log when all imports are done.
    log = project.folder / "results" / "smoke" / "logs" / "fits" / PAPER / SETTING / "2021.log"
    deadline = time.monotonic() + 900
    while not log.exists():
        assert process.poll() is None, process.communicate()[0][-5000:]
        assert time.monotonic() < deadline, "no fit began"
        time.sleep(0.1)
    running = slurm(cluster, "squeue", "--noheader", "--states=running", "--format=%i %k")
    (killed,) = (line.split()[0] for line in running.splitlines() if line.endswith("_fit"))
    slurm(cluster, "scancel", killed)
    text, _ = process.communicate()
    return project, Run(process.returncode, text), killed


def test_what_the_scheduler_killed_is_submitted_again(submitted, cluster):
    _, run, killed = submitted
    assert run.code == 0, run.text[-5000:]
    states = slurm(cluster, "squeue", "--noheader", "--states=all", "--format=%i %T %k")
    fits = [line.split()[:2] for line in states.splitlines() if line.endswith("_fit")]
    assert sorted(state for _, state in fits) == ["CANCELLED", "COMPLETED"]
    assert [killed, "CANCELLED"] in fits
    assert run.text.count("Trying to restart job") == 1


def test_the_numbers_are_those_of_a_plain_run(submitted, finished):
    project, _, _ = submitted
    digests = project.digests()
    assert digests.keys() >= {f"{PAPER}/{item}.csv" for item in ITEMS}
    assert digests == {path: finished.digests[path] for path in digests}


def test_small_jobs_share_a_submission(submitted):
    """The three splits of the stand-in."""
    _, run, _ = submitted
    assert len(run.jobs["generate_standin"]) == 3
    assert run.text.count("group_data_generate_standin") == 1
