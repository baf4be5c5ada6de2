"""A study's inputs and parameters -> its results."""

from importlib import import_module

from scripts.runner import job
from twotowers.claims.statistics import write_results


@job
def main(inputs, outputs, *, paper: str, name: str, module: str, parameters: dict, seed: int):
    study = import_module(f"papers.{paper}.studies.{module}")
    results = study.run(inputs, seed=seed, **parameters)
    write_results(results, outputs[0], paper=paper, setting=name, seed=seed)
