"""A policy's scores -> click counts of every lane and split."""

from scripts.runner import run
from twotowers.logs.cells import write_logs
from twotowers.logs.policies import read_policy
from twotowers.running.settling import splits_of
from twotowers.running.simulation import simulate


def main(inputs, outputs, *, paper: str, log: dict, positions: int, seed: int):
    policies = {
        split: read_policy(inputs.policy, log.get("queries") or split)
        for split in splits_of(log["sessions"])
    }
    logs = (
        lane
        for split, policy in policies.items()
        for lane in simulate(split, policy, log, positions=positions, seed=seed, paper=paper)
    )
    write_logs(outputs[0], logs, {split: policy.pairs for split, policy in policies.items()})


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
