"""All papers' summaries and claims -> the overview, and the claims in one csv."""

from os.path import dirname

import pandas as pd

from scripts.runner import run
from twotowers.files.artefacts import atomic
from twotowers.report.overview import write_overview


def main(
    inputs, outputs, *, papers: dict[str, dict], claims: list[str], scale: str, version: str
) -> None:
    """Write the overview.

    Args:
        inputs: Summaries and claims of all papers, so that they are there.
        outputs: overview and claims.
        papers: An outline of every paper, by key.
        claims: Their verdicts.
        scale, version: Of the run.
    """
    verdicts = [pd.read_csv(path, keep_default_na=False, dtype=str) for path in claims]
    with atomic(outputs.claims) as path:
        pd.concat(verdicts).to_csv(path, index=False, lineterminator="\n")
    write_overview(dirname(outputs.overview), papers, scale=scale, version=version)


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
