"""A workflow whose jobs, named `fit`, only hold a GPU, and a fake nvidia-smi that lists two."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.workflow.project import ROOT

DEVICES = ["GPU-a", "GPU-b"]

SNAKEFILE = """
rule all:
    input: expand("{n}.txt", n=range(2))

rule fit:
    output: "{n}.txt"
    log: "{n}.log"
    resources: gpu=1
    params: together=config["together"]
    script: "hold.py"
"""

# Prints its GPU. Jobs that should have one each wait for each other first.
SCRIPT = """
import os, time
from pathlib import Path

def main(inputs, outputs, *, together):
    Path(outputs[0]).with_suffix(".holds").touch()
    deadline = time.monotonic() + 120
    while together and len(list(Path().glob("*.holds"))) < 2:
        assert time.monotonic() < deadline, "the other one did not begin"
        time.sleep(0.05)
    time.sleep(1)
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


def held(folder: Path) -> list[str]:
    """The GPUs that the jobs had."""
    return sorted(path.read_text() for path in folder.glob("*.txt"))
