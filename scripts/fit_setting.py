"""A setting's log and rankings -> all measurements of its lanes."""

import logging
from pathlib import Path

from scripts.runner import job
from twotowers.claims.statistics import write_results
from twotowers.experiment.objects import loaded
from twotowers.jobs.fit import fit_setting

LOGGER = logging.getLogger("twotowers.fit")


@job
def main(inputs, outputs, *, paper: str, name: str, setting: dict, seed: int):
    kept = Path(outputs[0]).with_suffix(".state")
    results = fit_setting(dict(inputs.items()), loaded(setting), seed=seed, checkpoint=kept)
    write_results(results, outputs[0], paper=paper, setting=name, seed=seed)
    kept.unlink(missing_ok=True)
    for metric in ("epochs", "nll"):
        lanes = results.loc[results["metric"] == metric, "value"]
        if len(lanes):
            span = lanes.min(), lanes.max()
            LOGGER.info("%s of %d lanes: %.6g to %.6g", metric, len(lanes), *span)
