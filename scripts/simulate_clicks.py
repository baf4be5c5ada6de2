"""A policy's scores -> the clicks of every lane and split, counted by cells or page by page."""

from scripts.runner import run
from twotowers import SPLITS
from twotowers.logs.cells import write_logs
from twotowers.logs.policies import read_scores
from twotowers.logs.sessions import write_sessions
from twotowers.running.settling import queries_of
from twotowers.running.simulation import simulate, simulate_pages


def main(inputs, outputs, *, paper: str, log: dict, positions: int, seed: int):
    policies = {split: read_scores(inputs.policy, *queries_of(log, split)) for split in SPLITS}
    simulated = simulate_pages if log.get("record") == "sessions" else simulate
    logs = (
        part
        for split, policy in policies.items()
        for part in simulated(split, policy, log, positions=positions, seed=seed, paper=paper)
    )
    if log.get("record") == "sessions":
        write_sessions(outputs[0], logs)
    else:
        write_logs(outputs[0], logs, {split: policy.pairs for split, policy in policies.items()})


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
