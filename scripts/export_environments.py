"""pyproject.toml -> requirements.txt, envs/*.yaml and the profile's: `make lock`. Needs a network.

requirements.txt pins, with hashes, every package that any job or test needs on any supported
Python, but CUDA's. envs/<group>.yaml pins what one kind of job needs, all of it from PyPI, at the
versions in requirements.txt. Conda passes the lines on to pip as they are, so hashes would work
there too; but Snakemake stores an environment's whole text beside every file made in it, and the
hashes would make that 100 KB a file.

At last it asks whether the lock can be installed on every supported Python and platform; what
has no wheel there stops it.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from twotowers.files.artefacts import atomic

PROJECT = Path("pyproject.toml")
LOCK = Path("requirements.txt")
ENVIRONMENTS = Path("envs")
TESTS_ONLY = "checks"
CUDA = "jax-cuda"
"""Linux only, and gigabytes: not in the lock, so that `make` does not install it."""
CLUSTER = "cluster"
CLUSTER_LOCK = Path("profiles/slurm/requirements.txt")
"""What is installed beside Snakemake for Slurm."""

PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
"""Where JAX has wheels; not on a Mac with an Intel processor."""
SOURCE_ONLY = "connection-pool"
"""Pure Python, needed by Snakemake."""

SPECIFICATION = """\
# Made by `make lock` from pyproject.toml and requirements.txt; not to be edited.
channels: [conda-forge]
dependencies:
  - python {python}
  - pip
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
            pins = resolve([name], "--constraint", LOCK).splitlines()
            text = SPECIFICATION.format(
                python=project["project"]["requires-python"],
                pins="\n".join(f"      - {pin}" for pin in pins),
            )
            with atomic(ENVIRONMENTS / f"{name}.yaml") as path:
                path.write_text(text)
    for platform in PLATFORMS:
        for python in PYTHONS:
            try_install(python, platform)


def resolve(groups: list[str], *options: str | Path) -> str:
    """Pins, one a line, of all that the dependency groups need, on every supported Python."""
    command = ["compile", "--universal", "--fork-strategy", "fewest"]
    command += ["--no-header", "--no-annotate", "--no-emit-index-url"]
    for group in groups:
        command += ["--group", group]
    return uv_pip(*command, *options)


def try_install(python: str, platform: str) -> None:
    """Go through the motions of installing the lock for another Python or platform."""
    uv_pip(
        *("install", "--dry-run", "--target", ".cache/lock/nothing"),
        *("--require-hashes", "--only-binary", ":all:", "--no-binary", SOURCE_ONLY),
        *("--python-version", python, "--python-platform", platform),
        *("--requirement", LOCK),
    )


def uv_pip(*arguments: str | Path) -> str:
    """What uv prints; where it fails, it says why, and CalledProcessError is raised."""
    command = [sys.executable, "-m", "uv", "pip", *arguments, "--quiet"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
