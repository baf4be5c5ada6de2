"""Time and peak memory of calls, each in a fresh process; and the machine."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from twotowers.workflow import compiling
from twotowers.workflow.records import peak_memory, processor

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "benchmarks"

ONE_THREAD = {
    "XLA_FLAGS": compiling.STEADILY,
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""How the pipeline's jobs run (see the Snakefile)."""

PACKAGES = ("numpy", "jax", "flax", "optax", "snakemake")


def child(
    target: str,
    *,
    python: str | Path = sys.executable,
    environment: dict[str, str] | None = None,
    **arguments,
) -> dict:
    """Call "package.module:function" in a fresh process, without JAX's cache of compiled programs.

    Its arguments, and its result, a dict, are what JSON can hold; the peak resident memory of the
    process is added as `peak_gb`, and `environment` to its variables.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
    done = subprocess.run(
        [python, "-m", "benchmarks.measure", target],
        input=json.dumps(arguments),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=inherited | (environment or {}),
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def peak() -> float:
    """Peak resident memory of this process in GB (10^9 bytes)."""
    return peak_memory() / 1e9


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def machine() -> dict:
    """The circumstances of a measurement: processor, cores, load, date, versions."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


if __name__ == "__main__":
    module, function = sys.argv[1].split(":")
    result = getattr(import_module(module), function)(**json.load(sys.stdin))
    print(json.dumps(result | {"peak_gb": peak()}), flush=True)
    # Threads of Arrow and JAX that still read ahead would end the process with an error now and
    # then, after everything is said.
    os._exit(0)
