"""A study's inputs and parameters -> its results."""

from importlib import import_module

from scripts.runner import run
from twotowers.results.longform import write_results
from twotowers.workflow.plan import planned


def main(inputs, outputs, *, paper: str, name: str, seed: int):
    study = planned("studies", paper, name)
    module = import_module(f"papers.{paper}.studies.{study['module']}")
    results = module.run(inputs, seed=seed, **study["parameters"])
    write_results(results, outputs[0], paper=paper, setting=name, seed=seed)


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
