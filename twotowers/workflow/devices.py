"""Each job that asks for a GPU gets one of its own. The others get none."""

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from twotowers.errors import InputError


def asks_for_gpu(resources) -> bool:
    """Whether a job's resources name a GPU, as `gpu` or, at some Slurm sites, as `gres`."""
    return bool(resources.get("gpu")) or resources.get("gres", "").startswith("gpu")


def use_own_gpu() -> str:
    """Make JAX run on one visible GPU that no other job holds, and return its UUID.

    It waits for a free GPU and holds it until this process ends, in whatever way.
    """
    device = claim(visible_gpus())
    os.environ["CUDA_VISIBLE_DEVICES"] = device
    os.environ["JAX_PLATFORMS"] = "cuda,cpu"
    # A job has imported what it needs before this.
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_platforms", "cuda,cpu")
    return device


def visible_gpus() -> list[str]:
    """UUIDs of the GPUs that the scheduler or the user lets this process see.

    Indices in CUDA_VISIBLE_DEVICES follow the order of nvidia-smi.
    """
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(len(listed)))))
        names = [name.strip() for name in chosen.split(",") if name.strip()]
        devices = [listed[int(name)] if name.isdigit() else name for name in names]
    except (OSError, subprocess.CalledProcessError, IndexError) as error:
        raise InputError(f"no GPU is visible: {error}", expected=" ".join(query)) from error
    if not devices:
        raise InputError("no GPU is visible", field="CUDA_VISIBLE_DEVICES", expected="one or more")
    return devices


def claim(devices: list[str], folder: str | Path | None = None, pause: float = 1.0) -> str:
    """Hold the first free device until this process ends. If none is free, wait.

    Snakemake counts GPUs, but does not say which one a job got. So jobs use file locks, in the
    machine's temporary folder if `folder` is None. The kernel releases a lock when its process
    dies, so that a killed job leaves nothing behind. `pause` is in seconds.
    """
    folder = Path(folder or tempfile.gettempdir())
    while True:
        for device in devices:
            # This file stays open: closing it would release the device.
            lock = os.open(
                folder / f"two-towers-{os.getuid()}-{device}.lock",
                os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
            )
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return device
            except BlockingIOError:
                os.close(lock)
        time.sleep(pause)
