"""All outputs -> a record of how they were made, as an RO-Crate."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from scripts.runner import run
from twotowers.files.artefacts import atomic
from twotowers.report.crate import build_crate
from twotowers.workflow.records import read, versions

VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "PYTHONHASHSEED", "XLA_FLAGS",
)  # fmt: skip
"""Variables that may change the last digits of a result."""


def main(
    inputs,
    outputs,
    *,
    files: list[str],
    snakefile: str,
    lock: str,
    data: list[dict],
    config: dict,
    version: str,
    logs: str,
) -> None:
    """Write the crate, and the Snakefile that its profile needs, beside the page.

    Args:
        inputs: the files that the crate describes.
        outputs: crate and workflow.
        files: the outputs of the run.
        snakefile, lock: of the project.
        data: for each data set its name, and its manifest or how it was generated.
        config: Snakemake's configuration.
        version: of the code.
        logs: the folder of the jobs' logs.
    """
    with atomic(outputs.workflow) as path:
        path.write_bytes(Path(snakefile).read_bytes())
    jobs = [read(path) for path in sorted(Path(logs).rglob("*.log"))]
    devices = {job["device"] for job in jobs if "device" in job}
    crate = build_crate(
        Path(outputs.crate).parent,
        workflow=outputs.workflow,
        outputs=files,
        data=[part for dataset in data for part in parts(**dataset)],
        config=config,
        version=version,
        software=versions(),
        lock=lock,
        environment={name: os.environ[name] for name in VARIABLES if name in os.environ},
        device=", ".join(sorted(devices)),
        started=min((job["started"] for job in jobs if "started" in job), default=None),
        ended=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with atomic(outputs.crate) as path:
        path.write_text(json.dumps(crate, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def parts(name: str, manifest: str | None = None, generated: dict | None = None) -> list[dict]:
    """The files of a data set, from its manifest, or how it was generated."""
    if manifest is None:
        return [{"name": f"stand-in for {name}", "value": generated}]
    found = json.loads(Path(manifest).read_text(encoding="utf-8"))
    return [{"name": name, **file} for file in found.values()]


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
