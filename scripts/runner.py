"""Runs a script's main for Snakemake, with a log per job and a failure in one line."""

import gc
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from inspect import getsourcefile
from pathlib import Path
from types import FunctionType

from twotowers.workflow.devices import asks_for_gpu, use_own_gpu
from twotowers.workflow.preloaded import hand_over
from twotowers.workflow.provenance import code_version
from twotowers.workflow.records import cause, job_log

if hasattr(sys.modules["__main__"], "snakemake"):
    if not asks_for_gpu(sys.modules["__main__"].snakemake.resources):
        hand_over(sys.argv[0])
    # Imported modules stay, and looking for garbage in them takes a quarter of a job's start. So
    # scripts import this module first, and `run` freezes all objects before collection restarts.
    gc.disable()

PRELOADED = (
    *("scripts.fit_setting", "scripts.run_study", "scripts.simulate_clicks"),
    *("scripts.train_policy", "scripts.draw_item", "scripts.build_page"),
    "twotowers.report.figures",  # which only figures import
)
"""What a run imports once for all of its jobs: scripts that run often or import much."""


def paper_module(paper: str, name: str):
    """A module of a paper, or None if the paper has none of that name."""
    path = f"papers.{paper}.{name}"
    return import_module(path) if find_spec(path) else None


def run(main, snakemake) -> None:
    """Call main(inputs, outputs, **params) with stdout and stderr in the job's log.

    The parameter `code`, a digest, is for Snakemake's decision on reruns. main does not get it.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    params = dict(snakemake.params.items())
    code = params.pop("code", None)
    path = Path(snakemake.log[0])
    # Snakemake runs a copy. A random word stands before the name of the script.
    script = re.sub(r"^tmp\w+\.", "", Path(getsourcefile(main)).name)
    facts = {
        "rule": snakemake.rule,
        "script": f"scripts/{script}",
        "parameters": params,
        "outputs": list(snakemake.output),
        "code": f"{code}, version {code_version()}",
    }
    try:
        with job_log(path, facts):
            if asks_for_gpu(snakemake.resources):
                print(f"GPU {use_own_gpu()}", flush=True)
            main(snakemake.input, snakemake.output, **params)
    except Exception as error:
        sys.stderr.write(f"\n{snakemake.rule} failed: {cause(error)}\n(log: {path})\n\n")
        sys.exit(1)


def job(main: FunctionType) -> FunctionType:
    """Decorate `main`, the last thing in a script: it runs where Snakemake runs the script."""
    if snakemake := main.__globals__.get("snakemake"):
        run(main, snakemake)
    return main
