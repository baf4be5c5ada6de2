"""Runs a script's main for Snakemake: one log per job, and a failure in one readable line."""

from __future__ import annotations

import contextlib
import platform
import sys
import traceback
from pathlib import Path

from twotowers.processes import end_with_run


def run(main, snakemake) -> None:
    """Call main(inputs, outputs, **params) with stdout and stderr in the job's log.

    A parameter named `code` is Snakemake's to decide on reruns; main does not get it.
    """
    end_with_run()
    params = {name: value for name, value in snakemake.params.items() if name != "code"}
    path = Path(snakemake.log[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("w") as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        print(f"rule {snakemake.rule}, Python {platform.python_version()}", flush=True)
        print(f"parameters {params}", flush=True)
        try:
            main(snakemake.input, snakemake.output, **params)
        except Exception as error:
            traceback.print_exc()
            cause = f"{type(error).__name__}: {error}"
            sys.__stderr__.write(f"\n{snakemake.rule} failed: {cause}\n(log: {path})\n\n")
            sys.exit(1)
