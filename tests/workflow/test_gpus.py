"""The profile for GPUs, on a machine that has none: two jobs, and a fake nvidia-smi."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.running import ran
from tests.workflow.project import ROOT

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("plans")]

DEVICES = ["GPU-a", "GPU-b"]

SNAKEFILE = """
rule all:
    input: expand("{n}.txt", n=range(2))

rule fit:
    output: "{n}.txt"
    log: "{n}.log"
    resources: gpu=1
    script: "hold.py"
"""

# Prints its GPU. The jobs wait for each other first.
SCRIPT = """
import os, time
from pathlib import Path

def main(inputs, outputs):
    Path(outputs[0]).with_suffix(".holds").touch()
    deadline = time.monotonic() + 120
    while len(list(Path().glob("*.holds"))) < 2:
        assert time.monotonic() < deadline, "the other one did not begin"
        time.sleep(0.05)
    Path(outputs[0]).write_text(os.environ["CUDA_VISIBLE_DEVICES"])

from scripts.runner import run
run(main, snakemake)
"""


def make_workflow(folder: Path) -> dict[str, str]:
    """Write the workflow into a folder. Returns environment variables for Snakemake."""
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "hold.py").write_text(SCRIPT)
    # The profile overrides the workflow's own.
    shutil.copytree(ROOT / "config", folder / "config")
    (folder / "nvidia-smi").write_text("#!/bin/sh\n" + "".join(f"echo {d}\n" for d in DEVICES))
    (folder / "nvidia-smi").chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder),
    }


def test_jobs_run_at_a_time_each_on_a_gpu_of_its_own(tmp_path):
    profile = ["--workflow-profile", ROOT / "profiles" / "gpu", "--resources", "gpu=2"]
    command = [sys.executable, "-m", "snakemake", *profile, "--cores", "4"]
    run = ran(command, cwd=tmp_path, env=os.environ | make_workflow(tmp_path))
    assert run.returncode == 0, run.stderr
    assert sorted(path.read_text() for path in tmp_path.glob("*.txt")) == DEVICES
