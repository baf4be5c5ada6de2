"""Rankings, relevance and click counts -> all measurements of a setting's lanes."""

import logging

from scripts.runner import run
from twotowers import SPLITS
from twotowers.results.longform import write_results
from twotowers.running.fit import fit_setting

LOGGER = logging.getLogger("twotowers.fit")


def main(inputs, outputs, *, paper: str, name: str, setting: dict, seed: int):
    conditions = {key: value for key, value in setting.items() if key != "log"}
    results = fit_setting(
        {split: getattr(inputs, split) for split in SPLITS},
        inputs.policy,
        inputs.clicks,
        seed=seed,
        **conditions,
    ).assign(method=setting["tower"])
    write_results(results, outputs[0], paper=paper, setting=name, seed=seed)
    for metric in ("epochs", "nll"):
        lanes = results.loc[results["metric"] == metric, "value"]
        LOGGER.info("%s of %d lanes: %.6g to %.6g", metric, len(lanes), lanes.min(), lanes.max())


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
