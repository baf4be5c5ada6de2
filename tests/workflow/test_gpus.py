"""The profile for GPUs, on a machine that has none."""

from __future__ import annotations

import os
import sys

import pytest

from tests.running import ran
from tests.workflow.gpus import DEVICES, held, make_workflow
from tests.workflow.project import ROOT

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("plans")]


@pytest.mark.parametrize("gpus", [1, 2])
def test_as_many_jobs_as_gpus_run_at_a_time_each_on_its_own(tmp_path, gpus):
    profile = ["--workflow-profile", ROOT / "profiles" / "gpu", "--resources", f"gpu={gpus}"]
    together = ["--cores", "4", "--config", f"together={gpus == 2}"]
    command = [sys.executable, "-m", "snakemake", *profile, *together]
    run = ran(command, cwd=tmp_path, env=os.environ | make_workflow(tmp_path))
    assert run.returncode == 0, run.stderr
    # Jobs that run one at a time both get the first.
    assert held(tmp_path) == (DEVICES if gpus == 2 else [DEVICES[0]] * 2)
