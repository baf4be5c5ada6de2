"""One GPU for each job that asks for one, and none for the others."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from twotowers.errors import InputError


def asks_for_gpu(resources) -> bool:
    """Whether a job's resources name a GPU: `gpu`, or, as some Slurm sites do, a `gres`."""
    return bool(resources.get("gpu")) or resources.get("gres", "").startswith("gpu")


def use_own_gpu() -> str:
    """Make JAX run on one visible GPU that no other job holds, and return its UUID.

    Waits until there is one. It is held until this process ends, however it ends.

    Raises:
        InputError: no GPU is visible.
    """
    device = claim(visible_gpus())
    os.environ["CUDA_VISIBLE_DEVICES"] = device
    os.environ["JAX_PLATFORMS"] = "cuda,cpu"
    # A job imports what it needs before it gets here.
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_platforms", "cuda,cpu")
    return device


def visible_gpus() -> list[str]:
    """UUIDs of the GPUs that a scheduler, or the user, lets this process see.

    Indices in CUDA_VISIBLE_DEVICES count the GPUs as nvidia-smi lists them.

    Raises:
        InputError: there is none.
    """
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(len(listed)))))
        devices = [
            listed[int(name)] if name.isdigit() else name for name in chosen.split(",") if name
        ]
    except (OSError, subprocess.CalledProcessError, IndexError) as error:
        raise InputError(f"no GPU is visible: {error}", expected=" ".join(query)) from error
    if not devices:
        raise InputError("no GPU is visible", field="CUDA_VISIBLE_DEVICES", expected="one or more")
    return devices


def claim(devices: list[str], folder: str | Path | None = None, pause: float = 1.0) -> str:
    """Hold the first of the devices that is free until this process ends; wait if none is.

    Snakemake counts GPUs, but does not say which of them a job got. The kernel lets go of a
    file lock when its process dies, so that a killed job leaves nothing behind.

    Args:
        devices: names that are the same for all processes of this machine.
        folder: where the locks are; this machine's temporary folder if None.
        pause: seconds between attempts.
    """
    folder = Path(folder or tempfile.gettempdir())
    while True:
        for device in devices:
            # Never closed: closing it would let the device go.
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
