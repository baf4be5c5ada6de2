"""pyproject.toml -> requirements.txt, envs/*.yaml and the profile's: `make lock`. Needs a network.

requirements.txt pins, with hashes, all packages of all jobs and tests on every supported Python,
except CUDA's. envs/<group>.yaml pins the packages of one kind of job, all from PyPI, at the same
versions. It has no hashes: Snakemake stores an environment's text beside every file made in it, and
hashes would add 100 KB to each.

Finally it checks that the lock can be installed on every supported Python and platform. A missing
wheel is an error.
"""

import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path

from twotowers.files.artefacts import atomic

PROJECT = Path("pyproject.toml")
LOCK = Path("requirements.txt")
ENVIRONMENTS = Path("envs")
TESTS_ONLY = "checks"
CUDA = "jax-cuda"
"""For Linux only, and several gigabytes. It is not in the lock, so `make` does not install it."""
CLUSTER = "cluster"
CLUSTER_LOCK = Path("profiles/slurm/requirements.txt")
"""The lock of what Slurm needs beside Snakemake."""

PYTHONS = ("3.11", "3.12", "3.13")
CONDA_PYTHON, CONDA_PIP = "3.12.8", "24.3.1"
"""Of conda's environments. conda-forge keeps every version that it had."""
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
"""Platforms with wheels of JAX. A Mac with an Intel processor has none."""
SOURCE_ONLY = "connection-pool"
"""A package without wheels that Snakemake needs. It is pure Python."""

SPECIFICATION = """\
# Made by `make lock` from pyproject.toml and requirements.txt; not to be edited.
channels: [conda-forge]
dependencies:
  - python ={python}
  - pip ={pip}
  - pip:
{pins}
"""


def main() -> None:
    project = tomllib.loads(PROJECT.read_text())
    groups = project["dependency-groups"]
    hashed = ("--generate-hashes", "--output-file")
    resolve([name for name in groups if name not in (CUDA, CLUSTER)], *hashed, LOCK)
    resolve([CLUSTER], "--constraint", LOCK, *hashed, CLUSTER_LOCK)
    ENVIRONMENTS.mkdir(exist_ok=True)
    for name in groups:
        if name not in (TESTS_ONLY, CLUSTER):
            lines = resolve([name], "--constraint", LOCK).splitlines()
            pins = "\n".join(f"      - {pin}" for pin in lines)
            text = SPECIFICATION.format(python=CONDA_PYTHON, pip=CONDA_PIP, pins=pins)
            with atomic(ENVIRONMENTS / f"{name}.yaml") as path:
                path.write_text(text)
    for platform, python in product(PLATFORMS, PYTHONS):
        uv_pip(
            *("install", "--dry-run", "--target", ".cache/lock/nothing"),
            *("--require-hashes", "--only-binary", ":all:", "--no-binary", SOURCE_ONLY),
            *("--python-version", python, "--python-platform", platform, "--requirement", LOCK),
        )


def resolve(groups: list[str], *options: str | Path) -> str:
    """Pins, one per line, of all packages of the groups, on every supported Python."""
    command = ["compile", "--universal", "--fork-strategy", "fewest"]
    command += ["--no-header", "--no-annotate", "--no-emit-index-url"]
    for group in groups:
        command += ["--group", group]
    return uv_pip(*command, *options)


def uv_pip(*arguments: str | Path) -> str:
    """The output of uv. If uv fails, CalledProcessError is raised; uv prints the reason."""
    command = [sys.executable, "-m", "uv", "pip", *arguments, "--quiet"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
