"""GPUs of jobs, on a machine without any: a fake nvidia-smi lists them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from twotowers.errors import InputError
from twotowers.workflow.devices import asks_for_gpu, visible_gpus

DEVICES = ["GPU-a", "GPU-b", "GPU-c"]

# Waits for a signal, and holds a GPU until it is killed.
JOB = """
import sys, time
from twotowers.workflow.devices import claim
print("ready", flush=True)
sys.stdin.readline()
print(claim(sys.argv[2:], folder=sys.argv[1], pause=0.01), flush=True)
time.sleep(1000)
"""


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Install a fake nvidia-smi that prints the given lines."""

    def install(*lines: str) -> None:
        script = tmp_path / "nvidia-smi"
        script.write_text("#!/bin/sh\n" + "".join(f"echo {line}\n" for line in lines))
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return install


def start(folder: Path, jobs: int) -> list[subprocess.Popen]:
    """Jobs that begin together."""
    command = [sys.executable, "-c", JOB, str(folder), *DEVICES]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, **pipes) for _ in range(jobs)]
    for job in started:
        assert job.stdout.readline() == "ready\n"
    for job in started:
        job.stdin.write("\n")
        job.stdin.flush()
    return started


def test_as_many_jobs_as_gpus_have_one_each_until_they_are_killed(tmp_path):
    holders = start(tmp_path, len(DEVICES))
    held = [job.stdout.readline().strip() for job in holders]
    assert sorted(held) == DEVICES
    (waiting,) = start(tmp_path, 1)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(timeout=0.5)
    holders[1].kill()
    assert waiting.stdout.readline().strip() == held[1]
    for job in [*holders, waiting]:
        job.kill()
        job.communicate()


@pytest.mark.parametrize(
    ("chosen", "visible"),
    [
        (None, DEVICES),
        ("2,0", ["GPU-c", "GPU-a"]),  # the form of Slurm
        ("1, GPU-c", ["GPU-b", "GPU-c"]),
        ("GPU-b", ["GPU-b"]),
        ("MIG-x", ["MIG-x"]),  # a part of a GPU, which nvidia-smi does not list
    ],
)
def test_only_what_a_scheduler_chose_is_visible(nvidia_smi, monkeypatch, chosen, visible):
    nvidia_smi(*DEVICES)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert visible_gpus() == visible


@pytest.mark.parametrize("chosen", ["", "3"])
def test_a_gpu_that_is_not_there_is_an_error(nvidia_smi, monkeypatch, chosen):
    nvidia_smi(*DEVICES)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    with pytest.raises(InputError, match="no GPU is visible"):
        visible_gpus()


@pytest.mark.parametrize(
    ("resources", "asks"),
    [({}, False), ({"gpu": 0}, False), ({"gpu": 1}, True), ({"gres": "gpu:a100:1"}, True)],
)
def test_jobs_ask_for_a_gpu_by_count_or_as_a_generic_resource(resources, asks):
    assert asks_for_gpu(resources) == asks
