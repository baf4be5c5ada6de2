"""Rankings, relevance and click counts -> all measurements of a setting's lanes."""

from twotowers import SPLITS
from twotowers.methods import fit_setting
from twotowers.results import write_results


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


if "snakemake" in globals():
    from runner import run

    run(main, snakemake)  # noqa: F821
